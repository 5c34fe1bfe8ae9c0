"""What a noise is: it can be sampled, and has an energy, perhaps without its constant."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from adance.configurable import Configurable
from adance.contrasts.contrast import Contrast

R = TypeVar("R", bound="NoiseRecipe")


@dataclass(eq=False)
class NoiseSample:
    """Noise samples of one batch, with what their noise must know of them when it gives their energies.

    Attributes:
        x: The samples ``(n, *event)``.
        from_model: Whether they are the model's own, as it is at this step: then its energies are the noise's too.
    """

    x: Tensor
    from_model: bool = False

    def adversary_term(self, loss_of_each: Callable[[], Tensor]) -> Tensor | None:
        """A term of the loss for the parameters of a trained noise alone, or ``None``.

        ``loss_of_each()`` is the part ``(n,)`` of the loss that each sample contributes, times n, without a graph.
        """
        return None


@dataclass(frozen=True)
class Separation:
    """How far a batch of data and noise has been told apart, each number computed when it is asked for.

    Attributes:
        data_weight: The mean weight of data in the gradient (:meth:`Contrast.pull`).
        noise_share: The effective share of the noise samples, weighted to follow the model.
    """

    data_weight: Callable[[], Tensor]
    noise_share: Callable[[], Tensor]


class NoiseRecipe(Configurable, ABC):
    """How to make a noise for given data."""

    def resolve(self: R, event_shape: tuple[int, ...]) -> R:
        """The same recipe with every open number chosen."""
        return self

    @abstractmethod
    def build(self, data: Tensor, generator: torch.Generator | None = None) -> "Noise":
        """The noise for data ``(N, *event)``."""


class Noise(NoiseRecipe, nn.Module):
    """A law with density ``exp(−energy/temperature)``, normalized or not.

    Parameters that require gradients are trained against the model: they maximize the objective's loss. Samples and
    energies then carry their graph.
    """

    temperature: float = 1.0
    """T at which the noise's energies form its density."""

    normalized: bool = True
    """Whether ``exp(−energy/T)`` integrates to one."""

    energy_gradients: int = 0
    """Energy gradients spent on samples so far."""

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> "Noise":
        """The noise itself: it needs nothing of the data."""
        return self

    def check_contrast(self, contrast: Contrast) -> None:
        """Check that ``contrast`` can be used with this noise.

        Raises:
            InputError: It cannot.
        """

    @abstractmethod
    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        """``n`` samples for a batch of data ``(B, *event)``, of a conditional model given ``condition``.

        Samples ``i·n/B`` to ``(i + 1)·n/B − 1`` are contrasted with datum i.
        """

    @abstractmethod
    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """The noise's energies ``(M,)`` of ``x`` ``(M, *event)``; with ``sample``, the last rows of ``x`` are its."""

    def after_step(self, energy: nn.Module, step: int, separation: Separation) -> None:
        """Called after optimizer step number ``step``, counted from 1, with what the step's batch showed."""

    def metrics(self) -> dict[str, Tensor]:
        """Numbers worth logging."""
        return {}
