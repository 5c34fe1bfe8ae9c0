import numpy as np
import pytest
import torch
from PIL import Image

from adance.data import load_data, read_folder
from adance.errors import InputError

R = np.random.default_rng(0)


def picture(path, size=(6, 5), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    channels = {"L": (), "LA": (2,), "RGB": (3,), "RGBA": (4,)}[mode]
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
    with pytest.raises(InputError, match="image_size must be at least 1 and at most 8192, got 0"):
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


def test_folders_named_by_whole_numbers_are_those_classes(tmp_path):
    for name in ("10/a.png", "2/a.png", "2/b.png"):
        picture(tmp_path / name)
    assert read_folder(tmp_path).train_labels.tolist() == [10, 2, 2]
    picture(tmp_path / "02/a.png")
    refused(tmp_path, "class folders: labels '02' and '2' are the same number")


@pytest.mark.parametrize(
    ("train", "test"),
    [("Train", "Test"), ("train", "val"), ("TRAINING", "validation"), ("train", "Valid"), ("training", "testing")],
)
def test_folders_of_splits_are_known_in_any_case(tmp_path, train, test):
    arrays = [picture(tmp_path / train / f"{i}.png") for i in range(3)]
    held_out = picture(tmp_path / test / "0.png")
    (tmp_path / "notes").mkdir()
    data = load_data(tmp_path)
    assert data.train_labels is None
    assert torch.equal(data.train, torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2))
    assert torch.equal(data.test, torch.from_numpy(held_out[None]).permute(0, 3, 1, 2))


def test_a_folder_of_training_rows_alone_is_split(tmp_path):
    for name in ("train/a/1.png", "train/a/2.png", "train/b/1.png"):
        picture(tmp_path / name)
    data = load_data(tmp_path)
    assert (len(data.train), len(data.test)) == (2, 1)
    assert sorted([*data.train_labels.tolist(), *data.test_labels.tolist()]) == [0, 0, 1]


def test_a_third_split_is_named_as_not_used(tmp_path):
    for name in ("train", "val", "test", "test"):
        picture(tmp_path / name / f"{len(list(tmp_path.rglob('*.png')))}.png")
    picture(tmp_path / "train/b.png")
    with pytest.warns(UserWarning, match="not used: val$"):
        assert len(load_data(tmp_path).test) == 2


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("train/a.png", "test/a.png", "cat/a.png"), ["test is the name of a split, but cat is not"]),
        (("Train/a.png", "car/deep/a.png"), ["Train is the name of a split, but car is not"]),
        (("train/a.png", "b.png"), ["train is the name of a split, but b.png is not"]),
        (("train/a.png", "Train/a.png"), ["Train and train are names of the same split"]),
        (("train/a.png", "val/a.png", "valid/a.png"), ["val and valid are names of the same split"]),
        (("test/a.png", "test/b.png"), ["test is the name of a split, but there is no folder train"]),
        (("train/a.png", "test/.b.png"), ["test: has no pictures"]),
        (("a/b/1.png", "a/b/2.png"), ["pictures in", "a/b are too deep"]),
        (("a/1.png", "a/2.png", "b/c/d/3.png"), ["pictures in", "b/c are too deep"]),
        (("train/a/b/1.png", "test/a/1.png"), ["pictures in", "train/a/b are too deep"]),
    ],
)
def test_layouts_that_are_refused(tmp_path, names, words):
    for name in names:
        picture(tmp_path / name)
    refused(tmp_path, *words)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparent_pixels_are_put_on_white(tmp_path, mode):
    arrays = np.stack([picture(tmp_path / f"{i}.png", mode=mode) for i in range(3)]).astype(float)
    color, alpha = arrays[..., :-1], arrays[..., -1:] / 255
    with pytest.warns(UserWarning, match=r"transparent pixels, as in .*0\.png, become white"):
        rows = read_folder(tmp_path).train.permute(0, 2, 3, 1).numpy()
    assert np.abs(rows - (color * alpha + 255 * (1 - alpha))).max() < 1.01


