"""Conditional energies: of x, given a condition z.

A conditional energy is called as ``energy(x, condition=z)``: its forward has a parameter named ``condition``. Log Z
depends on z, so objectives that learn one constant (NCE) cannot be used.
"""

import inspect

from torch import Tensor, nn

from adance.errors import InputError


class ConditionalEnergy(nn.Module):
    """``E(x | z)`` at fixed z, as an energy of ``x`` alone: any sampler of it samples from ``p(x | z)``.

    Args:
        energy: ``energy(x, condition=z) -> (B,)`` for ``x`` ``(B, *event)`` and ``z`` ``(B, *condition)``.
        z: One condition ``(1, *condition)`` for all rows, or one for each row ``(B, *condition)``.
    """

    z: Tensor

    def __init__(self, energy: nn.Module, z: Tensor) -> None:
        super().__init__()
        self.energy = energy
        self.register_buffer("z", z, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``.

        The number of rows may be a multiple of the number of conditions, which are then repeated in order.

        Raises:
            InputError: The number of rows is not a multiple of the number of conditions.
        """
        if len(x) % len(self.z):
            raise InputError(f"{len(x)} rows do not fit {len(self.z)} conditions: pass one, or one for each row")
        z = self.z.to(x.device)
        return self.energy(x, condition=z.repeat(len(x) // len(z), *[1] * (z.ndim - 1)))  # type: ignore[no-any-return]


def given(energy: nn.Module, z: Tensor | None) -> nn.Module:
    """``energy`` as an energy of ``x`` alone: at the condition ``z``, or itself if ``z`` is ``None``."""
    return energy if z is None else ConditionalEnergy(energy, z)


def takes_condition(energy: nn.Module) -> bool:
    """Whether the energy is conditional: its forward has a parameter called ``condition``."""
    return "condition" in inspect.signature(energy.forward).parameters


def needs_condition(energy: nn.Module) -> bool:
    """Whether the energy requires a condition: that parameter has no default."""
    condition = inspect.signature(energy.forward).parameters.get("condition")
    return condition is not None and condition.default is condition.empty
