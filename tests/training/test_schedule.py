import pytest

from adance.errors import InputError
from adance.training import Settings, Trainer
from adance.training.schedule import learning_rate, warn_of_new_steps


def rates(at, **settings):
    made = Settings(**{"steps": 1000, "lr": 0.5, "schedule": "constant", **settings})
    return [learning_rate(made, step) for step in at]


def test_constant():
    assert rates([1, 500, 1000]) == [0.5] * 3


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_falling_schedules_are_constant_for_a_half_and_end_at_two_percent(schedule):
    assert rates([1, 499, 500], schedule=schedule) == [0.5] * 3
    assert rates([750], schedule=schedule) == [pytest.approx(0.25)]
    assert rates([1000], schedule=schedule) == [pytest.approx(0.01)]
    falling = rates(range(500, 1001), schedule=schedule)
    assert falling == sorted(falling, reverse=True)
    assert min(falling) == pytest.approx(0.01)


def test_linear_and_cosine_part_on_the_way():
    assert rates([625, 875], schedule="linear") == pytest.approx([0.375, 0.125])
    assert rates([625, 875], schedule="cosine") == pytest.approx([0.25 * (1 + 2**-0.5), 0.25 * (1 - 2**-0.5)])


def test_inverse_falls_from_its_step_on_whatever_the_number_of_steps():
    for total in (100, 1000, 10**6):
        got = rates([1, 39, 40, 80, 400], schedule="inverse", decay_after=40, steps=total)
        assert got == pytest.approx([0.5, 0.5, 0.5, 0.25, 0.05])
    assert rates([20, 80], schedule="inverse", decay_after=40, warmup=160) == pytest.approx([0.0625, 0.125])


def test_warmup_rises_from_the_first_step():
    assert rates([1, 2, 5, 10, 11], warmup=10) == pytest.approx([0.05, 0.1, 0.25, 0.5, 0.5])


def test_warmup_longer_than_a_falling_schedule_multiplies_it():
    assert rates([750], warmup=1500, schedule="linear") == [pytest.approx(0.125)]


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [
        ("steps", [-1], [0]),
        ("batch_size", [0, -3], [1]),
        ("lr", [0.0, -1.0, float("nan")], [1e-9]),
        ("betas", [(0.1, 1.0), (-0.1, 0.9)], [(0.0, 0.0)]),
        ("schedule", ["stepwise", "", None], ["inverse", "constant", "linear", "cosine"]),
        ("decay_after", [0, -1], [1]),
        ("warmup", [-1], [0]),
        ("grad_clip", [0.0, -1.0, float("nan")], [None, 1e-3]),
        ("ema", [1.0, -0.1, float("nan")], [0.0, 0.9999]),
        ("data_noise", [-0.1, float("nan")], [0.0]),
        ("energy_limit", [0.0, -1.0, float("nan")], [float("inf")]),
        ("seed", [-1, 2**32], [0, 2**32 - 1]),
        ("log_every", [0], [1]),
        ("sample_every", [-1], [0]),
        ("checkpoint_every", [0], [1]),
    ],
)
def test_settings_out_of_range_are_named(name, bad, good):
    for value in good:
        assert getattr(Settings(**{name: value}), name) == value
    for value in bad:
        with pytest.raises(InputError, match=f"^{name} must be .*, got"):
            Settings(**{name: value})


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_more_steps_of_a_schedule_that_depends_on_them_warn(schedule, train, points, tmp_path):
    train("fixed", schedule=schedule)
    with pytest.warns(UserWarning, match=rf"schedule={schedule} depends on steps: .* step 20 is 0\.001, not 2e-05"):
        assert Trainer.resume(tmp_path / "run", data=points, steps=40, show_progress=False).step == 20


@pytest.mark.parametrize("settings", [{"schedule": "inverse", "steps": 40}, {"schedule": "cosine", "steps": 20}])
def test_other_schedules_and_the_same_steps_do_not(settings, recwarn):
    warn_of_new_steps(Settings(steps=20, schedule=settings["schedule"]), settings["steps"])
    assert not recwarn.list


def test_warmup_longer_than_training_warns(train):
    with pytest.warns(UserWarning, match="warmup=9000 is longer than steps=20: .* only 2.22e-06"):
        train("fixed", warmup=9000)
