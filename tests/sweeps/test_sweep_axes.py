import pytest

from adance.errors import InputError
from adance.sweeps import Axis, combinations, run_names


def test_an_axis_is_read_with_and_without_init_args():
    assert Axis.parse("objective.interval=1,5,10") == Axis("objective.interval", ("1", "5", "10"))
    assert Axis.parse("objective.init_args.interval=1") == Axis("objective.interval", ("1",))
    assert Axis.parse("--seed=0, 1").values == ("0", "1")


def test_commas_inside_brackets_do_not_separate():
    assert Axis.parse("betas=[0.0,0.9],[0.5,0.999]").values == ("[0.0,0.9]", "[0.5,0.999]")
    assert Axis.parse("energy.hidden=[16],[16,16]").values == ("[16]", "[16,16]")


@pytest.mark.parametrize("text", ["interval", "=1,2", "interval=", "interval=1,,2", "seed=0,0"])
def test_what_is_no_axis_is_refused(text):
    with pytest.raises(InputError, match="--over"):
        Axis.parse(text)


def test_every_combination_is_there_once_in_order():
    points = combinations([Axis("objective.interval", ("1", "5")), Axis("seed", ("0", "1"))])
    assert run_names(points) == ["interval=1,seed=0", "interval=1,seed=1", "interval=5,seed=0", "interval=5,seed=1"]


def test_names_are_as_long_as_it_takes_to_tell_settings_apart():
    points = combinations([Axis("steps", ("9",)), Axis("objective.sampler.steps", ("3",)), Axis("a.steps", ("1",))])
    assert run_names(points) == ["steps=9,sampler.steps=3,a.steps=1"]


def test_names_hold_nothing_that_a_folder_cannot():
    assert run_names([{"data": "../x y.npz"}]) == ["data=.._x_y.npz"]
    with pytest.raises(InputError, match="have the same name"):
        run_names([{"data": "a/b"}, {"data": "a b"}])


def test_no_axis_and_an_axis_twice_are_refused():
    with pytest.raises(InputError, match="at least one --over"):
        combinations([])
    with pytest.raises(InputError, match="given twice"):
        combinations([Axis("seed", ("0",)), Axis("seed", ("1",))])


def test_commas_inside_nested_brackets_do_not_separate():
    one, two = '{"a": {"b": 1, "c": [2, 3]}}', '{"a": {"b": 4, "c": [5, 6]}}'
    assert Axis.parse(f"x={one},{two}").values == (one, two)


def test_one_number_written_in_two_ways_is_there_twice():
    with pytest.raises(InputError, match="a value is repeated"):
        Axis.parse("lr=1e-3,0.001")
