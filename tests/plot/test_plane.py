import numpy as np
import pytest
import torch
from PIL import Image

from adance.errors import InputError
from adance.plot import density, save_plane
from adance.plot.axes import COLORS

DATA = torch.tensor([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])


def narrow(x):
    """A narrow law right of and above the center of the data."""
    assert not torch.is_grad_enabled()
    return (x - 0.7).square().sum(1) / (2 * 0.1**2)


def test_the_density_is_where_the_energy_is_low():
    ax = density(narrow, DATA, DATA[:2] + 0.1)
    image = np.asarray(ax.images[0].get_array())
    left, right, bottom, top = ax.images[0].get_extent()
    assert (left, right, bottom, top) == (-1.25, 1.25, -1.25, 1.25)
    row, column = np.unravel_index(image.argmax(), image.shape)
    assert left + (right - left) * (column + 0.5) / image.shape[1] == pytest.approx(0.7, abs=0.02)
    assert top - (top - bottom) * (row + 0.5) / image.shape[0] == pytest.approx(0.7, abs=0.02)
    assert image.max() == 1


def test_points_are_drawn_in_both_kinds():
    ax = density(narrow, DATA, DATA[:2] + 0.1)
    drawn = {line.get_label(): np.stack(line.get_data(), 1) for line in ax.lines}
    assert np.allclose(drawn["data"], DATA)
    assert np.allclose(drawn["samples"], DATA[:2] + 0.1)


def test_without_points_a_window_is_needed():
    with pytest.raises(InputError, match="needs data, samples or a window"):
        density(narrow)
    assert density(narrow, window=(0.0, 0.0, 2.0)).get_xlim() == (-2, 2)


def test_the_picture_has_three_panels_with_one_spot_of_density(tmp_path):
    save_plane(narrow, DATA, DATA[:2], tmp_path / "x.png")
    picture = Image.open(tmp_path / "x.png")
    assert picture.format == "PNG"
    assert picture.size == (1200, 400)
    panel = np.asarray(picture.convert("RGB")).astype(int)[60:-60, 870:-40]
    accent = np.array([int(COLORS["accent"][i : i + 2], 16) for i in (1, 3, 5)])
    rows, columns = np.nonzero(np.abs(panel - accent).max(2) < 30)
    assert len(rows) > 0
    assert rows.mean() < panel.shape[0] / 2
    assert columns.mean() > panel.shape[1] / 2


def test_without_data_the_picture_has_two_panels(tmp_path):
    save_plane(narrow, None, DATA, tmp_path / "x.png")
    assert Image.open(tmp_path / "x.png").size == (800, 400)


def test_energies_of_any_size_are_drawn(tmp_path):
    data = torch.randn(20, 2)
    save_plane(lambda x: 1e30 * x.square().sum(1), data, data, tmp_path / "x.png", temperature=1e-5)
    assert (tmp_path / "x.png").stat().st_size > 0
