import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adance.data import load_data, read_table
from adance.errors import InputError


@pytest.fixture
def written(tmp_path):
    def write(text, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def attempt(path):
    """The data set, or None and the message of its refusal."""
    try:
        return load_data(path), ""
    except InputError as error:
        return None, str(error)


def refused(path, *words):
    with pytest.raises(InputError) as caught:
        load_data(path)
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message


def test_header_and_class_names(written):
    splits = read_table(written("a,b,class\n1,2,g\n3,4,h\n\n5,6,g\n"))
    assert splits.train.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert splits.train_labels.tolist() == [0, 1, 0]
    data = load_data(written("a,b,class\n1,2,g\n3,4,h\n\n5,6,g\n"))
    assert (data.kind, data.event_shape, len(data.train), len(data.test)) == ("vector", (2,), 2, 1)


@pytest.mark.parametrize(
    ("text", "rows", "labels"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]], None),
        ("\ufeffa,b\r\n1,2\r\n3,4\r\n", [[1, 2], [3, 4]], None),
        ("1,2,g\n3,4,h\n", [[1, 2], [3, 4]], [0, 1]),
        ("Target,b\n7,2\n9,4\n", [[2], [4]], [7, 9]),
        ("x,y\n1,2\n3,4\n", [[1, 2], [3, 4]], None),
        ("a,y\n1,2\n3,4\n", [[1], [3]], [2, 4]),
        ("a;b\n1;2\n3;4\n", [[1, 2], [3, 4]], None),
        ('"a, b",c\n1, 2\n3, 4\n', [[1, 2], [3, 4]], None),
    ],
)
def test_layouts(written, text, rows, labels):
    splits = read_table(written(text))
    assert splits.train.tolist() == rows
    assert splits.train.dtype == torch.float64
    assert (splits.train_labels is None) if labels is None else (splits.train_labels.tolist() == labels)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no rows"]),
        ("a,b\n", ["no rows"]),
        ("a,b\n1,2\n3,\n", ["line 3", "'b'", "empty"]),
        ("a,b\n1,2\nnan,3\n", ["line 3", "'a'", "'nan'"]),
        ("1,2\n3,inf\n", ["line 2", "column 2", "'inf'"]),
        ("a,b,c\n1,2,3\n1,two,3\n", ["line 3", "'b'", "'two'", "not a number"]),
        ("a,b,c\n1,2,3\n1,2,x\n", ["line 3", "'c'", "'x'"]),
        ("a,b\n1,2\n3\n", ["line 3", "1 cells", "2"]),
        ("class,target,b\n1,2,3\n", ["'class', 'target'"]),
        ("a,class\n1,\n2,g\n", ["line 2", "'class'", "label is empty"]),
        ("a,class\n1,0.5\n2,1\n", ["'class'", "0.5"]),
        ("class\ng\nh\n", ["only labels"]),
        ("a,b\n1,2\n", ["1 training row"]),
        (b"a,b\n\xff\xfe,2\n", ["UTF-8"]),
    ],
)
def test_bad_table(written, text, words):
    refused(written(text), *words)


CELL = st.sampled_from(["1", "2.5", "-3e2", "", "nan", "inf", "1e400", "g", "class", "y", '"', "'", "\x00", "é", " "])
TEXT = st.lists(st.lists(CELL, max_size=4).map(",".join), max_size=5).map("\n".join)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(TEXT | st.text(alphabet='1,;\t\n\r"ay.', max_size=30))
def test_any_text_loads_or_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "fuzz.csv"
    path.write_bytes(text.encode())
    data, message = attempt(path)
    assert "\n" not in message
    if data is not None:
        assert data.batch(torch.arange(len(data.train))).isfinite().all()


def test_counted_columns_are_a_header(tmp_path):
    table = tmp_path / "counted.csv"
    table.write_text("0,1,2\n5,6,7\n8,9,4\n")
    assert read_table(table).train.tolist() == [[5, 6, 7], [8, 9, 4]]


def test_a_column_of_one_value_is_told_of(written):
    path = written("a,b,c\n1,7,0\n2,7,0\n3,7,1\n4,7,0\n5,7,0\n6,7,1\n")
    with pytest.warns(UserWarning, match=r"column 'b' has the same value in all training rows, .* leave it out"):
        load_data(path)
