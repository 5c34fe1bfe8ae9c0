import json

import pytest
import torch

from adance.cli import main
from adance.data import load_data
from adance.energies import MLP
from adance.errors import InputError
from adance.evaluation import SampleDistance, sliced_wasserstein
from adance.objectives import NCE
from adance.training import Settings, Trainer, load

DISTANCES = {10: 5.0, 20: 3.0, 30: 4.0, 40: 3.0, 50: 2.0, 60: 2.5, 70: 2.5, 80: 1.0}


def measured(data, n, seed):
    """A metric that is known for every step."""
    return lambda run: DISTANCES[run.step]


def trainer_of(folder, points, metric=measured, **settings):
    torch.manual_seed(1)
    numbers = {"steps": 80, "batch_size": 16, "log_every": 40, "checkpoint_every": 1000, "evaluate_every": 10}
    return Trainer(
        MLP((3,), [8]),
        NCE(),
        points,
        Settings(**{**numbers, **settings}),
        folder,
        device="cpu",
        show_progress=False,
        metric=metric,
    )


@pytest.mark.parametrize(("patience", "last", "best"), [(0, 80, 80), (1, 30, 20), (2, 40, 20), (3, 80, 80)])
def test_training_stops_after_so_many_measurements_without_improvement(patience, last, best, points, tmp_path):
    run = trainer_of(tmp_path / "run", points, patience=patience).fit()
    assert run.step == last
    assert load(tmp_path / "run").step == last
    assert load(tmp_path / "run", step="best").step == best
    assert run.folder.distances() == {step: value for step, value in DISTANCES.items() if step <= last}


def test_measuring_does_not_change_training_and_a_resumed_run_stops_at_the_same_step(points, tmp_path, tensor_bytes):
    trainer_of(tmp_path / "plain", points, None, evaluate_every=0, steps=40).fit()
    trainer_of(tmp_path / "whole", points, patience=2).fit()
    trainer_of(tmp_path / "parts", points, patience=2, steps=25).fit()
    Trainer.resume(tmp_path / "parts", points, steps=80, device="cpu", show_progress=False, metric=measured).fit()
    plain, whole, parts = (tensor_bytes(tmp_path / name) for name in ("plain", "whole", "parts"))
    assert plain == whole == parts


def test_a_run_that_has_stopped_goes_on_with_more_patience_only(points, tmp_path):
    trainer_of(tmp_path / "run", points, patience=1).fit()
    options = {"device": "cpu", "show_progress": False, "metric": measured}
    assert Trainer.resume(tmp_path / "run", points, **options).fit().step == 30
    assert Trainer.resume(tmp_path / "run", points, patience=3, **options).fit().step == 80


def test_what_lacks_for_it_is_said(points, tmp_path):
    with pytest.raises(InputError, match="evaluate_every=10 needs a metric"):
        trainer_of(tmp_path / "run", points, None)
    with pytest.raises(InputError, match="patience=2 needs evaluate_every"):
        Settings(patience=2)
    trainer_of(tmp_path / "run", points, None, evaluate_every=0, steps=2).fit()
    with pytest.raises(InputError, match="has no best checkpoint: train with --evaluate_every"):
        load(tmp_path / "run", step="best")
    assert not (tmp_path / "run" / "nothing").exists()


def test_the_command_measures_its_own_samples(tmp_path, capsys):
    options = "--data moons --steps 6 --evaluate_every 3 --evaluate_samples 40 --energy.hidden [8] --batch_size 16"
    assert main(["train", *options.split(), "--out", str(tmp_path / "run"), "--quiet", "--objective", "NCE"]) == 0
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    data = load_data("moons")
    for row in rows:
        run = load(tmp_path / "run", step=row["step"])
        x, generator = run.sample(40), torch.Generator().manual_seed(0)
        order = torch.randperm(len(data.test), generator=generator)
        expected = sliced_wasserstein(x, data.batch(order[:40], "test"), generator=generator)
        assert row["sample_distance"] == pytest.approx(expected, rel=1e-6)
    assert [row["step"] for row in rows] == [3, 6]
    assert main(["score", str(tmp_path / "run"), "moons", "--step", "best", "--out", str(tmp_path / "s.csv")]) == 0


def test_held_out_images_are_nearer_than_noise(digits):
    distance = SampleDistance(digits, n=200)

    class Sampled:
        """A run whose samples are given."""

        energy, sampling_steps = torch.nn.Identity(), 1

        def __init__(self, x):
            self.x = x

        def sample(self, n, seed):
            return self.x[:n]

    real = distance(Sampled(digits.batch(torch.arange(200))))
    noise = torch.rand(200, 1, 8, 8, generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert 0 < 10 * real < distance(Sampled(noise))
    assert distance(Sampled(noise / 0)) == float("inf")
