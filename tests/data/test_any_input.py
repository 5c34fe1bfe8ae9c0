"""Any input to any reader is loaded, or refused in one line; rows on disk are those in memory."""

import io
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

import adance
import adance.data.rows
from adance.data import LazyRows, load_data
from adance.data.hub import HUB, _rows
from adance.errors import InputError

FUZZ = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
pytestmark = pytest.mark.filterwarnings("ignore")


def attempt(load, *args, **options):
    """The data set, or its refusal."""
    message = ""
    try:
        return load(*args, **options)
    except InputError as error:
        message = str(error)
    assert message
    assert "\n" not in message
    return None


@contextmanager
def little_memory():
    rows = adance.data.rows
    before = rows.IN_MEMORY, rows.CHUNK
    rows.IN_MEMORY, rows.CHUNK = 0, 5
    try:
        yield
    finally:
        rows.IN_MEMORY, rows.CHUNK = before


ANY_DTYPE = st.one_of(
    hnp.boolean_dtypes(), hnp.integer_dtypes(endianness="?"), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes()
)
SHAPES = hnp.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=4)


@FUZZ
@given(hnp.arrays(ANY_DTYPE, SHAPES), st.booleans())
def test_an_array_on_disk_is_the_one_in_memory(tmp_path, array, turned):
    np.save(tmp_path / "fuzz.npy", np.asfortranarray(array) if turned else array)
    with little_memory():
        lazy = attempt(load_data, tmp_path / "fuzz.npy")
        # by chunks of the same size: a sum of other chunks may round differently
        adance.data.rows.IN_MEMORY = 2**30
        data = attempt(load_data, tmp_path / "fuzz.npy")
        assert (lazy is None) == (data is None)
        if data is not None:
            assert isinstance(lazy.train, LazyRows)
            assert lazy.transform == data.transform
            for split in ("train", "test"):
                rows = torch.arange(len(getattr(data, split)))
                assert torch.equal(getattr(lazy, split)[rows], getattr(data, split))
                assert torch.equal(lazy.batch(rows, split), data.batch(rows, split))


FORMATS = [("png", "L"), ("png", "P"), ("png", "RGBA"), ("jpeg", "RGB"), ("gif", "P"), ("bmp", "RGB"), ("tiff", "LA"),
           ("webp", "RGBA"), ("ppm", "RGB")]  # fmt: skip


def encoded(suffix, mode):
    file, levels = io.BytesIO(), np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    Image.fromarray(levels).convert(mode).save(file, suffix)
    return file.getvalue()


@FUZZ
@given(st.sampled_from(FORMATS), st.data())
def test_any_damage_to_a_picture(tmp_path, kind, data):
    content = bytearray(encoded(*kind))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(content[:cut])
    for load in (load_data, lambda path: load_data(path, image_size=4)):
        found = attempt(load, tmp_path)
        assert found is None or found.train.dtype == torch.uint8
    with little_memory():
        lazy = attempt(load_data, tmp_path)
        if lazy is not None:
            attempt(lazy.batch, torch.arange(1))


PLACES = [
    "train",
    "Test",
    "val",
    "a",
    "B",
    "7",
    "07",
    ".hidden",
    "a/b",
    "train/a",
    "train/7",
    "test/a",
    "train/a/b",
    "",
]


@FUZZ
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(["1.png", "2.PNG", ".3.png", "4.txt"])), max_size=6))
@example([("train", "1.png"), ("Test", "1.png")])
def test_any_layout_of_a_folder(tmp_path_factory, files):
    root, content = tmp_path_factory.mktemp("layout"), encoded("png", "L")
    for place, name in files:
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / name).write_bytes(content)
    visible = {
        (place, name) for place, name in files if name[0] != "." and ".hidden" not in place and "txt" not in name
    }
    data = attempt(load_data, root)
    if data is not None:
        found, unused = len(data.train) + len(data.test), {file for file in visible if file[0] == "val"}
        assert len(visible - unused) <= found <= len(visible)


NAMES = st.sampled_from(["a", "b", "class", "y", "x", 0, 1, "", "é"])
CELLS = st.sampled_from([0, 1.5, -3, "", "u", "7", "07", None, float("nan"), float("inf"), True, 10**30])


@FUZZ
@given(st.lists(st.tuples(NAMES, st.lists(CELLS, min_size=3, max_size=3)), max_size=4))
def test_any_frame(columns):
    pd = pytest.importorskip("pandas")
    frame = pd.concat([pd.Series(cells, name=name) for name, cells in columns] or [pd.Series(dtype=float)], axis=1)
    for typed in (frame, frame.convert_dtypes(), frame.astype(object)):
        data = attempt(load_data, typed)
        if data is not None:
            assert data.batch(torch.arange(len(data.train))).isfinite().all()
            assert len(data.train) + len(data.test) == 3


class Stored:
    """A split as `datasets` gives it."""

    column_names = ("image", "label")

    def __init__(self, pictures, labels):
        self.pictures, self.labels = pictures, labels

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, column):
        return self.labels

    def select_columns(self, names):
        return self

    def cast_column(self, name, kind):
        return [{"image": picture} for picture in self.pictures]


MODES = st.sampled_from(["1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "I", "F", "LAB"])
PICTURES = st.lists(st.tuples(MODES, st.sampled_from([(8, 8), (8, 8), (9, 8)])), max_size=4)
LABELS = st.lists(st.sampled_from([0, 1, -1, "7", "07", "u", "", None, 1.5, 2**70]), min_size=4, max_size=4)


@FUZZ
@given(PICTURES, LABELS, st.none() | st.just(5))
def test_any_rows_of_a_hub_set(pictures, labels, size):
    pytest.importorskip("datasets")
    from adance.data.arrays import make_splits

    images = [Image.new(mode, shape, 1) for mode, shape in pictures]
    stored = Stored(images, labels[: len(images)])

    def load():
        return make_splits("mnist", _rows(stored, HUB["mnist"], "mnist train", size))

    splits = attempt(load)
    if splits is not None:
        assert splits.train.dtype == torch.uint8
        assert len(splits.train) == len(images) == len(splits.train_labels)
