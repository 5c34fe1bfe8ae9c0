"""Metrics of vectors: MMD and sliced Wasserstein distance, kernel Stein discrepancy, and the modes that are reached."""

import torch
from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient, eval_mode
from adance.errors import InputError
from adance.evaluation.measurement import Measurement
from adance.evaluation.normalizable import temperature_of
from adance.evaluation.sample_set import SampleSet, for_vectors

MAX_ROWS = 2000
"""Rows on each side of a metric whose cost grows with their square."""


def squared_mmd(x: Tensor, y: Tensor, bandwidth: float | None = None) -> float:
    """Squared maximum mean discrepancy with kernel ``exp(−‖x − y‖²/2h²)``, unbiased (Gretton et al. 2012).

    ``mean_{i≠j} k(xᵢ, xⱼ) + mean_{i≠j} k(yᵢ, yⱼ) − 2 mean k(xᵢ, yⱼ)``; 0 in the mean for equal laws, and then below 0
    half the time.

    Args:
        x: ``(n, D)``.
        y: ``(m, D)``.
        bandwidth: h; by default the median distance within ``y``, the reference.

    Raises:
        InputError: ``x`` or ``y`` has fewer than two rows.
    """
    check_vectors(x, y)
    x, y = x.double(), y.double()
    within = torch.cdist(y, y)
    h = bandwidth or float(within[~torch.eye(len(y), dtype=torch.bool)].median()) or 1.0

    def kernel(distances: Tensor) -> Tensor:
        return (-distances.square() / (2 * h * h)).exp()

    def mean_within(distances: Tensor) -> Tensor:
        n = len(distances)
        return (kernel(distances).sum() - n) / (n * (n - 1))

    return float(mean_within(torch.cdist(x, x)) + mean_within(within) - 2 * kernel(torch.cdist(x, y)).mean())


def check_vectors(*sets: Tensor) -> None:
    """Check that each set holds at least two vectors.

    Raises:
        InputError: A set holds fewer than two rows, or no vectors.
    """
    for x in sets:
        if x.ndim != 2 or len(x) < 2:
            raise InputError(f"a distance of samples needs at least 2 vectors on each side, got {tuple(x.shape)}")


@for_vectors
def measure_mmd(samples: SampleSet) -> list[Measurement]:
    """The squared MMD of the first 2,000 samples from as many real rows."""
    x, real = samples.x[:MAX_ROWS], samples.real[:MAX_ROWS]
    name, value = "squared MMD, Gaussian kernel", squared_mmd(x, real)
    return [samples.measurement("squared_mmd", name, value, better="lower", n=len(x), n_reference=len(real))]


def sliced_wasserstein(
    x: Tensor, y: Tensor, *, directions: int = 200, points: int = 1000, generator: torch.Generator | None = None
) -> float:
    """The sliced 2-Wasserstein distance ``(E_v W₂²(vᵀx, vᵀy))^½`` (Bonneel et al. 2015).

    The mean is over random directions v of length 1. In one dimension W₂ is the distance of the quantile functions,
    which are compared at ``points`` mid-points.

    Args:
        x: ``(n, D)``.
        y: ``(m, D)``.
        directions: Number of v.
        points: Number of quantiles.
        generator: Source of the directions.

    Raises:
        InputError: ``x`` or ``y`` has fewer than two rows.
    """
    check_vectors(x, y)
    v = torch.randn(x.shape[1], directions, generator=generator, dtype=torch.float64)
    v = v / v.norm(dim=0)
    levels = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    quantiles = [torch.quantile(z.double() @ v, levels, dim=0, interpolation="linear") for z in (x, y)]
    return float((quantiles[0] - quantiles[1]).square().mean().sqrt())


@for_vectors
def measure_wasserstein(samples: SampleSet) -> list[Measurement]:
    """The sliced Wasserstein distance of the samples from as many real rows."""
    value = sliced_wasserstein(samples.x, samples.real, generator=samples.generator())
    name, m = "sliced Wasserstein distance", len(samples.real)
    return [samples.measurement("sliced_wasserstein", name, value, better="lower", n_reference=m)]


