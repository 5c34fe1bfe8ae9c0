import numpy as np
import pytest
import torch

from adance.errors import InputError
from adance.plot import density

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


def test_without_data_the_square_holds_the_samples():
    assert density(narrow, samples=DATA + 3).get_xlim() == (1.75, 4.25)
    with pytest.raises(InputError, match="needs data or samples"):
        density(narrow)


def test_energies_of_any_size_are_drawn(tmp_path):
    ax = density(lambda x: 1e30 * x.square().sum(1), torch.randn(20, 2), temperature=1e-5)
    assert np.isfinite(ax.images[0].get_array()).all()
    ax.figure.savefig(tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 0
