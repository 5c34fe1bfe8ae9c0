"""Adaptation: kernels whose step size adapts in warm-up, until proposals are accepted at a target rate."""

import torch
from torch import Tensor

from adance.energies.energy import Energy, energy_and_gradient
from adance.samplers.kernel import ChainState, SplitKernel, StepInfo, check_settings


class AdaptiveKernel(SplitKernel):
    """A kernel that steers its step size towards a target acceptance; its arguments are those of :class:`MALA`."""

    exact = True
    gradients_at_init = 1

    def __init__(
        self, steps: int, step_size: float, temperature: float, target_acceptance: float, adaptation: float
    ) -> None:
        check_settings(self, steps=steps, step_size=step_size, temperature=temperature)
        check_settings(self, target_acceptance=target_acceptance, adaptation=adaptation)
        self.steps, self.step_size, self.temperature = steps, step_size, temperature
        self.target_acceptance, self.adaptation = target_acceptance, adaptation

    def init(self, energy: Energy, x: Tensor, step_size: Tensor | None = None) -> ChainState:
        """The state of chains at ``x`` ``(B, *event)``; costs one gradient."""
        return self._start(x, step_size, *energy_and_gradient(energy, x))

    def sample_randomness(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        """ξ ``(B, *event)``, and uniform numbers ``(B,)`` for acceptance."""
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        return noise, torch.rand(len(x), generator=generator, dtype=x.dtype, device=x.device)

    def adapt(self, state: ChainState, info: StepInfo) -> ChainState:
        """Robbins–Monro: ``log h ← log h + gain·max(1, n/20)^(−0.6)·(acceptance − target)`` at update n.

        The first twenty updates search at full gain, which is ``adaptation``; after them the gains' sum still diverges
        and that of their squares does not, so that h settles (Andrieu and Thoms 2008, section 4). One step size h is
        steered by the mean acceptance; if there is one for each chain, by its own.
        """
        assert info.probability is not None
        acceptance = info.probability if state.step_size.ndim else info.probability.mean()
        n = state.updates + 1
        change = self.adaptation * (n / 20).clamp(min=1) ** -0.6 * (acceptance - self.target_acceptance)
        return state._replace(step_size=state.step_size * change.exp(), updates=n)

    def _start(self, x: Tensor, given: Tensor | None, energy: Tensor, gradient: Tensor | None = None) -> ChainState:
        """The first state; a step size that is ``given`` counts as adapted by 60 updates."""
        step_size, updates = (x.new_tensor(self.step_size), 0) if given is None else (given, 60)
        return ChainState(x, energy, gradient, step_size=step_size, updates=x.new_tensor(updates))
