from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adance.commands.sample import _write_table
from adance.data import Identity, load_data, load_for_model, read_table
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
        ("a;b\n1,5;2,25\n-,5;4e1\n", [[1.5, 2.25], [-0.5, 40]], None),
        ("1,5;2,5\n3,5;4,5\n", [[1.5, 2.5], [3.5, 4.5]], None),
        ("1,5\t2\n3,5\t4\n", [[1.5, 2], [3.5, 4]], None),
        ("a,class\n1,10\n2,2\n", [[1], [2]], [10, 2]),
        ("a,class\n1,02\n2,10.0\n", [[1], [2]], [2, 10]),
        ("a,class\n1,NA\n2,b\n", [[1], [2]], [0, 1]),
        ("a,class\n1,1_0\n2,9\n", [[1], [2]], [0, 1]),
        ("a,b\n0.1,0.30000000000000004\n1e-320,2\n", [[0.1, 0.30000000000000004], [1e-320, 2]], None),
        ("a\n1\n2\n\n", [[1], [2]], None),
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
        ("1_000,2_000\n3,4\n", ["line 1, column 1", "'1_000' is not a number"]),
        ("a,b\n1,1_000\n2,2_000\n", ["line 2, column 'b'", "'1_000' is not a number"]),
        ("a,b\n1,\u0661\n2,\u0662\n", ["line 2, column 'b'", "is not a number"]),
        ('a,b\n"1,5","2,5"\n', ["line 2, column 'a'", "'1,5' is not a number"]),
        ("a;b\n1,5;2.5\n", ["'1,5' in line 2 has a decimal comma, but '2.5' in line 2 has a decimal point"]),
        ("a;b\n1.234,5;2\n", ["line 2, column 'a'", "'1.234,5' is not a number"]),
        ("a,class\n1,01\n2,1\n", ["label column 'class'", "'01' and '1' are the same number"]),
        ("a,class\n1,1.0\n2,1\n", ["'1' and '1.0' are the same number"]),
        ("1,2\n,\n3,4\n", ["line 2, column 1", "empty"]),
        ("1\n\n3\n", ["line 2 is empty", "missing value"]),
        ("NA,NA\n1,2\n", ["line 1, column 1", "'NA' is not a number"]),
        ("1 2\n3 4\n", ["line 1, column 1", "'1 2' is not a number"]),
        ('1,"2\n3,4\n', ["UTF-8 table", "unexpected end of data"]),
        ("1,a\n2,3\n", ["line 1, column 2", "'a' is not a number"]),
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


@pytest.mark.parametrize("columns", [None, ["a", "b"], ["0", "1"]])
def test_samples_are_written_as_a_table_that_is_read(tmp_path, columns):
    model, rows = SimpleNamespace(data={"columns": columns}, transform=Identity()), torch.randn(5, 2)
    _write_table(model, rows, tmp_path / "x.csv")
    assert torch.equal(read_table(tmp_path / "x.csv").train, rows.double())


@pytest.mark.parametrize("text", ["0,1\n2,3\n4,5\n", "0,1,2\n5,6,7\n8,9,4\n"])
def test_a_first_line_of_numbers_is_data(written, text):
    with pytest.warns(UserWarning, match="of the first line are read as data"):
        read = read_table(written(text)).train
    assert read.tolist() == [[float(cell) for cell in line.split(",")] for line in text.split()]


def test_scoring_reads_the_first_line_as_training_did(written):
    trained = written("0,1\n2,3\n4,5\n", "trained.csv")
    with pytest.warns(UserWarning, match="read as data"):
        description = load_data(trained, held_out=0.3).describe()
    with pytest.warns(UserWarning, match="read as data"):
        assert len(load_for_model(trained, description)) == 3
    named = {**description, "columns": ["0", "1"]}  # of a DataFrame
    with pytest.warns(UserWarning, match="as the names of the columns, as in training"):
        assert len(load_for_model(trained, named)) == 2
    with pytest.raises(InputError, match="columns are 1, 0, but the model was trained on 0, 1"):
        load_for_model(written("1,0\n2,3\n"), named)


def test_a_column_of_one_value_is_told_of(written):
    path = written("a,b,c\n1,7,0\n2,7,0\n3,7,1\n4,7,0\n5,7,0\n6,7,1\n")
    with pytest.warns(UserWarning, match=r"column 'b' has the same value in all training rows, .* leave it out"):
        load_data(path)
