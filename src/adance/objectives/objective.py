"""What every training objective is.

In a loop of one's own::

    out = objective.loss(energy, x, generator)
    out.value.backward()
    optimizer.step()
    objective.after_step(energy, step)      # step counts from 1
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adance.configurable import Configurable
from adance.energies.energy import unwrap
from adance.energies.spectral import advance_power_iteration, refuse_hook_spectral_norm
from adance.samplers.kernel import Kernel


@dataclass(frozen=True)
class LossOutput:
    """A loss and what it was made of.

    Attributes:
        value: The loss, one number, with its graph.
        energy_data: Energies of the data ``(B,)``, detached.
        energy_noise: Energies of what they are contrasted with ``(M,)``, detached; empty where there is none.
        measure: Computes the metrics; call it only on steps that are logged.
    """

    value: Tensor
    energy_data: Tensor
    energy_noise: Tensor
    measure: Callable[[], dict[str, Tensor]]

    @property
    def metrics(self) -> dict[str, Tensor]:
        """Named numbers, on the device of the loss."""
        return self.measure()


class Objective(Configurable, nn.Module, ABC):
    """A training objective. Its ``own_parameters()`` (a log Z) are minimised together with the energy's."""

    sampler: Kernel | None = None
    """The kernel of its chains, where it has chains."""

    prepared: bool = False

    @property
    def chain_runs(self) -> float | None:
        """How many runs most of its chains from noise had behind them, where it has such chains."""
        return None

    @property
    def self_normalizing(self) -> bool:
        """Whether it learns the normalised density (thesis Table 3.1): exp(−E), with ``log_normalizer``, is one."""
        return False

    @abstractmethod
    def loss(self, energy: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> LossOutput:
        """The loss of a batch ``x`` ``(B, *event)``."""

    def prepare(
        self, energy: nn.Module, data: Tensor, batch: int | None = None, generator: torch.Generator | None = None
    ) -> None:
        """Set up what depends on the energy and the data ``(N, *event)``; ``loss`` does it when nobody has.

        Args:
            energy: The energy to be trained.
            data: Data of the right shape, dtype and device, from which noise laws are fitted.
            batch: Rows of one training batch; by default those of ``data``.
            generator: Source of randomness.

        Raises:
            InputError: The energy, the data or the settings do not fit together.
        """
        energy = unwrap(energy)
        refuse_hook_spectral_norm(energy)
        self._prepare(energy, data, len(data) if batch is None else batch, generator)
        self.prepared = True

    def _prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        """What a subclass sets up."""

    def start(self, energy: nn.Module, data: Tensor, generator: torch.Generator | None = None) -> None:
        """Estimate the first values of its own parameters; the trainer calls it once, after ``prepare``."""

    def own_parameters(self) -> list[nn.Parameter]:
        """Parameters that are minimised with the energy's: all that can be trained but the adversary's."""
        adversary = {id(parameter) for parameter in self.adversary_parameters()}
        return [
            parameter for parameter in self.parameters() if parameter.requires_grad and id(parameter) not in adversary
        ]

    def adversary_parameters(self) -> list[nn.Parameter]:
        """Parameters that are maximised by a second optimiser (a flow, a neural sampler)."""
        return []

    def after_step(self, energy: nn.Module, step: int) -> None:
        """Call after optimiser step number ``step``, counted from 1."""
        advance_power_iteration(energy)
        self._after_step(unwrap(energy), step)

    def _after_step(self, energy: nn.Module, step: int) -> None:
        """What a subclass does then."""

    def log_normalizer(self) -> Tensor | None:
        """Log Z where the objective learns it, else ``None``: ``log p(x) = −E(x) − log Z``."""
        return None
