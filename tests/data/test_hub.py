import sys

import numpy as np
import pytest
import torch
from PIL import Image

from adance.data import load_data, load_for_model, load_hub
from adance.errors import InputError

R = np.random.default_rng(0)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The real library, kept offline and away from the user's cache."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.delenv("ADANCE_DATA", raising=False)
    datasets.disable_progress_bars()
    return datasets


def parquet(datasets, folder, image, shape, *, label="label", n=8):
    """Writes both splits and returns the training images."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for split in ("train", "test"):
        arrays = R.integers(0, 256, (n, *shape), dtype=np.uint8)
        columns = {image: [Image.fromarray(array) for array in arrays]}
        features = {image: datasets.Image()}
        if label:
            columns[label], features[label] = list(range(n)), datasets.ClassLabel(n)
        table = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
        table.to_parquet(folder / f"{split}-00000-of-00001.parquet")
        written[split] = arrays
    return written["train"]


@pytest.mark.parametrize(
    ("name", "image", "shape"),
    [("mnist", "image", (28, 28)), ("fashion-mnist", "image", (28, 28)), ("cifar10", "img", (32, 32, 3))],
)
def test_local_parquet(hub, tmp_path, name, image, shape):
    arrays = parquet(hub, tmp_path / name, image, shape)
    splits = load_hub(name, tmp_path / name)
    expected = torch.from_numpy(arrays.reshape(8, *shape[:2], -1)).permute(0, 3, 1, 2)
    assert torch.equal(splits.train, expected)
    assert len(splits.test) == 8
    assert splits.train_labels.tolist() == list(range(8))


def test_faces_and_the_environment_variable(hub, tmp_path, monkeypatch):
    arrays = parquet(hub, tmp_path / "celeba" / "data", "image", (218, 178, 3), label=None, n=3)
    monkeypatch.setenv("ADANCE_DATA", str(tmp_path))
    data = load_data("celeba")
    assert data.event_shape == (3, 32, 32)
    assert data.train_labels is None
    center = Image.fromarray(arrays[0][39:179, 19:159]).resize((32, 32), Image.Resampling.BICUBIC)
    assert torch.equal(data.train[0].permute(1, 2, 0), torch.from_numpy(np.array(center)))
    small = load_data("celeba", image_size=16).describe()
    assert small["event_shape"] == [3, 16, 16]
    assert load_for_model("celeba", small).shape == (6, 3, 16, 16)


def test_array_file_in_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ADANCE_DATA", str(tmp_path))
    array = R.integers(0, 256, (4, 28, 28), dtype=np.uint8)
    np.savez(tmp_path / "mnist.npz", x_train=array, x_test=array)
    data = load_data("mnist")
    assert (data.name, data.event_shape) == ("mnist", (1, 28, 28))
    with pytest.raises(InputError, match=r"mnist\.npz"):
        load_data("mnist", image_size=14)


def test_bad_copies(hub, tmp_path):
    with pytest.raises(InputError, match="no train"):
        load_hub("mnist", tmp_path)
    parquet(hub, tmp_path / "a", "picture", (28, 28))
    with pytest.raises(InputError, match="'image', only picture, label"):
        load_hub("mnist", tmp_path / "a")
    for split in ("train", "test"):
        (tmp_path / f"{split}.parquet").write_bytes(b"junk")
    with pytest.raises(InputError, match=r"mnist: .*cannot be loaded") as caught:
        load_hub("mnist", tmp_path)
    assert "\n" not in str(caught.value)


def test_offline_names_the_way_out(hub):
    with pytest.raises(InputError, match=r"ylecun/mnist cannot be loaded.*local.*ADANCE_DATA") as caught:
        load_data("mnist")
    assert "\n" not in str(caught.value)


def test_missing_library(monkeypatch):
    monkeypatch.delenv("ADANCE_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install adance\[datasets\]"):
        load_data("cifar10")


def test_unknown_name():
    with pytest.raises(InputError, match="mnist, fashion-mnist"):
        load_hub("imagenet")
