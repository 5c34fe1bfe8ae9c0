import pytest

from adance.sweeps import Outcome, as_markdown, summarize


def outcome(interval, seed, loss, status="done", **measurements):
    values = {"objective.interval": str(interval), "seed": str(seed)}
    return Outcome(f"{interval}-{seed}", values, status, "", {"step": 9, "loss": loss}, measurements)


def test_means_and_spreads_are_over_seeds():
    groups = summarize([outcome(1, 0, 1.0), outcome(1, 1, 3.0), outcome(5, 0, 7.0)])
    assert [group.title for group in groups] == ["interval 1", "interval 5"]
    assert groups[0].numbers["loss"] == (2.0, pytest.approx(2**0.5), 2)
    assert groups[1].numbers["loss"] == (7.0, 0.0, 1)


def test_runs_that_did_not_end_well_are_counted_and_not_averaged():
    groups = summarize([outcome(1, 0, 1.0), outcome(1, 1, 99.0, "diverged"), outcome(5, 0, 2.0, "failed")])
    rows = as_markdown(groups).splitlines()
    assert rows[0].split("|")[1:4] == [" interval ", "   runs ", " loss "]
    assert rows[2].split("|")[1:4] == ["        1 ", " 1 of 2 ", "    1 "]
    assert rows[3].split("|")[1:4] == ["        5 ", " 0 of 1 ", "    – "]


def test_measures_come_first_and_can_be_chosen():
    groups = summarize([outcome(1, 0, 1.0, **{"FD (Fréchet distance)": 12.0, "kernel": 0.5})])
    assert as_markdown(groups).startswith("| interval | runs | FD (Fréchet distance) | kernel | loss |")
    assert as_markdown(groups, ["frechet_distance", "distance"]).startswith(
        "| interval | runs | FD (Fréchet distance) | loss |"
    )
    assert as_markdown(groups, ["kernel"]).startswith("| interval | runs | kernel | loss |")


def test_numbers_that_are_not_finite_are_left_out():
    groups = summarize([outcome(1, 0, float("nan")), outcome(1, 1, 2.0)])
    assert groups[0].numbers["loss"] == (2.0, 0.0, 1)
