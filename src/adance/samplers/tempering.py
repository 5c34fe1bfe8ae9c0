"""Parallel tempering (Swendsen and Wang 1986; Geyer 1991) over any kernel."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from adance.energies.energy import Energy, energies, evaluate
from adance.errors import InputError
from adance.samplers.kernel import ChainState, Kernel, StepInfo, check_settings
from adance.samplers.rows import expand_rows


class TemperingState(NamedTuple):
    """Chains at every temperature.

    Attributes:
        inner: The kernel's state of all ``K·B`` chains, coldest first.
        chains: B.
        done: Steps taken.
        swapped: Mean swap probability of each pair of neighbors, summed over their trials ``(K − 1,)``.
        probability: Acceptance probabilities of the last step ``(K·B,)``, where the kernel has them.
    """

    inner: ChainState
    chains: int
    done: int
    swapped: Tensor
    probability: Tensor | None

    @property
    def x(self) -> Tensor:
        """Positions of the coldest chains ``(B, *event)``."""
        return self.inner.x[: self.chains]

    @property
    def step_size(self) -> Tensor | None:
        """The coldest chains' step size, where the kernel adapts one; every chain's is ``inner.step_size``."""
        step_sizes = getattr(self.inner, "step_size", None)
        return None if step_sizes is None else step_sizes[0]


class Tempering(Kernel):
    """K copies of every chain, each at its own temperature, where neighboring temperatures exchange positions.

    The kernel runs on the energy ``E·T/T_k``, so any kernel works; step sizes are adapted at each temperature. Every
    step ends with exchanges between neighbors k and k + 1, even and odd k in turn, each accepted with probability
    ``min(1, exp((1/T_k − 1/T_(k+1))(E_k − E_(k+1))))``, which leaves the joint distribution invariant. ``x`` are the
    chains at the first temperature. The energy is called once for each temperature, always with B rows.

    Args:
        kernel: The kernel; its own temperature is ignored.
        temperatures: T_1 < T_2 < …; the first is that of the target.
        steps: Steps of one chain; by default those of the kernel.

    Raises:
        InputError: There are fewer than two temperatures, they are not above 0 or not increasing, ``steps`` is below 0,
            or the kernel's temperature is 0.
    """

    def __init__(
        self, kernel: Kernel, temperatures: Sequence[float] = (1.0, 2.0, 4.0, 8.0), steps: int | None = None
    ) -> None:
        ladder = list(temperatures)
        rising = all(low < high for low, high in pairwise(ladder))
        if len(ladder) < 2 or not rising or not ladder[0] > 0:
            raise InputError(f"Tempering needs two or more increasing temperatures above 0, got {ladder}")
        check_settings(self, steps=steps)
        if not kernel.temperature > 0:
            raise InputError("Tempering needs a kernel whose temperature is above 0")
        self.kernel, self.temperatures, self.temperature = kernel, ladder, ladder[0]
        self.factors = [kernel.temperature / t for t in ladder]
        self.steps, self.exact = kernel.steps if steps is None else steps, kernel.exact
        self.gradients_at_init = len(ladder) * kernel.gradients_at_init
        self.gradients_per_step = len(ladder) * kernel.gradients_per_step

    @property
    def keeps_target(self) -> bool:
        """``False``: chains at all temperatures start where the coldest are, so the hot ones first have to converge."""
        return False

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> TemperingState:
        """The state of chains that start from ``x`` ``(B, *event)`` at every temperature.

        ``step_size`` is one number for all temperatures, or one for each of the ``K·B`` chains.
        """
        K, B = len(self.temperatures), len(x)
        if step_size is not None:
            step_size = step_size.expand(K * B)
        inner = self.kernel.init(self._scaled(energy), x.repeat(K, *[1] * (x.ndim - 1)), step_size)
        if getattr(inner, "step_size", None) is not None:
            inner = inner._replace(step_size=inner.step_size.expand(K * B))
        return TemperingState(inner, B, 0, x.new_zeros(K - 1), None)

    def step(
        self, energy: Energy, state: TemperingState, generator: torch.Generator | None = None
    ) -> tuple[TemperingState, StepInfo]:
        """Move every chain once at its temperature, then exchange neighbors."""
        B, scaled = state.chains, self._scaled(energy)
        inner, info = self.kernel.step(scaled, state.inner, generator)
        factors = inner.x.new_tensor(self.factors).repeat_interleave(B)  # T/T_k of every row
        values = energies(scaled, inner.x) if getattr(inner, "energy", None) is None else inner.energy
        values = values / factors
        order, swapped = self._exchange(values.view(-1, B), state.done % 2, generator)
        inner = _reordered(inner, order, factors / factors[order])
        state = TemperingState(inner, B, state.done + 1, state.swapped + swapped, info.probability)
        cold = StepInfo._make(None if value is None else value[:B] for value in info)
        norm = None if cold.gradient_norm is None else cold.gradient_norm / factors[0]
        return state, cold._replace(energy=cold.energy / factors[0], gradient_norm=norm)

    def adapt(self, state: TemperingState, info: StepInfo) -> TemperingState:
        """Adapt as the kernel does, at each temperature by the mean acceptance there."""
        if state.probability is None:
            return state
        means = state.probability.view(-1, state.chains).mean(1, keepdim=True).expand(-1, state.chains).flatten()
        return state._replace(inner=self.kernel.adapt(state.inner, info._replace(probability=means)))

    def swap_rates(self, state: TemperingState) -> Tensor:
        """Mean swap probability of each pair of neighbors so far ``(K − 1,)``; below 0.2, use more temperatures."""
        pairs = torch.arange(len(self.temperatures) - 1, device=state.swapped.device)
        trials = torch.where(pairs % 2 == 0, (state.done + 1) // 2, state.done // 2)
        return state.swapped / trials

    def _scaled(self, energy: Energy) -> Energy:
        def scaled(x: Tensor) -> Tensor:
            parts = zip(self.factors, x.chunk(len(self.factors)), strict=True)
            return torch.cat([factor * evaluate(energy, part) for factor, part in parts])

        return scaled

    def _exchange(self, values: Tensor, parity: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The row ``(K·B,)`` that each row takes its chain from, and the mean swap probabilities of the pairs."""
        K, B = values.shape
        pairs = torch.arange(K - 1, device=values.device)
        inverse = 1 / values.new_tensor(self.temperatures)
        log_ratio = (inverse[:-1] - inverse[1:])[:, None] * (values[:-1] - values[1:])
        tried = (pairs % 2 == parity)[:, None]
        probability = torch.where(tried & ~log_ratio.isnan(), log_ratio.clamp(max=0).exp(), 0.0)
        u = torch.rand(probability.shape, generator=generator, dtype=values.dtype, device=values.device)
        swap = (u < probability).long()
        rung = torch.arange(K, device=values.device)[:, None].repeat(1, B)
        rung[:-1] += swap
        rung[1:] -= swap
        order = rung * B + torch.arange(B, device=values.device)
        return order.flatten(), probability.mean(1)


def _reordered(state: Any, order: Tensor, scale: Tensor) -> Any:
    """The state with chains exchanged: other values of a chain follow it, energies scaled to the new temperature."""
    moved: dict[str, Tensor] = {}
    for name in ("x", "momentum", "energy", "gradient"):
        value = getattr(state, name, None)
        if value is not None:
            scaled = name in ("energy", "gradient")
            moved[name] = value[order] * expand_rows(scale, value) if scaled else value[order]
    return state._replace(**moved)
