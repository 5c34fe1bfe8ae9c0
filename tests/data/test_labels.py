import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adance
from adance.data.labels import labels
from adance.data.numerals import number, whole_number
from adance.errors import InputError


def coded(*parts):
    found = labels([(np.array(part), len(part), f"y{i}") for i, part in enumerate(parts)])
    return [codes.tolist() for codes in found]


def refused(message, *parts):
    with pytest.raises(InputError, match=message) as caught:
        labels([(part, len(part), f"y{i}") for i, part in enumerate(parts)])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "codes"),
    [
        ([["2", "10", "2"]], [[2, 10, 2]]),
        ([["2", "10"], ["3"]], [[2, 10], [3]]),
        ([["2", "10"], [3]], [[2, 10], [3]]),
        ([["2", "b", "10"]], [[1, 2, 0]]),
        ([["b", "a"], ["c"]], [[1, 0], [2]]),
        ([["-1", "+3", "007"]], [[-1, 3, 7]]),
        ([["9007199254740993"]], [[9007199254740993]]),
        ([["9" * 30, "1"]], [[1, 0]]),
        ([[True, False]], [[1, 0]]),
    ],
)
def test_names_that_are_whole_numbers_are_those_numbers(parts, codes):
    assert coded(*parts) == codes


def test_labels_that_are_refused():
    texts, numbers = np.array(["a", "b"]), np.array([1, 2])
    refused(r"y0: labels are names, but those of the other split are numbers", texts, numbers)
    refused(r"y1: the label of row 1 \(from 0\) is empty", texts, np.array(["a", ""]))
    refused(r"y1: the label of row 0 \(from 0\) is missing", numbers, np.array([None, 3], dtype=object))
    refused(r"y0: label 'b' of row 1 \(from 0\) differs in type from those before", np.array([1, "b"], dtype=object))
    refused(r"more than 64 bits", np.array([2**70, 1], dtype=object))
    refused(r"y0: labels '1' and '01' are the same number|'01' and '1'", np.array(["1", "01"]))
    refused(r"y0: label nan of row 1 is not a whole number", np.array([1.0, np.nan]))
    with pytest.raises(InputError, match=r"y: labels have shape \(3,\), but must have one for each row, \(2,\)"):
        labels([(np.arange(3), 2, "y")])


def test_every_reader_numbers_whole_names_alike(tmp_path):
    pd = pytest.importorskip("pandas")
    x, names = np.arange(12.0).reshape(6, 2) ** 2, ["2", "10", "10", "2", "10", "2"]
    expected = [int(name) for name in names]
    np.savez(tmp_path / "a.npz", x=x, x_test=x, y=np.array(names), y_test=np.array(names))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "class": names})
    frame.to_csv(tmp_path / "a.csv", index=False)
    for data in (
        adance.load_data(tmp_path / "a.npz"),
        adance.Dataset.from_arrays(x, x, names, names),
        adance.Dataset.from_arrays(frame, frame),
        adance.Dataset.from_arrays(frame.astype({"class": "category"}), frame),
    ):
        assert data.train_labels.tolist() == expected
        assert data.test_labels.tolist() == expected
    assert set(adance.load_data(tmp_path / "a.csv", held_out=0.5).train_labels.tolist()) <= {2, 10}


@pytest.mark.parametrize("missing", [None, float("nan"), "NA of pandas"])
def test_a_missing_label_is_named_with_its_row(missing):
    pd = pytest.importorskip("pandas")
    missing = pd.NA if missing == "NA of pandas" else missing
    for names in (["a", "b", missing, "a"], [1, 2, missing, 1]):
        frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "class": pd.Series(names, dtype=object)})
        message = r"label column 'class': the label of row 2 \(from 0\) is missing"
        for kind in (object, "category", None):
            typed = frame if kind is None else frame.astype({"class": kind})
            with pytest.raises(InputError, match=message):
                adance.load_data(typed)
        with pytest.raises(InputError, match=r"y_train: the label of row 2 \(from 0\) is missing"):
            adance.Dataset.from_arrays(frame[["x"]], y_train=names)


@given(st.floats(allow_nan=False) | st.integers(-(10**20), 10**20))
def test_a_number_is_read_to_the_last_bit(value):
    assert number(repr(value)) == float(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_whole_number_is_exact(value):
    assert whole_number(str(value)) == value


@given(st.text(alphabet="0123456789_.,-+eE na٣", max_size=8))
def test_what_is_a_number_is_one_to_python_too(text):
    value = number(text)
    if value is not None:
        assert value == float(text) or value != value
    if "_" in text or "٣" in text or "," in text:
        assert value is None
    whole = whole_number(text)
    assert whole is None or float(text) == whole
