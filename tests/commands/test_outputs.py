"""A result that cannot be written is refused before the work that it would hold."""

import pytest

import adance.commands.evaluate
import adance.report.page
from adance.training import Run


@pytest.fixture
def no_work(monkeypatch):
    """No command can do its work."""

    def work(*args, **options):
        raise AssertionError("nothing can be written, so this is in vain")

    monkeypatch.setattr(Run, "sample", work)
    monkeypatch.setattr(Run, "score", work)
    monkeypatch.setattr(adance.commands.evaluate, "evaluate_run", work)
    monkeypatch.setattr(adance.report.page, "run_context", work)


def test_outputs_are_checked_first(adance, trained_run, no_work, tmp_path, bytes_under):
    (trained_run / "evaluation.json").mkdir()
    before = bytes_under()
    for argv, message in [
        ("sample run --out run/config.yaml/x.png", "cannot write run/config.yaml/x.png: run/config.yaml is a file"),
        (f"sample run --out {'x' * 300}.npz", ".npz: File name too long"),
        ("sample run --out run/evaluation.json/../.npz", "samples are written as .png, .npz or .csv"),
        ("score run digits --out run", "cannot write run: is a folder"),
        ("evaluate run", "cannot write run/evaluation.json: is a folder"),
        ("report run --out run", "cannot write run: is a folder"),
    ]:
        answer = adance(*argv.split())
        assert answer.status == 2, argv
        assert message in answer.error
        assert bytes_under() == before
