import subprocess
import sys

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from adance import plot
from adance.errors import InputError
from adance.plot.axes import format_number

IMAGES, POINTS = torch.zeros(3, 4, 1, 5, 6), torch.randn(3, 4, 2)
CALLS = {
    "samples_grid": lambda ax: plot.samples_grid(IMAGES[0], ax=ax),
    "film of images": lambda ax: plot.chain_film(IMAGES, ax=ax),
    "film of points": lambda ax: plot.chain_film(POINTS.numpy(), [0, 5, 9], ax=ax),
    "energy_histogram": lambda ax: plot.energy_histogram({"data": [0.0, 1.0], "other": np.ones(3)}, ax=ax),
    "density": lambda ax: plot.density(lambda x: x.square().sum(1), POINTS[0], ax=ax),
    "training_curves": lambda ax: plot.training_curves([{"step": i, "loss": i} for i in range(3)], ax=ax),
}


@pytest.mark.parametrize("name", CALLS)
def test_plots_draw_into_given_axes_or_new_ones_and_change_nothing_else(name, tmp_path):
    before = dict(matplotlib.rcParams)
    ax = Figure().subplots()
    assert CALLS[name](ax) is ax
    new = CALLS[name](None)
    assert new is not ax
    new.figure.savefig(tmp_path / "x.png")
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_not_imported():
    code = "import sys, adance.plot; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_numbers_are_written_for_people():
    assert [format_number(v) for v in (0, -0.25, 8000.0, 1e-5, 2.5e7, 1.5e20, 1234.56, float("nan"))] == [
        "0", "−0.25", "8,000", "1e−5", "25,000,000", "1.5e20", "1,235", "not finite",
    ]  # fmt: skip


def test_a_film_of_images_has_a_row_for_each_chain_and_a_column_for_each_frame():
    frames = torch.linspace(-1, 1, 12).view(3, 4, 1, 1, 1).expand(3, 4, 1, 2, 2)  # 3 frames of 4 chains
    ax = plot.chain_film(list(frames), steps=[0, 10, 50])
    pixels = np.asarray(ax.images[0].get_array()).reshape(4, 4, 3, 4)[:, 1, :, 1]
    assert (pixels == ((frames[:, :, 0, 0, 0].T + 1) * 127.5).round().numpy()).all()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "10", "50"]


def test_a_film_of_points_has_a_path_for_each_chain():
    ax = plot.chain_film(POINTS)
    assert np.allclose(ax.lines[1].get_xydata(), POINTS[:, 1])
    assert np.allclose(ax.lines[-1].get_xydata(), POINTS[-1])


def test_a_film_of_other_events_is_refused():
    with pytest.raises(InputError, match="not events of shape"):
        plot.chain_film(torch.zeros(3, 4, 7))


def test_bars_of_a_histogram_are_shares():
    values = torch.randn(500)
    ax = plot.energy_histogram({"training data": values, "held-out data": values + 9, "noise": values})
    outlines = {patch.get_label(): patch for patch in ax.patches if not patch.get_label().startswith("_")}
    heights, edges, _ = outlines["training data"].get_data()
    inside = (values >= edges[0]) & (values <= edges[-1])
    assert heights.sum() == pytest.approx(float(inside.float().mean()))
    assert heights.argmax() == np.histogram(values, edges)[0].argmax()
    assert outlines["held-out data"].get_linestyle() == "--"
