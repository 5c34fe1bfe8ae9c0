"""Conditional energies: of some coordinates the others given, and of x given z."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from adance.energies.energy import Energy
from adance.errors import InputError


class Completion(nn.Module):
    """``E`` as a function of the coordinates that are not kept: kept ones are set to given values.

    Any sampler of this energy draws from the conditional law of the rest, since nothing that it does to the kept
    coordinates has an effect; :meth:`complete` puts the given values back at the end.

    Args:
        energy: The energy of whole events.
        given: Values ``(B, *event)`` or ``(*event)``.
        kept: Boolean, broadcasting against ``given``: where the given values hold.
    """

    def __init__(self, energy: Energy, given: Tensor, kept: Tensor) -> None:
        super().__init__()
        self.energy, self.given, self.kept = energy, given, kept

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``, its kept coordinates replaced."""
        return self.energy(self.complete(x))

    def complete(self, x: Tensor) -> Tensor:
        """``x`` with the given values where they are kept."""
        return torch.where(self.kept, self.given, x)


class Condition:
    """What a conditional energy is given at the moment, if anything: one for it and for every copy made of it."""

    def __init__(self, z: Tensor | None) -> None:
        self.z = z

    def __deepcopy__(self, memo: dict[int, object]) -> "Condition":
        return self


class Given(nn.Module):
    """``E(x | z)`` as an energy of ``x`` alone: any sampler of it draws from ``p(x | z)``, any objective trains it.

    Frozen copies (the noise of AdaNCE) share the condition, so that a training loop sets it once a batch::

        energy.condition(z)
        loss = objective.loss(energy, x, generator).value

    Chains must then belong to the batch they are contrasted with, so that snapshots draw afresh at every step
    (``pool=0``, their default here). Log Z depends on z, so objectives that learn one constant (NCE) do not fit.

    Args:
        energy: ``energy(x, z) -> (B,)`` for ``x`` ``(B, *event)`` and ``z`` ``(B, *condition)``.
        z: One condition ``(1, *condition)`` for all rows, or one for each row ``(B, *condition)``.
    """

    needs_condition = True

    def __init__(self, energy: Callable[..., Tensor], z: Tensor | None = None) -> None:
        super().__init__()
        self.energy, self.given = energy, Condition(z)

    def condition(self, z: Tensor) -> "Given":
        """Set the condition, here and in every copy; returns the energy."""
        self.given.z = z
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``.

        Rows may be a whole multiple of the conditions, which are then repeated in their order: an objective joins a
        batch with as many noise samples.

        Raises:
            InputError: The number of rows is no multiple of the number of conditions.
        """
        if self.given.z is None:
            return self.unconditioned(x)
        z = self.given.z.to(x.device)
        if len(x) % len(z):
            raise InputError(f"{len(x)} rows cannot be given {len(z)} conditions; one for all, or one for each row")
        return self.at(x, z.repeat(len(x) // len(z), *[1] * (z.ndim - 1)))

    def at(self, x: Tensor, z: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)`` given ``z`` ``(B, *condition)``."""
        return self.energy(x, z)

    def unconditioned(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` as long as no condition is set: here an error.

        Raises:
            InputError: Always.
        """
        raise InputError("a conditional energy needs its condition: call energy.condition(z) first")

    def check_labels(self, labels: Tensor) -> None:
        """Check that the labels of data ``(N,)`` can be its conditions; here: any can."""


def needs_condition(energy: Energy) -> bool:
    """Whether there is no energy as long as no condition is set."""
    return isinstance(energy, Given) and energy.needs_condition


@contextmanager
def conditioned(energy: Energy, z: Tensor | None) -> Iterator[None]:
    """Inside, a conditional energy and its copies are given ``z``; of any other energy nothing changes."""
    if not isinstance(energy, Given):
        yield
        return
    before, energy.given.z = energy.given.z, z
    try:
        yield
    finally:
        energy.given.z = before
