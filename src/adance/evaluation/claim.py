"""Whether a run claims a density, and over which base it is measured."""

import torch
from torch import Tensor

from adance.data.transforms import ImageScale
from adance.energies.analytic import Density, Gaussian, GaussianBase, Uniform
from adance.energies.conditional import ConditionalEnergy, takes_condition
from adance.training.run import Run


def missing_claims(run: Run) -> list[str]:
    """Why ``exp(−E/T)`` is not claimed to be the run's density; empty where it is.

    A density needs chains whose law it is, T = 1, and a finite integral: a Gaussian base in the energy, bounds of the
    chains, or a log Z that was learned.
    """
    found = []
    kernel = run.kernel
    if kernel is not None and abs(kernel.temperature - 1) > 1e-6:
        found.append(f"its chains are short-run, at temperature {kernel.temperature:.3g} instead of 1")
    if isinstance(run.energy, ConditionalEnergy) or takes_condition(run.energy):
        found.append("its energy is conditional, and without its condition no density")
    elif _base(run) is None and _bounds(run) is None and run.log_normalizer is None:
        found.append("nothing makes exp(−E) integrable: the energy has no base term and the chains no bounds")
    return found


def density_base(run: Run) -> Density:
    """The law that annealing begins at.

    The energy's own Gaussian base; else the box of the chains' bounds; else [−1, 1] for images, and for vectors the
    normal law with the data's mean and deviation.
    """
    base = _base(run)
    if base is not None:
        return Gaussian(base.center, base.scale).to(run.device)
    bounds = _bounds(run)
    if bounds is not None or run.data["kind"] == "image":
        return Uniform(run.event_shape, *(bounds or (-1.0, 1.0))).to(run.device)
    return Gaussian(torch.tensor(run.data["mean"]), torch.tensor(run.data["std"])).to(run.device)


def continuous_rows(run: Run, x: Tensor, base: Density, generator: torch.Generator) -> tuple[Tensor, float]:
    """Rows on which a density has a meaning, and what it adds to a log-density to bring it to the data's units.

    Images with levels are dequantised: level k of L becomes ``low + (high − low)(k + u)/L``, u uniform in [0, 1), so
    that the levels tile the box of the base, and a mass function is bounded below by the density of a level's bin
    (Theis et al. 2016). For others the rows are left alone, and the transform's own determinant is added.

    Args:
        run: The run.
        x: Rows ``(n, *event)`` in the model's units.
        base: Of :func:`density_base`.
        generator: Of u, on the CPU.
    """
    transform = run.transform
    if not (isinstance(transform, ImageScale) and transform.levels and isinstance(base, Uniform)):
        return x, transform.log_det
    levels = transform.levels
    low, high = base.low.flatten()[0].item(), base.high.flatten()[0].item()
    k = ((x + 1) / 2 * (levels - 1)).round().clamp(0, levels - 1)
    u = torch.rand(x.shape, generator=generator)
    rows = low + (high - low) * (k + u) / levels
    return rows.clamp(low, high), x[0].numel() * float(torch.tensor((high - low) / levels, dtype=torch.float64).log())


def _base(run: Run) -> GaussianBase | None:
    base = getattr(run.energy, "base", None)
    return base if isinstance(base, GaussianBase) else None


def _bounds(run: Run) -> tuple[float, float] | None:
    bounds = getattr(run.kernel, "bounds", None)
    return None if bounds is None else (float(bounds[0]), float(bounds[1]))
