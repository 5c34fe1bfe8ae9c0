import numpy as np
import pytest
import torch
from PIL import Image

from adance.plot import samples_grid, save_grid


def levels(path):
    return np.asarray(Image.open(path)).astype(int)


def test_pixels_and_frame_of_a_grid(tmp_path):
    images = torch.tensor([-1.0, 0.0, 1.0, 0.5, -3.0]).view(5, 1, 1, 1).expand(5, 1, 2, 4)
    save_grid(images, tmp_path / "x.png", columns=3, height=1)
    pixels = levels(tmp_path / "x.png")
    assert pixels.shape == (2 * 4, 3 * 6)
    cells = pixels.reshape(2, 4, 3, 6).transpose(0, 2, 1, 3).reshape(6, 4, 6)
    for cell, value in zip(cells, [0, 128, 255, 191, 0, 255], strict=True):
        assert (cell[1:-1, 1:-1] == value).all()
        assert (cell[[0, -1]] == 255).all()
        assert (cell[:, [0, -1]] == 255).all()


def test_every_pixel_is_where_it_was(tmp_path):
    images = torch.rand(4, 3, 5, 6) * 2 - 1
    save_grid(images, tmp_path / "x.png", columns=2, height=1)
    pixels = levels(tmp_path / "x.png")
    assert pixels.shape == (2 * 7, 2 * 8, 3)
    for i, image in enumerate(images):
        row, column = divmod(i, 2)
        got = pixels[row * 7 + 1 : row * 7 + 6, column * 8 + 1 : column * 8 + 7]
        wanted = ((image.permute(1, 2, 0).numpy() + 1) / 2 * 255).round()
        assert np.abs(got - wanted).max() <= 1


@pytest.mark.parametrize(("n", "shape"), [(1, (1, 1)), (4, (2, 2)), (5, (2, 3)), (64, (8, 8)), (10, (3, 4))])
def test_the_grid_is_as_square_as_possible(n, shape, tmp_path):
    save_grid(torch.zeros(n, 1, 2, 2), tmp_path / "x.png", height=1)
    assert levels(tmp_path / "x.png").shape == (4 * shape[0], 4 * shape[1])


def test_it_is_enlarged_by_a_whole_factor_below_the_height(tmp_path):
    save_grid(torch.zeros(64, 1, 8, 8), tmp_path / "x.png")
    assert levels(tmp_path / "x.png").shape == (640, 640)
    save_grid(torch.zeros(64, 1, 8, 8), tmp_path / "x.png", height=639)
    assert levels(tmp_path / "x.png").shape == (560, 560)
    save_grid(torch.zeros(1, 1, 30, 30), tmp_path / "x.png", height=10)
    assert levels(tmp_path / "x.png").shape == (32, 32)


def test_images_are_not_altered_and_may_have_a_graph(tmp_path):
    images = torch.full((2, 1, 2, 2), 5.0, requires_grad=True)
    save_grid(images, tmp_path / "x.png")
    assert (images == 5).all()


def test_axes_show_the_pixels_of_the_png(tmp_path):
    images = torch.rand(5, 1, 4, 4) * 2 - 1
    save_grid(images, tmp_path / "x.png", columns=3, height=1)
    ax = samples_grid(images.numpy(), columns=3)
    assert (np.asarray(ax.images[0].get_array()) == levels(tmp_path / "x.png")).all()
