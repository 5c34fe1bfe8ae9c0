"""Two-sample measures for vectors, and how samples fit a model's score."""

import torch
from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient, reading
from adance.errors import InputError


def squared_mmd(x: Tensor, y: Tensor, bandwidth: float | None = None) -> float:
    """Squared maximum mean discrepancy with kernel ``exp(−‖x − y‖²/2h²)``, unbiased (Gretton et al. 2012).

    ``mean_{i≠j} k(xᵢ, xⱼ) + mean_{i≠j} k(yᵢ, yⱼ) − 2 mean k(xᵢ, yⱼ)``; 0 in the mean for equal laws, and then below 0
    half the time.

    Args:
        x: ``(n, D)``.
        y: ``(m, D)``.
        bandwidth: h; by default the median distance within ``y``, the reference.

    Raises:
        InputError: Fewer than two rows.
    """
    _need(x, y)
    x, y = x.double(), y.double()
    within = torch.cdist(y, y)
    h = bandwidth or float(within[~torch.eye(len(y), dtype=torch.bool)].median()) or 1.0

    def kernel(distances: Tensor) -> Tensor:
        return (-distances.square() / (2 * h * h)).exp()

    def mean_within(distances: Tensor) -> Tensor:
        n = len(distances)
        return (kernel(distances).sum() - n) / (n * (n - 1))

    return float(mean_within(torch.cdist(x, x)) + mean_within(within) - 2 * kernel(torch.cdist(x, y)).mean())


def sliced_wasserstein(
    x: Tensor, y: Tensor, *, directions: int = 200, points: int = 1000, generator: torch.Generator | None = None
) -> float:
    """Sliced 2-Wasserstein distance: ``(E_v W₂²(vᵀx, vᵀy))^½`` over random directions v of length 1.

    In one dimension W₂ is the distance of the quantile functions, which are compared at ``points`` mid-points.

    Args:
        x: ``(n, D)``.
        y: ``(m, D)``.
        directions: Number of v.
        points: Number of quantiles.
        generator: Of the directions.
    """
    _need(x, y)
    v = torch.randn(x.shape[1], directions, generator=generator, dtype=torch.float64)
    v = v / v.norm(dim=0)
    levels = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    quantiles = [torch.quantile(z.double() @ v, levels, dim=0, interpolation="linear") for z in (x, y)]
    return float((quantiles[0] - quantiles[1]).square().mean().sqrt())


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
    _need(x, x)
    with reading(energy):
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


def mode_coverage(x: Tensor, modes: Tensor, data: Tensor) -> tuple[float, float, float]:
    """Which known modes samples reach.

    A point belongs to a mode within a radius that holds 99 % of real data around their nearest modes. A mode is covered
    when at least a tenth of its fair share n/M of the samples belong to it.

    Args:
        x: Samples ``(n, D)``.
        modes: Centres ``(M, D)`` of clumps of equal mass.
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


def _need(x: Tensor, y: Tensor) -> None:
    if min(len(x), len(y)) < 2 or x.ndim != 2 or y.ndim != 2:
        raise InputError(f"a two-sample measure needs at least 2 vectors on each side, got {len(x)} and {len(y)}")
