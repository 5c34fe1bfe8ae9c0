"""Rows that stay on disk give the results of the same rows in memory, to the bit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import adance
from adance.data import LazyRows, load_for_model
from adance.data.moments import column_moments
from adance.data.transforms import Standardize
from adance.errors import InputError
from adance.evaluation.cache import content_key

R = np.random.default_rng(0)
VECTORS = R.normal(5, 2, (300, 3)) * [1, 1e-3, 1e6]
BYTES = R.integers(0, 256, (60, 6, 5), dtype=np.uint8)
ARRAYS = {
    "vectors": VECTORS,
    "float32 vectors": VECTORS.astype(np.float32),
    "big-endian vectors": VECTORS.astype(">f8"),
    "columns first": np.asfortranarray(VECTORS),
    "bytes": BYTES,
    "int64 images": BYTES.astype(np.int64),
    "floats": BYTES / 255,
    "booleans": BYTES > 99,
    "channels last": R.integers(0, 256, (60, 4, 5, 3), dtype=np.uint8),
}


@pytest.fixture
def on_disk(monkeypatch):
    """Load with little memory: at most 100 values at a time."""
    monkeypatch.setattr("adance.data.rows.CHUNK", 100)

    def load(path, **options):
        monkeypatch.setattr("adance.data.rows.IN_MEMORY", 0)
        data = adance.load_data(path, **options)
        monkeypatch.setattr("adance.data.rows.IN_MEMORY", 2**30)
        return data

    return load


def same(lazy, data):
    assert isinstance(lazy.train, LazyRows)
    assert isinstance(data.train, torch.Tensor)
    assert lazy.transform == data.transform
    assert repr(lazy) == repr(data)
    for split in ("train", "test"):
        one, other = getattr(lazy, split), getattr(data, split)
        assert tuple(one.shape) == tuple(other.shape)
        assert torch.equal(one[:], other)
        assert content_key(one) == content_key(other)
        for index in (0, -1, slice(1, -1, 2), torch.tensor([-1, 0]), other.flatten(1)[:, 0] == other.flatten(1)[0, 0]):
            assert torch.equal(one[index], other[index])
        rows = torch.randperm(len(other))[:7]
        x, y = lazy.batch(rows, split), data.batch(rows, split)
        assert torch.equal(x, y)
        assert x.is_contiguous()
        assert y.is_contiguous()


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_on_disk_are_those_in_memory(on_disk, tmp_path, name):
    np.save(tmp_path / "a.npy", ARRAYS[name])
    data = adance.load_data(tmp_path / "a.npy", seed=3)
    same(on_disk(tmp_path / "a.npy", seed=3), data)


def test_training_is_the_same_to_the_bit(on_disk, tmp_path):
    np.save(tmp_path / "a.npy", VECTORS)
    weights = []
    for i, load in enumerate((adance.load_data, on_disk)):
        data = load(tmp_path / "a.npy")
        torch.manual_seed(0)
        energy, settings = adance.MLP(data.event_shape, [8]), adance.Settings(steps=20, batch_size=16)
        run = adance.Trainer(energy, adance.NCE(), data, settings, tmp_path / str(i), show_progress=False).fit()
        weights.append(torch.cat([weight.flatten() for weight in run.energy.parameters()]))
    assert torch.equal(*weights)


def test_a_mapped_array_in_python_stays_on_disk(on_disk, tmp_path):
    np.save(tmp_path / "a.npy", BYTES)
    same(on_disk(np.load(tmp_path / "a.npy", mmap_mode="r")), adance.load_data(BYTES))


def test_rows_are_scored_from_disk(on_disk, tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", VECTORS)
    description = adance.load_data(tmp_path / "a.npy").describe()
    expected = load_for_model(tmp_path / "a.npy", description)
    monkeypatch.setattr("adance.data.rows.IN_MEMORY", 0)
    assert torch.equal(load_for_model(tmp_path / "a.npy", description), expected)


def test_a_bad_value_is_named_by_its_row_in_the_file(on_disk, tmp_path):
    array = VECTORS.copy()
    array[250, 1] = np.nan
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(InputError, match=r"row 250 \(from 0\) holds nan"):
        on_disk(tmp_path / "a.npy")
    images = (BYTES / 1.0).astype(np.int32)
    images[55, 2, 2] = -7
    np.save(tmp_path / "a.npy", images)
    with pytest.raises(InputError, match=r"integer images range over -7\.\.\d+, but must be in 0\.\.255"):
        on_disk(tmp_path / "a.npy")


def test_moments_in_chunks_are_those_of_all_rows(monkeypatch):
    x = torch.from_numpy(np.hstack([VECTORS, np.full((300, 1), 0.1), R.normal(size=(300, 1)) * 1e-200]))
    x[:120, 2] = 7.0  # constant in whole chunks
    whole = column_moments(x)
    monkeypatch.setattr("adance.data.rows.CHUNK", 35)
    parts = column_moments(x)
    torch.testing.assert_close(parts.mean, whole.mean, rtol=1e-14, atol=1e-215)
    assert parts.constant.tolist() == whole.constant.tolist() == [False, False, False, True, False]
    keep = ~whole.constant
    torch.testing.assert_close(parts.std[keep], whole.std[keep], rtol=1e-13, atol=0)
    assert Standardize.fit(x).std[3] == 1


IN_LITTLE_MEMORY = """
import sys, torch, adance.data, adance.data.rows

def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) // 1024

adance.data.rows.CHUNK = 2**20
before = anonymous()
for limit in (0, 2**30):
    adance.data.rows.IN_MEMORY = limit
    data = adance.data.load_data(sys.argv[1])
    total = sum(float(data.batch(torch.randint(len(data.train), (64,))).sum()) for _ in range(20))
    print(anonymous() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_rows_on_disk_take_no_memory(tmp_path):
    path = tmp_path / "sparse.npy"
    images = np.lib.format.open_memmap(path, "w+", np.uint8, (200_000, 32, 32))  # 200 MB, of which little is written
    images[::1000] = 200
    del images
    command = [sys.executable, "-c", IN_LITTLE_MEMORY, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    on_disk, in_memory = map(int, done.stdout.split())
    assert on_disk < 60
    assert in_memory > 150


def pictures(folder, n=6):
    for i in range(n):
        (folder / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(R.integers(0, 256, (5, 6, 3), dtype=np.uint8)).save(folder / "ab"[i % 2] / f"{i}.png")


def test_folders_on_disk_are_those_in_memory(on_disk, tmp_path):
    pictures(tmp_path)
    same(on_disk(tmp_path), adance.load_data(tmp_path))
    assert on_disk(tmp_path).train_labels.tolist() == adance.load_data(tmp_path).train_labels.tolist()
    same(on_disk(tmp_path, image_size=4), adance.load_data(tmp_path, image_size=4))
