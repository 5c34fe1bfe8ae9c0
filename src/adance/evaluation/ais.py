"""Annealed importance sampling (AIS, Neal 2001), forward and backward, over temperatures found by a pilot run."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from adance.energies.analytic import Density, Uniform
from adance.energies.energy import Energy, evaluate
from adance.errors import InputError
from adance.samplers.chains import run_chains
from adance.samplers.kernel import Kernel
from adance.samplers.mala import MALA
from adance.samplers.resampling import effective_sample_share, longest_step

WARMUP = 50
HALVINGS = 50
SHORTEST_STEP = 1e-12


class Bridge:
    """Distributions ``p_β ∝ p₀^{1−β} exp(−βE/T)``, from the base p₀ at β = 0 to the model at β = 1.

    Between a uniform base and the model all distributions live in the base's box. Chains need no walls there: the
    energy is continued to all of space by reflection, ``E(fold(x))``, and ``fold`` turns a chain of the continued
    distribution into one in the box.

    Args:
        energy: The model's energy ``(B, *event) -> (B,)``.
        base: A normalized distribution with exact samples.
        temperature: T of the model.

    Raises:
        InputError: ``temperature`` is not above 0.
    """

    def __init__(self, energy: Energy, base: Density, temperature: float = 1.0) -> None:
        if not temperature > 0:
            raise InputError(f"a density exp(−E/T) needs T above 0, got {temperature}")
        self.model, self.base, self.temperature = energy, base, temperature
        self.box = (base.low, base.high) if isinstance(base, Uniform) else None

    def place(self, x: Tensor) -> Tensor:
        """The positions of chains at ``x`` ``(B, *event)``: unchanged, or reflected into the box."""
        if self.box is None:
            return x
        low, high = self.box
        turn = torch.remainder((x - low) / (high - low), 2)
        return low + (high - low) * (1 - (1 - turn).abs())

    def gap(self, x: Tensor) -> Tensor:
        """``−E(x)/T − log p₀(x)`` ``(B,)``, the derivative of the log-density in β, float64."""
        x = self.place(x)
        return -evaluate(self.model, x).double() / self.temperature - self._log_base(x).double()

    def at(self, beta: float) -> Energy:
        """``−log p̃_β``, an energy at temperature 1."""

        def energy(x: Tensor) -> Tensor:
            x = self.place(x)
            model = evaluate(self.model, x) * (beta / self.temperature)
            return model if beta == 1 else model - (1 - beta) * self._log_base(x)

        return energy

    def _log_base(self, x: Tensor) -> Tensor:
        if self.box is None:
            return self.base.log_prob(x)
        return x.new_full((len(x),), -float((self.box[1] - self.box[0]).log().sum()))


def default_kernel() -> Kernel:
    """MALA with one step at each temperature, which adapts quickly in the pilot run."""
    return MALA(steps=1, step_size=0.1, adaptation=0.5)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Temperatures of a path, with the kernel that moves chains at each, and its step sizes.

    Attributes:
        betas: ``(T + 1,)`` from 0 to 1, increasing.
        step_sizes: For each of the T after the first; ``None`` if the kernel does not adapt.
        complete: Whether the pilot reached 1 before it ran out of temperatures; otherwise the last jump is too long.
        kernel: The kernel of the pilot.
    """

    betas: tuple[float, ...]
    step_sizes: tuple[Tensor | None, ...]
    complete: bool
    kernel: Kernel = field(default_factory=default_kernel)


@torch.no_grad()
def plan(
    bridge: Bridge,
    kernel: Kernel | None = None,
    *,
    target: float = 0.9995,
    chains: int = 128,
    max_temperatures: int = 3000,
    generator: torch.Generator | None = None,
) -> Schedule:
    """Choose temperatures at a constant effective sample size, by a pilot run whose chains are then discarded.

    From β the next is the one at which the weights ``exp((β′ − β)·gap)`` of the chains have an effective sample size of
    ``target`` times their number (by bisection). At each the kernel takes its steps and adapts its step size. Runs that
    estimate log Z use the schedule unchanged, so that adapting costs no bias.

    Args:
        bridge: From a base to the model.
        kernel: Any kernel at temperature 1 (MALA, HMC); by default MALA with one step at each temperature.
        target: Effective sample size after each step, as a share of the chains.
        chains: Chains of the pilot run.
        max_temperatures: Largest number of temperatures.
        generator: Source of randomness.

    Raises:
        InputError: ``target`` is not in (0, 1).
    """
    if not 0 < target < 1:
        raise InputError(f"target={target} must be between 0 and 1: the effective sample size is a share of the chains")
    kernel = kernel or default_kernel()
    x = bridge.base.sample(chains, generator)
    warm = run_chains(kernel, bridge.at(0.0), x, WARMUP, generator=generator, adapt=WARMUP)
    x, step_size = warm.x, warm.step_size
    betas, step_sizes = [0.0], list[Tensor | None]()
    while betas[-1] < 1 and len(betas) < max_temperatures:
        betas.append(_next(bridge.gap(x), betas[-1], target))
        ends = run_chains(kernel, bridge.at(betas[-1]), x, generator=generator, adapt=kernel.steps, step_size=step_size)
        x, step_size = ends.x, ends.step_size
        step_sizes.append(step_size)
    complete = betas[-1] == 1
    if not complete:
        betas.append(1.0)
        step_sizes.append(step_size)
    return Schedule(tuple(betas), tuple(step_sizes), complete, kernel)


def _next(gap: Tensor, beta: float, target: float) -> float:
    """The largest β′ ≤ 1 at which the weights keep ``target`` of their effective sample size."""

    def keeps(step: float) -> bool:
        return bool(effective_sample_share(step * gap) >= target)

    return min(1.0, beta + longest_step(keeps, 1 - beta, SHORTEST_STEP, HALVINGS))


@torch.no_grad()
def anneal_forward(
    bridge: Bridge, schedule: Schedule, n: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Run ``n`` chains from the base to the model.

    Returns:
        Log-weights ``(n,)``, of which ``E[exp w] = Z``, so that ``log mean exp w`` is below log Z in the mean; and the
        chains' ends ``(n, *event)``.
    """
    x = bridge.base.sample(n, generator)
    log_weights = x.new_zeros(n, dtype=torch.float64)
    for i, step_size in enumerate(schedule.step_sizes, start=1):
        log_weights += (schedule.betas[i] - schedule.betas[i - 1]) * bridge.gap(x)
        energy = bridge.at(schedule.betas[i])
        x = run_chains(schedule.kernel, energy, x, generator=generator, step_size=step_size).x
    return log_weights, bridge.place(x)


@torch.no_grad()
def anneal_backward(bridge: Bridge, schedule: Schedule, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Run chains from samples ``x`` ``(n, *event)`` of the model to the base.

    Returns:
        Log-weights ``(n,)``: for exact samples ``E[exp w] = 1/Z``, so that ``−log mean exp w`` is above log Z in the
        mean (Grosse et al. 2015).
    """
    log_weights = x.new_zeros(len(x), dtype=torch.float64)
    for i in range(len(schedule.step_sizes), 0, -1):
        beta, step_size = schedule.betas[i], schedule.step_sizes[i - 1]
        x = run_chains(schedule.kernel, bridge.at(beta), x, generator=generator, step_size=step_size).x
        log_weights += (schedule.betas[i - 1] - beta) * bridge.gap(x)
    return log_weights
