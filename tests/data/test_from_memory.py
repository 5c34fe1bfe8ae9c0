import subprocess
import sys

import numpy as np
import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

import adance
from adance.cli import main
from adance.data import load_for_model
from adance.errors import InputError

R = np.random.default_rng(0)
VECTORS = R.normal(5, 2, (50, 3))
BYTES = R.integers(0, 256, (20, 6, 5), dtype=np.uint8)
FIELDS = ("train", "test", "train_labels", "test_labels")


def same(a, b):
    assert (a.kind, a.transform, a.columns) == (b.kind, b.transform, b.columns)
    for field in FIELDS:
        one, other = getattr(a, field), getattr(b, field)
        assert (one is None) == (other is None)
        assert one is None or (one.dtype == other.dtype and torch.equal(one, other))


def attempt(load, *args, **arrays):
    """The data set, or None and the message of its refusal."""
    try:
        return load(*args, **arrays), ""
    except InputError as error:
        return None, str(error)


def refused(*words, frame=None, **arrays):
    data, message = attempt(adance.Dataset.from_arrays, **arrays) if frame is None else attempt(adance.load_data, frame)
    assert data is None
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "array", [VECTORS, BYTES, BYTES / 255, BYTES > 99, R.random((9, 4, 4, 3)), R.random((9, 3, 4, 4))]
)
def test_an_array_is_read_as_its_file_is(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    data = adance.load_data(array, seed=3, held_out=0.2)
    same(data, adance.load_data(tmp_path / "a.npy", seed=3, held_out=0.2))
    same(data, adance.load_data(torch.from_numpy(array), seed=3, held_out=0.2))
    same(data, adance.Dataset.from_arrays(array, seed=3, held_out=0.2))
    assert data.source is None


def test_splits_and_labels(tmp_path):
    arrays = {"x_train": BYTES, "x_test": BYTES[:4], "y_train": np.arange(20) % 3, "y_test": np.arange(4)}
    np.savez(tmp_path / "a.npz", **arrays)
    data = adance.Dataset.from_arrays(**{name: torch.from_numpy(array) for name, array in arrays.items()}, name="mine")
    same(data, adance.load_data(tmp_path / "a.npz"))
    assert data.name == "mine"
    names = adance.Dataset.from_arrays(BYTES, BYTES[:2], ["b", "c"] * 10, np.array(["c", "a"], dtype=object))
    assert names.train_labels[:2].tolist() == [1, 2]
    assert names.test_labels.tolist() == [2, 0]


@pytest.mark.parametrize("array", [VECTORS, BYTES, BYTES > 99, R.random((9, 4, 4)).astype(np.float32)])
@pytest.mark.parametrize("of", [np.asarray, torch.from_numpy])
def test_the_data_are_a_copy(array, of):
    array = array.copy()
    given, labels = of(array), np.arange(len(array))
    data = adance.Dataset.from_arrays(given, given, labels, labels)
    before = data.train.clone()
    array[:], labels[:] = 0, 7
    assert torch.equal(data.train, before)
    data.train[:], data.train_labels[:] = 1, 9
    assert (array == 0).all()
    assert (labels == 7).all()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x_train": np.array([[1.0, np.nan], [0, 1]])}, ["x_train: row 0", "nan"]),
        ({"x_train": VECTORS, "x_test": VECTORS[:, :2]}, ["(3,)", "(2,)"]),
        ({"x_train": VECTORS, "x_test": np.array([[1.0, np.inf, 2]])}, ["x_test: row 0", "inf"]),
        ({"x_train": VECTORS, "y_train": np.arange(49)}, ["y_train", "(49,)", "(50,)"]),
        ({"x_train": VECTORS, "y_test": np.arange(50)}, ["y_test", "without x_test"]),
        ({"x_train": np.array([[None, 1.0]])}, ["x_train", "object"]),
        ({"x_train": VECTORS[:0]}, ["x_train", "(0, 3)", "empty"]),
        ({"x_train": VECTORS[:1]}, ["data: 1 training row"]),
        ({"x_train": VECTORS[0]}, ["x_train", "1 axes"]),
        ({"x_train": [[1.0], [2.0, 3.0]]}, ["x_train", "inhomogeneous"]),
        ({"x_train": np.ma.array(VECTORS, mask=VECTORS > 5)}, ["x_train", "masked"]),
        ({"x_train": torch.ones(4, 3).to_sparse()}, ["x_train", "Sparse"]),
        ({"x_train": VECTORS, "held_out": 2}, ["held_out must be between 0 and 1, got 2"]),
        ({"x_train": VECTORS, "seed": -1}, ["seed"]),
    ],
)
def test_what_cannot_be_learned_from_is_refused(arrays, words):
    refused(*words, **arrays)


def test_an_image_size_is_for_files():
    with pytest.raises(InputError, match="image_size"):
        adance.load_data(VECTORS, image_size=8)


