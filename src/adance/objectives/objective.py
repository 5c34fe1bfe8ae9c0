"""The base classes of training objectives.

A :class:`Recipe` holds your settings and may leave numbers open. It builds an :class:`Objective`, which is complete,
for given data. In your own training loop::

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
from adance.energies.energy import check_events, is_vector, unwrap
from adance.energies.spectral import advance_power_iteration, refuse_hook_spectral_norm
from adance.errors import InputError
from adance.noises.noise import NoiseRecipe, Separation
from adance.objectives.tilt import fit_base
from adance.samplers.kernel import Kernel
from adance.samplers.model_chains import ChainOptions

R = TypeVar("R", bound="Recipe")


@dataclass(frozen=True)
class LossOutput:
    """A loss and its parts.

    Attributes:
        value: The loss, one number, with its graph.
        energy_data: Energies of the data ``(B,)``, detached; of a tilted energy whose base is the noise, f alone.
        energy_noise: Energies of the noise ``(M,)``, detached; empty if there is no noise.
        compute_metrics: Computes the metrics; called only on steps that are logged.
        separation: How well data and noise are distinguished, if there is noise.
    """

    value: Tensor
    energy_data: Tensor
    energy_noise: Tensor
    compute_metrics: Callable[[], dict[str, Tensor]]
    separation: Separation | None = None

    @property
    def metrics(self) -> dict[str, Tensor]:
        """Metrics by name, on the device of the loss."""
        return self.compute_metrics()


@dataclass(frozen=True)
class Setting:
    """Everything that the defaults of a recipe depend on.

    Attributes:
        event_shape: Shape of one event; one axis means a vector, more an image.
        batch_size: Rows of one training batch.
        conditional: Whether the energy takes a condition.
        steps: The number of optimizer steps, if it is known.
    """

    event_shape: tuple[int, ...]
    batch_size: int
    conditional: bool = False
    steps: int | None = None

    @property
    def vectors(self) -> bool:
        """Whether events are vectors."""
        return is_vector(self.event_shape)


@dataclass(frozen=True)
class ChainPlan:
    """The chains that an objective will run in training.

    Attributes:
        kernel: The kernel, whose number of steps is that of one run.
        rows: Chains that run at a time.
        interval: Optimizer steps between runs.
        runs: Mean number of runs that chains have taken since noise, or ``None``.
        alike: Whether all runs have the same numbers of chains and steps, so that one compiled program serves them.
    """

    kernel: Kernel
    rows: int
    interval: int
    runs: float | None
    alike: bool = True


class Recipe(Configurable, ABC):
    """How to make an objective for an energy and data."""

    checks_types = True

    def resolve(self: R, setting: Setting) -> R:
        """The same recipe with every open number filled in: a run made from it does not depend on defaults."""
        return self

    @property
    def noise_recipe(self) -> NoiseRecipe | None:
        """The noise, if it is made without the model."""
        return None

    def chain_plan(self, setting: Setting) -> ChainPlan | None:
        """The chains in training, if any."""
        return None

    def kernel(self, setting: Setting) -> Kernel | None:
        """The kernel for sampling after training: that of the chains, if any."""
        plan = self.chain_plan(setting)
        return None if plan is None else plan.kernel

    def build(
        self,
        energy: nn.Module,
        data: Tensor,
        *,
        batch_size: int | None = None,
        steps: int | None = None,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
        chains: ChainOptions | None = None,
    ) -> "Objective":
        """Build the complete objective.

        Args:
            energy: The energy to be trained.
            data: Data ``(N, *event)`` in the energy's units, dtype and device; noises are fitted to them.
            batch_size: Rows of one training batch; by default N.
            steps: Number of optimizer steps; without it, the end of training is like the rest.
            generator: Source of randomness.
            condition: One condition ``(1, *condition)`` of a conditional energy, to test it with.
            chains: How chains are computed; by default without compilation.

        Raises:
            InputError: The energy, the data and the recipe do not fit together.
        """
        check_events(data)
        energy = unwrap(energy)
        refuse_hook_spectral_norm(energy)
        if condition is None and needs_condition(energy):
            raise InputError(f"{type(energy).__name__} is conditional: pass build() a condition to test it with")
        fit_base(energy, self.noise_recipe, data, generator)
        setting = Setting(tuple(data.shape[1:]), batch_size or len(data), takes_condition(energy), steps)
        site = Site(energy, data, setting, generator, condition, chains or ChainOptions())
        return self.build_for(site)

    @abstractmethod
    def build_for(self, site: "Site") -> "Objective":
        """Implementation of :meth:`build`."""


@dataclass(frozen=True, eq=False)
class Site:
    """The arguments of :meth:`Recipe.build`, and the :class:`Setting` that they imply."""

    energy: nn.Module
    data: Tensor
    setting: Setting
    generator: torch.Generator | None
    condition: Tensor | None
    chains: ChainOptions


class Objective(Recipe, nn.Module):
    """A complete training objective; its ``own_parameters()`` (log Z) are trained together with those of the energy.

    It is its own recipe: pass your own objective, a subclass with a ``loss``, to the trainer as it is.
    """

    def build_for(self, site: Site) -> "Objective":
        """The objective itself."""
        return self

    @property
    def energy_gradients(self) -> int:
        """Energy gradients spent on chains so far."""
        return 0

    @property
    def lr_factor(self) -> float:
        """Factor, at most 1, by which the trainer multiplies the energy's learning rate at the next step."""
        return 1.0

    @property
    def self_normalizing(self) -> bool:
        """Whether it learns the normalized density exp(−E)/Z (thesis Table 3.1), with Z from ``log_normalizer``."""
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
        """Estimate the initial values of its own parameters; the trainer calls this once, before training."""

    def own_parameters(self) -> list[nn.Parameter]:
        """Parameters trained together with the energy's: all trainable ones except the adversary's."""
        adversary = {id(parameter) for parameter in self.adversary_parameters()}
        return [
            parameter for parameter in self.parameters() if parameter.requires_grad and id(parameter) not in adversary
        ]

    def adversary_parameters(self) -> list[nn.Parameter]:
        """Parameters that a second optimizer trains to maximize the loss (a flow, a neural sampler)."""
        return []

    def after_step(self, energy: nn.Module, step: int, out: LossOutput) -> None:
        """Call after optimizer step number ``step``, counted from 1, with the output of its loss."""
        advance_power_iteration(energy)

    def log_normalizer(self) -> Tensor | None:
        """Log Z if the objective learns it, otherwise ``None``: ``log p(x) = −E(x) − log Z``."""
        return None
