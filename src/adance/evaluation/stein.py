"""The kernel Stein discrepancy: how well samples fit the model's own score."""

import torch
from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient, eval_mode
from adance.evaluation.measurement import Measurement
from adance.evaluation.mmd import MAX_ROWS, check_vectors
from adance.evaluation.normalizable import temperature_of
from adance.evaluation.sample_set import SampleSet, for_vectors


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
