"""Log Z of a model in the plane, by a sum over a grid."""

import math

import torch
from torch import Tensor

from adance.energies.energy import Energy, eval_mode, evaluate

HALF_WIDTH = 8.0
POINTS = 601
CHUNK = 50_000


@torch.no_grad()
def grid_log_z(
    energy: Energy, center: Tensor, scale: Tensor, temperature: float = 1.0, points: int = POINTS
) -> tuple[float, float]:
    """``log ∫ exp(−E/T)`` over a square, by the trapezoidal rule.

    The square reaches 8 scales from the center on each side, so a broader law loses mass, and details below 16/600 of a
    scale are not resolved: the second number shows it.

    Args:
        energy: ``(B, 2) -> (B,)``.
        center: ``(2,)``.
        scale: ``(2,)``, of the data in each axis.
        temperature: T.
        points: On each side, odd.

    Returns:
        Log Z in float64, and how far the sum over every other point differs from it.
    """
    axes = torch.linspace(-HALF_WIDTH, HALF_WIDTH, points)
    grid = center + scale * torch.cartesian_prod(axes, axes).to(center)
    with eval_mode(energy):
        values = torch.cat([evaluate(energy, part).double() for part in torch.split(grid, CHUNK)])
    log_density = (-values / temperature).view(points, points)
    step = 2 * HALF_WIDTH / (points - 1)
    cell = 2 * math.log(step) + float(scale.double().log().sum())
    fine = float(_trapezoid(log_density)) + cell
    coarse = float(_trapezoid(log_density[::2, ::2])) + cell + 2 * math.log(2)
    return fine, abs(fine - coarse)


def _trapezoid(log_density: Tensor) -> Tensor:
    half = log_density.new_zeros(len(log_density))
    half[[0, -1]] = -math.log(2)
    return (log_density + half + half[:, None]).flatten().logsumexp(0)
