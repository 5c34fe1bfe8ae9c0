import json
import math

import numpy as np
import pytest
import torch

from adance.data import NAMES, TOYS, Identity, ImageScale, load_data, load_for_model
from adance.errors import InputError

R = np.random.default_rng(0)


def test_digits():
    data = load_data("digits", seed=5)
    assert (data.kind, data.event_shape, len(data.train), len(data.test)) == ("image", (1, 8, 8), 1400, 397)
    assert data.transform == ImageScale(0, 16, 17, 64)
    assert data.transform.level_width == 1 / 8
    x = data.batch(torch.arange(1400))
    assert (x.min(), x.max()) == (-1, 1)
    order = torch.randperm(1797, generator=torch.Generator().manual_seed(0))
    assert torch.equal(load_data("digits").train, data.train)
    from sklearn.datasets import load_digits

    assert torch.equal(data.train_labels, torch.from_numpy(load_digits().target)[order[:1400]])


def test_toy():
    data = load_data("moons", seed=1)
    assert (len(data.train), len(data.test), data.event_shape) == (50_000, 10_000, (2,))
    assert data.transform == Identity()
    assert data.density.name == "moons"
    assert torch.equal(load_data("moons", seed=1).test, data.test)
    assert not torch.equal(load_data("moons", seed=2).test, data.test)


def test_describe_is_json():
    for name in ("digits", "rings"):
        description = load_data(name).describe()
        assert json.loads(json.dumps(description)) == description
        keys = {"name", "kind", "event_shape", "n_train", "n_test", "image_size", "columns", "transform"}
        assert set(description) == keys


@pytest.mark.parametrize("source", ["nothing", "", "no.npz", "no.csv", "a\nb", "x" * 5000, "a\0b", "/"])
def test_unknown_source_lists_the_names(source):
    with pytest.raises(InputError) as caught:
        load_data(source)
    message = str(caught.value)
    assert "\n" not in message
    if source not in ("", "/"):
        assert all(name in message for name in NAMES)
        assert ".npz" in message


def test_names_win_over_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert load_data("digits").name == "digits"
    with pytest.raises(InputError, match="no pictures"):
        load_data("./digits")


def test_rows_for_a_model_keep_their_order_and_its_units(tmp_path):
    train, new = R.normal(3, 2, (30, 4)), R.normal(0, 1, (7, 4))
    np.save(tmp_path / "train.npy", train)
    np.save(tmp_path / "new.npy", new)
    data = load_data(tmp_path / "train.npy")
    x = load_for_model(tmp_path / "new.npy", json.loads(json.dumps(data.describe())))
    torch.testing.assert_close(x, data.transform.to_model(torch.from_numpy(new)))
    np.save(tmp_path / "one.npy", new[:1])
    torch.testing.assert_close(load_for_model(tmp_path / "one.npy", data.describe()), x[:1])


