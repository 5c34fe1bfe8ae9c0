"""The exponential moving average (EMA) of the weights."""

import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from adance.energies.frozen import folded_state, freeze


class WeightAverage:
    """An exponential moving average of an energy's weights, kept as a frozen copy.

    It averages the weights that the forward pass uses, with spectral normalization folded in. Early in training the
    average is shorter: the decay at step t is at most ``(1 + t)/(10 + t)``.
    """

    def __init__(self, energy: nn.Module, decay: float) -> None:
        self.decay = decay
        self.energy = freeze(energy)
        own = folded_state(self.energy)
        self._own = {name: value for name, value in own.items() if value.is_floating_point()}
        # without parametrizations, the values that the forward uses are the energy's own tensors
        plain = not any(is_parametrized(module) for module in energy.modules())
        self._present = folded_state(energy) if plain else None

    @torch.no_grad()
    def update(self, energy: nn.Module, step: int) -> None:
        """Add the weights after optimizer step ``step``, counted from 1."""
        keep = min(self.decay, (1 + step) / (10 + step))
        present = folded_state(energy) if self._present is None else self._present
        torch._foreach_lerp_(list(self._own.values()), [present[name] for name in self._own], 1 - keep)
