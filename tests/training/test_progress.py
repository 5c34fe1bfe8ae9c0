"""What is said while training goes on, where standard error is no terminal."""

from adance.training import Settings, Trainer
from adance.training.progress import TrainingProgress


def test_a_run_says_what_it_does(parts, digits, tmp_path, capsys):
    energy, objective = parts("image")
    Trainer(energy, objective, digits, Settings(steps=3, batch_size=16, log_every=1), tmp_path / "run").fit()
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2].startswith("step 3/3  ")
    assert lines[-1].startswith("drawing 64 samples: chains of ")


def test_nothing_is_said_where_none_listens(capsys):
    progress = TrainingProgress(0, 3, shown=False)
    progress.say("a word")
    progress.report(3, {"loss": 1.0})
    assert capsys.readouterr().err == ""