def test_transparent_colors_are_put_on_white(tmp_path):
    gray = np.array([[0, 100], [200, 250]], np.uint8)
    Image.fromarray(gray).save(tmp_path / "a.png", transparency=0)
    palette = Image.fromarray(gray // 100, "P")
    palette.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    palette.save(tmp_path / "b.gif", transparency=1)
    with pytest.warns(UserWarning, match="become white"):
        rows = read_folder(tmp_path).train.permute(0, 2, 3, 1)
    assert rows[0, ..., 0].tolist() == [[255, 100], [200, 250]]
    assert rows[1].tolist() == [[[255, 0, 0], [255, 255, 255]], [[0, 0, 255], [0, 0, 255]]]


def test_opaque_pictures_with_an_alpha_channel_keep_their_pixels(tmp_path):
    array = R.integers(0, 256, (4, 4, 4), dtype=np.uint8)
    array[..., 3] = 255
    for i in range(2):
        Image.fromarray(array).save(tmp_path / f"{i}.png")
    with pytest.warns(UserWarning, match="become white"):
        assert torch.equal(read_folder(tmp_path).train[0].permute(1, 2, 0), torch.from_numpy(array[..., :3]))


@pytest.mark.parametrize("suffix", ["png", "gif", "bmp", "tif"])
def test_a_palette_of_grays_is_gray(tmp_path, suffix):
    indices, levels = R.integers(0, 4, (5, 6), dtype=np.uint8), np.array([7, 250, 30, 99], np.uint8)
    for i in range(2):
        gray = Image.fromarray(indices, "P")
        gray.putpalette(np.repeat(levels, 3).tobytes())
        gray.save(tmp_path / f"{i}.{suffix}")
    assert torch.equal(read_folder(tmp_path).train[0], torch.from_numpy(levels[indices])[None])
    color = Image.fromarray(indices, "P")
    color.putpalette([7, 8, 7] * 4)
    color.save(tmp_path / f"2.{suffix}")
    assert read_folder(tmp_path).train.shape == (3, 3, 5, 6)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tif"])
def test_pictures_are_turned_upright(tmp_path, suffix):
    exif = Image.Exif()
    exif[0x0112] = 6
    for i in range(2):
        Image.fromarray(np.zeros((4, 8), np.uint8)).convert("RGB").save(tmp_path / f"{i}.{suffix}", exif=exif)
    Image.fromarray(np.zeros((8, 4), np.uint8)).save(tmp_path / "upright.png")
    assert read_folder(tmp_path).train.shape == (3, 3, 8, 4)


def test_pictures_of_several_frames_are_refused(tmp_path):
    frames = [Image.fromarray(R.integers(0, 256, (4, 4), dtype=np.uint8)) for _ in range(3)]
    for suffix in ("gif", "tif", "png"):
        frames[0].save(tmp_path / f"a.{suffix}", save_all=True, append_images=frames[1:])
        refused(tmp_path, f"a.{suffix}: has several frames")
        (tmp_path / f"a.{suffix}").unlink()


def test_a_picture_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    picture(tmp_path / "a.png", (20, 20))
    picture(tmp_path / "b.png", (20, 20))
    for limit in (300, 30):  # Pillow warns up to twice its limit, and fails beyond
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        refused(tmp_path, "a.png: cannot be read as a picture: Image size (400 pixels) exceeds limit of")


def test_lazy_pictures_that_change_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("adance.data.rows.IN_MEMORY", 0)
    for i in range(3):
        picture(tmp_path / f"{i}.png", mode="L")
    data = load_data(tmp_path)
    assert data.batch(torch.arange(2)).shape == (2, 1, 5, 6)
    for size, mode in (((5, 6), "L"), ((6, 5), "RGB")):
        for i in range(3):
            picture(tmp_path / f"{i}.png", size, mode)
        with pytest.raises(InputError, match=r"\.png: its pixels do not fit its header: was the file changed\?"):
            data.batch(torch.arange(1))
