"""The base classes of noises: a noise can be sampled and has an energy, normalized or not."""

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
    """Noise samples of one batch, with the information that the noise needs to compute their energies.

    Attributes:
        x: The samples ``(n, *event)``.
        from_model: Whether they are samples of the current model, so that the noise's energies equal the model's.
        condition: The condition of each sample ``(n, *condition)``, if the model is conditional.
    """

    x: Tensor
    from_model: bool = False
    condition: Tensor | None = None

    def adversary_term(self, loss_of_each: Callable[[], Tensor]) -> Tensor | None:
        """A term of the loss that only the parameters of a trained noise see, or ``None``.

        ``loss_of_each()`` returns n times the contribution of each sample to the loss ``(n,)``, without a graph.
        """
        return None


@dataclass(frozen=True)
class Separation:
    """How well the model distinguishes a batch of data from noise; each number is computed when called.

    Attributes:
        data_weight: The mean weight of data in the gradient (:meth:`Contrast.mean_data_weight`).
        noise_share: The effective sample share of the noise samples, weighted to follow the model.
    """

    data_weight: Callable[[], Tensor]
    noise_share: Callable[[], Tensor]


class NoiseRecipe(Configurable, ABC):
    """How to make a noise for given data."""

    trained: bool = False
    """Whether the noise is trained against the model."""

    def resolve(self: R, event_shape: tuple[int, ...]) -> R:
        """The same recipe with every open number filled in."""
        return self

    @abstractmethod
    def build(self, data: Tensor, generator: torch.Generator | None = None) -> "Noise":
        """The noise for data ``(N, *event)``."""


class Noise(NoiseRecipe, nn.Module):
    """A distribution with density ``exp(−energy/temperature)``, normalized or not.

    Parameters that require gradients are trained against the model: they maximize the objective's loss. Samples and
    energies then carry their graph.
    """

    temperature: float = 1.0
    """T of the noise's density ``exp(−energy/T)``."""

    normalized: bool = True
    """Whether ``exp(−energy/T)`` integrates to one."""

    energy_gradients: int = 0
    """Energy gradients spent on samples so far."""

    @property
    def descent(self) -> float | None:
        """Mean energy that one step of the noise's chains descends, if they are chains with a fixed step size."""
        return None

    @property
    def lr_factor(self) -> float:
        """Factor, at most 1, by which the model's learning rate should be multiplied."""
        return 1.0

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> "Noise":
        """The noise itself, since it does not depend on the data."""
        return self

    def check_contrast(self, contrast: Contrast) -> None:
        """Check that ``contrast`` can be used with this noise.

        Raises:
            InputError: The contrast cannot be used with this noise.
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
        """The noise's energies ``(M,)`` of ``x`` ``(M, *event)``, whose last rows are ``sample``, if given."""

    def after_step(self, energy: nn.Module, step: int, separation: Separation) -> None:
        """Called after optimizer step number ``step``, counted from 1, with the separation of its batch."""

    def metrics(self) -> dict[str, Tensor]:
        """Metrics to log."""
        return {}
