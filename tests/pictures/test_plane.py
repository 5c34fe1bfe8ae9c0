import numpy as np
import torch
from PIL import Image

from adance.pictures import save_plane


def test_three_panels_with_the_density_where_it_is(tmp_path):
    """A narrow law right of and above the data's centre shows bright there, and only there."""
    data = torch.tensor([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])

    def energy(x):
        assert not torch.is_grad_enabled()
        return (x - 0.7).square().sum(1) / (2 * 0.1**2)

    save_plane(energy, data, data[:2], tmp_path / "x.png")
    picture = Image.open(tmp_path / "x.png")
    assert picture.format == "PNG"
    assert picture.size == (1200, 400)
    pixels = np.asarray(picture.convert("L")).astype(int)[60:-60]
    width = pixels.shape[1]
    # the last third is the density: dark but for the one spot
    panel = pixels[:, 2 * width // 3 + 70 : -40]
    panel = np.asarray(picture.convert("RGB")).astype(int)[60:-60, 2 * width // 3 + 70 : -40]
    yellow = (panel[..., 0] > 200) & (panel[..., 1] > 200) & (panel[..., 2] < 120)
    rows, columns = np.nonzero(yellow)
    assert len(rows) > 0
    assert rows.mean() < panel.shape[0] / 2
    assert columns.mean() > panel.shape[1] / 2


def test_energies_of_any_size_are_drawn(tmp_path):
    data = torch.randn(20, 2)
    save_plane(lambda x: 1e30 * x.square().sum(1), data, data, tmp_path / "x.png", temperature=1e-5)
    assert (tmp_path / "x.png").stat().st_size > 0
