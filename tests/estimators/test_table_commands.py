"""``adance outliers`` and ``adance ratio``."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from adance.cli import main

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    columns = ["length", "width", "mass"]
    pd.DataFrame(RNG.normal(size=(200, 3)), columns=columns).to_csv("old.csv", index=False)
    same = pd.DataFrame(RNG.normal(size=(200, 3)), columns=columns)
    same.to_csv("same.csv", index=False)
    (same + [1.5, 0, 0]).to_csv("moved.csv", index=False)
    same.loc[7, "width"] = 12.0
    same.to_csv("new.csv", index=False)


def test_outliers_are_scored_ranked_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outliers", "old.csv", "new.csv", "--out", "scores.csv"]) == 0
    scores = pd.read_csv("scores.csv")
    worst = scores.loc[scores["score"].idxmin()]
    assert worst["row"] == 7
    assert worst["rank"] == 1
    assert worst["p_value"] == pytest.approx(1 / 41)  # below all of 40 held-out rows
    assert worst["top_columns"].split()[0] == "width"
    assert scores["p_value"].mean() == pytest.approx(0.5, abs=5 * 0.29 / np.sqrt(40))
    assert Path("scores.png").read_bytes().startswith(b"\x89PNG")
    assert "least likely: row 7 (width" in capsys.readouterr().out


@pytest.mark.parametrize(("new", "moved"), [("same.csv", False), ("moved.csv", True)])
def test_drift_is_found_if_there_is_any(new: str, moved: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ratio", "old.csv", new, "--out", "weights.csv"]) == 0
    said = capsys.readouterr().out
    p_value = float(said.partition("drift: p = ")[2].split()[0])
    assert (p_value < 0.01) == moved
    assert pd.read_csv("weights.csv")["weight"].mean() == pytest.approx(1)
    assert Path("weights.png").exists()


def test_tables_of_other_columns_are_refused(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    Path("other.csv").write_text("length,height\n1,2\n3,4\n", encoding="utf-8")
    assert main(["outliers", "old.csv", "other.csv"]) == 2
    said = caplog.text + capsys.readouterr().err
    assert "other.csv must have the columns of old.csv: length, width, mass, got length, height" in said


@pytest.mark.parametrize("command", ["outliers", "ratio"])
@pytest.mark.parametrize("out", ["result.png", "missing/result.csv"])
def test_a_result_that_cannot_be_written_is_an_error_before_the_work(command, out, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "missing").write_text("a file")
    before = sorted(tmp_path.iterdir())
    assert main([command, "no.csv", "no.csv", "--out", out]) == 2  # the tables would be read first otherwise
    assert out in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["outliers", "ratio"])
@pytest.mark.parametrize("out", ["old.csv", "./new.csv", "."])
def test_no_input_is_overwritten(command: str, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = [Path(name).read_bytes() for name in ("old.csv", "new.csv")]
    assert main([command, "old.csv", "new.csv", "--out", out]) == 2
    assert "would overwrite" in (said := capsys.readouterr().err) or "is a folder" in said
    assert [Path(name).read_bytes() for name in ("old.csv", "new.csv")] == before