def test_a_frame_is_read_as_its_table_is(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": VECTORS[:, 0], "b": np.arange(50), "kind": ["u", "v"] * 25})
    for columns in (["a", "b", "kind"], ["a", "b"], ["b", "a"]):
        frame[columns].to_csv(tmp_path / "t.csv", index=False)
        data, read = adance.load_data(frame[columns], seed=1), adance.load_data(tmp_path / "t.csv", seed=1)
        same(data, read)
    data = adance.load_data(frame)
    assert data.columns == ("a", "b")
    torch.testing.assert_close(
        load_for_model(frame, data.describe()), data.transform.to_model(torch.from_numpy(frame[["a", "b"]].to_numpy()))
    )
    with pytest.raises(InputError, match="columns are b, a, but the model was trained on a, b"):
        load_for_model(frame[["b", "a"]], data.describe())


def test_labels_of_frames_are_numbered_together():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2, 4], "class": ["u", "v", "w"]})
    data = adance.Dataset.from_arrays(frame[1:], frame[:2])
    assert (data.train_labels.tolist(), data.test_labels.tolist()) == ([1, 2], [0, 1])
    whole = pd.DataFrame({"a": [1.0, 2, 4], "y": pd.array([2, 0, 2], dtype="Int64")})
    assert adance.Dataset.from_arrays(whole, whole).train_labels.tolist() == [2, 0, 2]


def test_frames_that_are_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2, 3], "s": list("xyz"), "o": [None, "1", 2], "b": [1, 2, 3]})
    frame["when"], frame["c"] = pd.date_range("2020", periods=3), 0.5
    refused("columns must be numbers", "'s', 'o', 'when'", frame=frame)
    missing = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1, 2, 3]})
    refused("row 1", "column 'a'", "missing", frame=missing)
    refused("'class', 'label'", frame=pd.DataFrame({"class": [1, 2], "label": [1, 2], "a": [1, 2]}))
    refused("empty", frame=pd.DataFrame())
    refused("only labels", frame=pd.DataFrame({"y": [1, 2]}))
    numbers = frame[["a", "b"]]
    refused("('a', 'b')", "('b', 'a')", x_train=numbers, x_test=frame[["b", "a"]])
    refused("labels are given twice", x_train=numbers.assign(y=1), y_train=[1, 2, 3])


def test_pandas_is_not_imported_to_find_out():
    code = "import sys, numpy, adance; adance.load_data(numpy.eye(4)); sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


ANY_DTYPE = st.one_of(
    hnp.boolean_dtypes(), hnp.integer_dtypes(endianness="?"), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(),
    hnp.complex_number_dtypes(), hnp.unicode_string_dtypes(max_len=3), hnp.datetime64_dtypes(),
)  # fmt: skip
ANY_ARRAY = hnp.arrays(ANY_DTYPE, hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
PARTS = ("x_train", "x_test", "y_train", "y_test")


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from(PARTS), ANY_ARRAY), ANY_ARRAY)
def test_any_arrays_are_read_as_their_file_is_or_refused_in_one_line(tmp_path, arrays, x):
    arrays = {"x_train": x} | arrays
    before = {name: array.tobytes() for name, array in arrays.items()}
    np.savez(tmp_path / "fuzz.npz", **arrays)
    data, message = attempt(adance.Dataset.from_arrays, **arrays)
    assert "\n" not in message
    if "without x_test" not in message:  # a file's are left out, with a warning
        read, _ = attempt(adance.load_data, tmp_path / "fuzz.npz")
        assert (data is None) == (read is None)
        if data is not None:
            same(data, read)
    assert {name: array.tobytes() for name, array in arrays.items()} == before


def test_a_run_on_data_in_memory_asks_for_them_again(tmp_path):
    def trained(data, steps):
        run = adance.Trainer(
            adance.MLP(data.event_shape, [8]), adance.NCE(), data, adance.Settings(steps=steps, batch_size=16),
            tmp_path / "run", show_progress=False,
        )  # fmt: skip
        return run.fit()

    data = adance.load_data(VECTORS)
    run = trained(data, 4)
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text())["data"] is None
    with pytest.raises(InputError, match=r"cannot load the data, which were in memory.*data=\.\.\."):
        run.reload_data()
    with pytest.raises(InputError, match=r"data=\.\.\."):
        adance.Trainer.resume(tmp_path / "run", steps=6)
    with pytest.raises(InputError, match="have changed"):
        adance.Trainer.resume(tmp_path / "run", adance.load_data(VECTORS + 1), steps=6)
    again = adance.Trainer.resume(tmp_path / "run", adance.load_data(VECTORS), steps=6, show_progress=False).fit()
    assert again.step == 6


def test_commands_open_a_run_on_points_in_memory(tmp_path, capsys):
    data = adance.load_data(VECTORS[:, :2])
    settings = adance.Settings(steps=4, batch_size=16)
    out = tmp_path / "run"
    adance.Trainer(adance.MLP((2,), [8]), adance.NCE(), data, settings, out, show_progress=False).fit()
    assert main(["sample", str(out), "--n", "4", "--steps", "2"]) == 0
    assert Image.open(out / "samples/sample-0.png").size == (630, 630)
    config = ["train", "--config", str(out / "config.yaml"), "--out", str(tmp_path / "again"), "--quiet"]
    assert main(config) == 2
    assert "data is null" in capsys.readouterr().err
    np.save(tmp_path / "a.npy", VECTORS[:, :2])
    assert main([*config, "--data", str(tmp_path / "a.npy")]) == 0
