import numpy as np
import pytest
import torch
from PIL import Image

from adance.data import load_data, read_folder
from adance.errors import InputError

R = np.random.default_rng(0)


def picture(path, size=(6, 5), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    channels = {"L": (), "RGB": (3,), "RGBA": (4,)}[mode]
    array = R.integers(0, 256, (size[1], size[0], *channels), dtype=np.uint8)
    Image.fromarray(array).save(path)
    return array


def refused(path, *words, **options):
    with pytest.raises(InputError) as caught:
        load_data(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message


def test_flat_folder(tmp_path):
    arrays = [picture(tmp_path / f"{i}.png") for i in range(4)]
    (tmp_path / "notes.txt").write_text("not a picture")
    (tmp_path / "._0.png").write_text("not a picture either")
    splits = read_folder(tmp_path)
    assert torch.equal(splits.train, torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2))
    assert splits.train_labels is None
    assert load_data(tmp_path).event_shape == (3, 5, 6)


def test_grey_folder_with_classes(tmp_path):
    for name in ("cat/1.png", "cat/2.jpg", "dog/1.webp", "dog/2.png"):
        picture(tmp_path / name, mode="L" if name.endswith("g") else "RGB")
    assert read_folder(tmp_path).train.shape == (4, 3, 5, 6)  # webp has no gray mode, so all become RGB
    (tmp_path / "dog/1.webp").unlink()
    splits = read_folder(tmp_path)
    assert splits.train.shape == (3, 1, 5, 6)
    assert splits.train_labels.tolist() == [0, 0, 1]


def test_split_folders(tmp_path):
    for name in ("train/b/1.png", "train/a/1.png", "test/b/1.png"):
        picture(tmp_path / name)
    data = load_data(tmp_path)
    assert (len(data.train), len(data.test)) == (2, 1)
    assert data.train_labels.tolist() == [0, 1]
    assert data.test_labels.tolist() == [1]
    picture(tmp_path / "test/c/1.png")
    refused(tmp_path, "'c'", "a, b")


def test_image_size_cuts_the_centre(tmp_path):
    wide = np.zeros((4, 8, 3), np.uint8)
    wide[:, 2:6] = 200
    for i in range(2):
        Image.fromarray(wide).save(tmp_path / f"{i}.png")
    picture(tmp_path / "2.png", (9, 20), "RGBA")
    data = load_data(tmp_path, image_size=4)
    assert data.event_shape == (3, 4, 4)
    assert data.describe()["image_size"] == 4
    assert (read_folder(tmp_path, 4).train[:2] == 200).all()


def test_bad_folders(tmp_path):
    refused(tmp_path, "no pictures")
    picture(tmp_path / "a.png")
    picture(tmp_path / "b.png", (7, 5))
    refused(tmp_path / "b.png", "a name")
    with pytest.raises(InputError, match=r"b\.png: is 7 x 5 .*a\.png, is 6 x 5.*image_size"):
        load_data(tmp_path)
    with pytest.raises(InputError, match="image_size must be at least 1, got 0"):
        load_data(tmp_path, image_size=0)
    (tmp_path / "b.png").write_bytes(b"\x89PNG junk")
    refused(tmp_path, "b.png", "cannot be read as a picture")
    Image.fromarray(np.full((5, 6), 4000, np.uint16)).save(tmp_path / "b.png")
    refused(tmp_path, "b.png", "I;16", "8 bits")
    (tmp_path / "b.png").unlink()
    refused(tmp_path, "1 training row")
    picture(tmp_path / "sub/c.png")
    refused(tmp_path, "sub", "both")


def test_a_cut_picture_is_refused(tmp_path):
    picture(tmp_path / "a.png", (40, 40))
    picture(tmp_path / "b.png", (40, 40))
    content = (tmp_path / "b.png").read_bytes()
    for end in (10, 40, len(content) // 2):
        (tmp_path / "b.png").write_bytes(content[:end])
        refused(tmp_path, "b.png")