def stein_discrepancy(energy: Energy, x: Tensor, temperature: float = 1.0, scale: float | None = None) -> float:
    """Squared kernel Stein discrepancy of points from ``p ∝ exp(−E/T)``, unbiased (Liu et al. 2016); needs no log Z.

    With score ``s = −∇E/T`` and the kernel ``k = (1 + ‖x − y‖²/c²)^{−½}``, the mean over i ≠ j of
    ``s(xᵢ)ᵀs(xⱼ)k + s(xᵢ)ᵀ∇_y k + s(xⱼ)ᵀ∇_x k + tr ∇_x∇_y k``. 0 in the mean where the points are from p.

    Args:
        energy: ``(B, D) -> (B,)``, which is only read.
        x: ``(n, D)``.
        temperature: T.
        scale: c; by default the median distance of the points.
    """
    check_vectors(x)
    with eval_mode(energy):
        gradient = energy_and_gradient(energy, x)[1]
    x, s = x.double(), -gradient.double() / temperature
    n, d = x.shape
    squares = torch.cdist(x, x).square()
    off = ~torch.eye(n, dtype=torch.bool, device=x.device)
    c2 = scale**2 if scale else float(squares[off].median()) or 1.0
    u = 1 + squares / c2
    # ∇_y k = (x − y)/c² u^{-3/2} = −∇_x k;  tr ∇_x∇_y k = d/c² u^{-3/2} − 3‖x − y‖²/c⁴ u^{-5/2}
    along = (s * x).sum(1)
    towards = along[:, None] - s @ x.T  # s(xᵢ)ᵀ(xᵢ − xⱼ)
    cross = (towards + towards.T) / c2 * u**-1.5
    trace = d / c2 * u**-1.5 - 3 * squares / c2**2 * u**-2.5
    stein = (s @ s.T) * u**-0.5 + cross + trace
    return float(stein[off].mean())


@for_vectors
def measure_stein(samples: SampleSet) -> list[Measurement]:
    """The squared kernel Stein discrepancy of the first 2,000 samples from the model."""
    x, T = samples.x[:MAX_ROWS], temperature_of(samples.run)
    value = stein_discrepancy(samples.run.energy, x.to(samples.run.device), T)
    about = {"n": len(x), "split": None, "better": "lower", "note": f"against exp(−E/T) at T = {T:g}"}
    return [samples.measurement("stein_discrepancy", "squared kernel Stein discrepancy from the model", value, **about)]


def mode_coverage(x: Tensor, modes: Tensor, data: Tensor) -> tuple[float, float, float]:
    """Which known modes samples reach.

    A point belongs to a mode within a radius that holds 99 % of real data around their nearest modes. A mode is covered
    when at least a tenth of its fair share n/M of the samples belong to it.

    Args:
        x: Samples ``(n, D)``.
        modes: Centers ``(M, D)`` of clumps of equal mass.
        data: Real data ``(m, D)``.

    Returns:
        Share of modes covered; share of samples that belong to a mode; total variation distance between the samples'
        shares of modes, among those that belong to one, and equal shares.
    """
    radius = torch.quantile(torch.cdist(data.double(), modes.double()).min(1).values, 0.99)
    distance, mode = torch.cdist(x.double(), modes.double()).min(1)
    counts = torch.bincount(mode[distance <= radius], minlength=len(modes)).double()
    covered = float((counts >= 0.1 * len(x) / len(modes)).double().mean())
    shares = counts / counts.sum().clamp(min=1)
    return covered, float(counts.sum() / len(x)), float((shares - 1 / len(modes)).abs().sum() / 2)


@for_vectors
def measure_modes(samples: SampleSet) -> list[Measurement]:
    """Modes covered, samples in a mode, and imbalance of the modes, if the data have modes that are known."""
    density = samples.data.density
    if density is None or density.modes is None:
        return []
    modes = samples.data.transform.to_model(density.modes)
    covered, inside, distance = mode_coverage(samples.x, modes, samples.real)
    about = {"n_reference": len(samples.real), "note": f"{len(modes)} modes"}
    return [
        samples.measurement("modes_covered", "share of modes covered", covered, better="higher", **about),
        samples.measurement("in_modes", "share of samples in a mode", inside, better="higher", **about),
        samples.measurement("mode_imbalance", "total variation of modes from equal", distance, better="lower", **about),
    ]
