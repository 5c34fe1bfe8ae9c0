"""Log Z between two annealed estimates, and whether the two meet; in the plane also by a sum over a grid."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from adance.energies.energy import Energy, eval_mode, evaluate
from adance.evaluation.ais import Bridge, Schedule, anneal_backward, anneal_forward, plan
from adance.samplers.resampling import LogMean, log_mean_exp

STANDARD_ERRORS = 3
MIN_EFFECTIVE = 10
HALF_WIDTH = 8.0
POINTS = 601
CHUNK = 50_000


@dataclass(frozen=True)
class Bracket:
    """Log Z from below and from above.

    Attributes:
        forward: ``log mean exp w`` of the forward chains; below log Z in the mean.
        backward: ``−log mean exp w`` of the backward chains; above it in the mean if they began at exact samples.
        chains: Chains in each direction.
        temperatures: Temperatures after the first.
        complete: Whether the schedule reached the model at its pace.
        exact: Whether backward chains began at exact samples.
        tolerance: Widest bracket, in nats, that counts as an estimate.
    """

    forward: LogMean
    backward: LogMean
    chains: int
    temperatures: int
    complete: bool
    exact: bool
    tolerance: float = 1.0

    @property
    def lower(self) -> float:
        """Three standard errors below the forward estimate."""
        return self.forward.value - STANDARD_ERRORS * self.forward.error

    @property
    def upper(self) -> float:
        """Three standard errors above the backward estimate."""
        return self.backward.value + STANDARD_ERRORS * self.backward.error

    @property
    def width(self) -> float:
        """``upper − lower``."""
        return self.upper - self.lower

    @property
    def objections(self) -> list[str]:
        """Why this is not an estimate; empty if it is one."""
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return ["a weight is not a number"]
        found = []
        if not self.complete:
            found.append("the temperatures ran out before the model was reached")
        if self.lower > self.upper:
            found.append(f"the bracket is crossed: {self.lower:.2f} from below is above {self.upper:.2f} from above")
        elif self.width > self.tolerance:
            found.append(f"the bracket does not close: it is {self.width:.2f} nats wide, more than {self.tolerance:g}")
        effective = min(self.forward.effective, self.backward.effective)
        if effective < MIN_EFFECTIVE:
            found.append(f"the weights rest on {effective:.1f} of {self.chains} chains")
        return found

    @property
    def closed(self) -> bool:
        """Whether log Z may be called estimated."""
        return not self.objections

    @property
    def verdict(self) -> str:
        """What a reader must know, as a phrase."""
        ends = "" if self.exact else "; the backward run began at ends of chains, not at exact samples: no strict bound"
        if self.closed:
            return f"bracket of {self.width:.3f} nats{ends}"
        return f"not an estimate: {'; '.join(self.objections)}{ends}"


def bracket_log_z(
    bridge: Bridge,
    starts: Tensor,
    *,
    exact: bool,
    chains: int | None = None,
    schedule: Schedule | None = None,
    generator: torch.Generator | None = None,
) -> Bracket:
    """Forward and backward annealed importance sampling over one schedule; the model is only read.

    Args:
        bridge: From a base to the model.
        starts: Samples of the model ``(n, *event)``, or ends of chains that should be.
        exact: Which of the two.
        chains: Forward chains; by default as many as ``starts``.
        schedule: Temperatures and kernel, from :func:`~adance.evaluation.ais.plan`, which is called by default.
        generator: Source of randomness.
    """
    with eval_mode(bridge.model):
        schedule = schedule or plan(bridge, generator=generator)
        up, _ = anneal_forward(bridge, schedule, chains or len(starts), generator)
        down = anneal_backward(bridge, schedule, starts, generator)
    forward, backward = log_mean_exp(up), log_mean_exp(down)
    backward = backward._replace(value=-backward.value)
    n, temperatures = min(len(up), len(down)), len(schedule.step_sizes)
    return Bracket(forward, backward, n, temperatures, schedule.complete, exact)


@torch.no_grad()
def grid_log_z(
    energy: Energy, center: Tensor, scale: Tensor, temperature: float = 1.0, points: int = POINTS
) -> tuple[float, float]:
    """``log ∫ exp(−E/T)`` over a square, by the trapezoidal rule.

    The square extends 8 scales from the center on each side, so a broader distribution loses mass. Details below 16/600
    of a scale are not resolved: the second number then is large.

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
