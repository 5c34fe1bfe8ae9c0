"""Whether a run's exp(−E/T) is a normalizable density, and the base from which it is measured."""

import math

import torch
from torch import Tensor

from adance.data.dequantize import dequantize, level_bins
from adance.energies.analytic import Density, Gaussian, GaussianBase, Uniform
from adance.energies.conditional import ConditionalEnergy, takes_condition
from adance.energies.tilted import Tilted
from adance.training.run import Run


def temperature_of(run: Run) -> float:
    """T of the run's chains; 1 if it has none."""
    return 1.0 if run.kernel is None else run.kernel.temperature


def why_unnormalized(run: Run) -> list[str]:
    """Why ``exp(−E/T)`` is not taken for the run's density; empty if it is.

    A density needs chains that sample it, T = 1, and a finite integral: a Gaussian base in the energy, bounds of the
    chains, or a log Z that was learned.
    """
    found = []
    kernel = run.kernel
    if kernel is not None and abs(kernel.temperature - 1) > 1e-6:
        found.append(f"its chains are short-run, at temperature {kernel.temperature:.3g} instead of 1")
    if isinstance(run.energy, ConditionalEnergy) or takes_condition(run.energy):
        found.append("its energy is conditional, and has no density without a condition")
    elif not (_has_base(run) or _bounds(run) is not None or run.log_normalizer is not None):
        found.append("nothing makes exp(−E) integrable: the energy has no base term and the chains no bounds")
    return found


def density_base(run: Run) -> Density:
    """The distribution that annealing starts from.

    The base of a tilted energy; the energy's own Gaussian base; else the box of the chains' bounds; else for images
    [−1, 1], widened by half a level at both ends if they have levels; and for vectors the normal distribution with
    the data's mean and standard deviation.
    """
    if isinstance(run.energy, Tilted):
        return run.energy.fitted_base
    base = _base(run)
    if base is not None:
        return Gaussian(base.center, base.scale).to(run.device)
    box = _box(run)
    if box is not None:
        return Uniform(run.event_shape, *box).to(run.device)
    return Gaussian(torch.tensor(run.data["mean"]), torch.tensor(run.data["std"])).to(run.device)


def continuous_rows(run: Run, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows on which a density is defined, and what to add to their log-densities to convert them to the data's units.

    Images with levels are dequantized as in training, see :func:`~adance.data.dequantize.dequantize`: the density on a
    level's bin, times the bin's volume, bounds the level's probability below (Theis et al. 2016), and the logarithm of
    that volume is what is added. Other rows stay as they are, and the transform's own determinant is added. Rows
    outside the box of the density get −∞.

    Args:
        run: The run.
        x: Rows ``(n, *event)`` in the model's units.
        generator: Source of the positions in the bins, on the CPU.

    Returns:
        Rows ``(n, *event)`` and the terms ``(n,)``, float64.
    """
    box = None if _has_base(run) else _box(run)
    bounds, width = box or (-math.inf, math.inf), run.transform.level_width
    if width is None:
        inside = ((x >= bounds[0]) & (x <= bounds[1])).flatten(1).all(1)
        return x, torch.where(inside, run.transform.log_det, -math.inf).double()
    low, high = level_bins(x, width, bounds)
    rows = dequantize(x, width, torch.rand(x.shape, generator=generator), box)
    return rows, (high - low).log().flatten(1).sum(1)


def _box(run: Run) -> tuple[float, float] | None:
    """The box of the density of an energy without a base: the chains' bounds, else for images about [−1, 1]."""
    bounds = _bounds(run)
    if bounds is None and run.data["kind"] == "image":
        half = 1 + (run.transform.level_width or 0.0) / 2
        return -half, half
    return bounds


def _base(run: Run) -> GaussianBase | None:
    base = getattr(run.energy, "base", None)
    return base if isinstance(base, GaussianBase) else None


def _has_base(run: Run) -> bool:
    return isinstance(run.energy, Tilted) or _base(run) is not None


def _bounds(run: Run) -> tuple[float, float] | None:
    bounds = getattr(run.kernel, "bounds", None)
    return None if bounds is None else (float(bounds[0]), float(bounds[1]))