def test_train_rows_come_before_test_rows(tmp_path):
    array = R.integers(0, 256, (6, 4, 4), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", x_train=array[:4], x_test=array[4:])
    data = load_data(tmp_path / "a.npz")
    x = load_for_model(tmp_path / "a.npz", data.describe())
    assert torch.equal(x, data.transform.to_model(torch.from_numpy(array)[:, None]))


def test_images_on_another_scale_reach_the_same_units(tmp_path):
    array = R.integers(0, 256, (6, 8, 8), dtype=np.uint8)
    paths = {name: tmp_path / f"{name}.npy" for name in ("bytes", "unit", "signed", "half")}
    np.save(paths["bytes"], array)
    np.save(paths["unit"], array / 255)
    np.save(paths["signed"], array / 127.5 - 1)
    np.save(paths["half"], array / 510)
    descriptions = [load_data(paths[name]).describe() for name in ("bytes", "unit", "signed")]
    for description in descriptions:
        for name in ("bytes", "unit", "signed"):
            expected = torch.from_numpy(array)[:, None] / 127.5 - 1
            if name == "unit" and description["transform"]["low"] == -1:
                expected = (expected + 1) / 2  # in range for the model, so taken at its word
                with pytest.warns(UserWarning, match="no value is below 0"):
                    x = load_for_model(paths[name], description)
            else:
                x = load_for_model(paths[name], description)
            torch.testing.assert_close(x, expected, atol=1e-5, rtol=0)
    with pytest.warns(UserWarning, match="no value is below 0"):
        signed = load_for_model(paths["half"], descriptions[2])
    torch.testing.assert_close(signed, torch.from_numpy(array / 510).float()[:, None])


def test_integers_that_are_nearly_black_on_their_scale_are_named(tmp_path, recwarn):
    sixteenths = R.integers(0, 17, (6, 4, 4))
    np.save(tmp_path / "sixteenths.npy", sixteenths)
    np.save(tmp_path / "bytes.npy", R.integers(0, 256, (6, 4, 4)))
    described = load_data(tmp_path / "bytes.npy").describe()
    assert not recwarn
    expected = "integer images reach only 16 on the scale 0..255 and are nearly black"
    with pytest.warns(UserWarning, match=expected):
        assert load_data(tmp_path / "sixteenths.npy").batch(torch.arange(2)).max() < -0.8
    with pytest.warns(UserWarning, match=expected):
        load_for_model(tmp_path / "sixteenths.npy", described)


def test_digits_saved_as_floats_are_scored_as_digits(tmp_path):
    data = load_data("digits")
    np.save(tmp_path / "d.npy", data.test[:, 0].numpy().astype(float))
    x = load_for_model(tmp_path / "d.npy", data.describe())
    assert torch.equal(x, data.batch(torch.arange(397), "test"))


def test_wrong_event_shape_names_both(tmp_path):
    description = load_data("digits").describe()
    np.save(tmp_path / "rgb.npy", R.random((3, 8, 8, 3)))
    with pytest.raises(InputError, match=r"\(3, 8, 8\).*\(1, 8, 8\)"):
        load_for_model(tmp_path / "rgb.npy", description)
    with pytest.raises(InputError, match=r"\(2,\).*\(1, 8, 8\)"):
        load_for_model("moons", description)


def test_broken_description():
    with pytest.raises(InputError, match="description"):
        load_for_model("digits", {})


def test_density_in_data_units(tmp_path):
    toy = TOYS["8gaussians"]()
    raw = toy.sample(4000, torch.Generator().manual_seed(0)) * 10
    np.save(tmp_path / "scaled.npy", raw.numpy())
    data = load_data(tmp_path / "scaled.npy")
    std = torch.tensor(data.transform.std)
    assert data.transform.log_det == pytest.approx(-math.log(std.prod().item()), rel=1e-5)


def test_columns_in_another_order_are_refused(tmp_path):
    table = tmp_path / "trained.csv"
    table.write_text("a,b\n1,2\n3,5\n7,1\n")
    description = load_data(table).describe()
    (tmp_path / "same.csv").write_text("a,b\n9,2\n")
    (tmp_path / "swapped.csv").write_text("b,a\n2,9\n")
    (tmp_path / "bare.csv").write_text("9,2\n")
    same = load_for_model(tmp_path / "same.csv", description)
    torch.testing.assert_close(same, load_for_model(tmp_path / "bare.csv", description))
    with pytest.raises(InputError, match="columns are b, a, but the model was trained on a, b"):
        load_for_model(tmp_path / "swapped.csv", description)


def test_a_data_set_is_shown_in_one_line(tmp_path):
    assert repr(load_data("digits")) == (
        "Dataset('digits', image, train (1400, 1, 8, 8), test (397, 1, 8, 8), labels of 10 classes)"
    )
    np.save(tmp_path / "x.npy", np.arange(60.0).reshape(20, 3))
    path = str(tmp_path / "x.npy")
    assert repr(load_data(path)) == f"Dataset({path!r}, vector, train (18, 3), test (2, 3))"
