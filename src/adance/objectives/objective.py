"""What every training objective is.

A :class:`Recipe` says what is wanted and may leave numbers open; an :class:`Objective` is what it builds for given
data, complete. In your own training loop::

    objective = adance.AdaNCE(interval=10).build(energy, data, batch_size=128)
    for step, x in enumerate(batches, 1):
        out = objective.loss(energy, x, generator)
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step, out)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from adance.configurable import Configurable
from adance.energies.conditional import needs_condition, takes_condition
from adance.energies.energy import is_vector, unwrap
from adance.energies.spectral import advance_power_iteration, refuse_hook_spectral_norm
from adance.errors import InputError
from adance.noises.noise import Separation
from adance.samplers.kernel import Kernel
from adance.samplers.model_chains import ChainOptions

R = TypeVar("R", bound="Recipe")


@dataclass(frozen=True)
class LossOutput:
    """A loss and what it was made of.

    Attributes:
        value: The loss, one number, with its graph.
        energy_data: Energies of the data ``(B,)``, detached.
        energy_noise: Energies of what they are contrasted with ``(M,)``, detached; empty if there is nothing.
        measure: Computes the metrics; call it only on steps that are logged.
        separation: How far data and noise were told apart, if there is noise.
    """

    value: Tensor
    energy_data: Tensor
    energy_noise: Tensor
    measure: Callable[[], dict[str, Tensor]]
    separation: Separation | None = None

    @property
    def metrics(self) -> dict[str, Tensor]:
        """Named numbers, on the device of the loss."""
        return self.measure()


@dataclass(frozen=True)
class Setting:
    """What the defaults of a recipe depend on.

    Attributes:
        event_shape: Shape of one event; one axis means a vector, more an image.
        batch_size: Rows of one training batch.
        conditional: Whether the energy takes a condition.
    """

    event_shape: tuple[int, ...]
    batch_size: int
    conditional: bool = False

    @property
    def vectors(self) -> bool:
        """Whether events are vectors."""
        return is_vector(self.event_shape)


@dataclass(frozen=True)
class ChainPlan:
    """The chains that an objective will run in training.

    Attributes:
        kernel: Their kernel, of as many steps as one run takes.
        rows: Chains that run at a time.
        interval: Optimizer steps between runs.
        runs: How many runs most chains from noise have behind them, if there are such chains.
    """

    kernel: Kernel
    rows: int
    interval: int
    runs: float | None


class Recipe(Configurable, ABC):
    """How to make an objective for an energy and data."""

    def resolve(self: R, setting: Setting) -> R:
        """The same recipe with every open number chosen: a run made from it does not depend on defaults."""
        return self

    def chain_plan(self, setting: Setting) -> ChainPlan | None:
        """Its chains in training, if it has chains."""
        return None

    def kernel(self, setting: Setting) -> Kernel | None:
        """The kernel that samples are drawn with after training: that of its chains, if it has chains."""
        plan = self.chain_plan(setting)
        return None if plan is None else plan.kernel

    def build(
        self,
        energy: nn.Module,
        data: Tensor,
        *,
        batch_size: int | None = None,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
        chains: ChainOptions | None = None,
    ) -> "Objective":
        """The objective, complete.

        Args:
            energy: The energy to be trained.
            data: Data ``(N, *event)`` in the energy's units, dtype and device, which noise laws are fitted to.
            batch_size: Rows of one training batch; by default N.
            generator: Source of randomness.
            condition: One condition ``(1, *condition)`` of a conditional energy, to try it with.
            chains: How chains are computed; by default plainly.

        Raises:
            InputError: The energy, the data and the recipe do not fit together.
        """
        energy = unwrap(energy)
        refuse_hook_spectral_norm(energy)
        if condition is None and needs_condition(energy):
            raise InputError(f"{type(energy).__name__} is conditional: give build() a condition to try it with")
        setting = Setting(tuple(data.shape[1:]), batch_size or len(data), takes_condition(energy))
        site = Site(energy, data, setting, generator, condition, chains or ChainOptions())
        return self.build_for(site)

    @abstractmethod
    def build_for(self, site: "Site") -> "Objective":
        """What :meth:`build` does."""


@dataclass(frozen=True, eq=False)
class Site:
    """What an objective is built for: the arguments of :meth:`Recipe.build`, and the setting that they make."""

    energy: nn.Module
    data: Tensor
    setting: Setting
    generator: torch.Generator | None
    condition: Tensor | None
    chains: ChainOptions


class Objective(Recipe, nn.Module):
    """A complete training objective. Its ``own_parameters()`` (a log Z) are minimized together with the energy's.

    It is its own recipe: your own objective, a subclass with a ``loss``, is given to the trainer as it is.
    """

    def build_for(self, site: Site) -> "Objective":
        """The objective itself."""
        return self

    @property
    def energy_gradients(self) -> int:
        """Energy gradients spent on chains so far."""
        return 0

    @property
    def self_normalizing(self) -> bool:
        """Whether it learns the normalized density (thesis Table 3.1): exp(−E), with ``log_normalizer``, is one."""
        return False

    @abstractmethod
    def loss(
        self,
        energy: nn.Module,
        x: Tensor,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
    ) -> LossOutput:
        """The loss of a batch ``x`` ``(B, *event)``; a conditional energy takes ``condition`` ``(B, *condition)``."""

    def start(self, energy: nn.Module, data: Tensor, generator: torch.Generator | None = None) -> None:
        """Estimate the first values of its own parameters; the trainer calls it once, before training."""

    def own_parameters(self) -> list[nn.Parameter]:
        """Parameters that are minimized with the energy's: all that can be trained but the adversary's."""
        adversary = {id(parameter) for parameter in self.adversary_parameters()}
        return [
            parameter for parameter in self.parameters() if parameter.requires_grad and id(parameter) not in adversary
        ]

    def adversary_parameters(self) -> list[nn.Parameter]:
        """Parameters that are maximized by a second optimizer (a flow, a neural sampler)."""
        return []

    def after_step(self, energy: nn.Module, step: int, out: LossOutput) -> None:
        """Call after optimizer step number ``step``, counted from 1, with the output of its loss."""
        advance_power_iteration(energy)

    def log_normalizer(self) -> Tensor | None:
        """Log Z if the objective learns it, else ``None``: ``log p(x) = −E(x) − log Z``."""
        return None
