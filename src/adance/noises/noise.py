"""What a noise is: it can be sampled, and has an energy, perhaps without its constant."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from adance.configurable import Configurable


class Noise(Configurable, nn.Module, ABC):
    """A law with density ``exp(−energy/temperature)``, normalised or not."""

    paired: bool = False
    """Whether each sample belongs to the datum that it was drawn around: then only pairs can be told apart."""

    adversarial: bool = False
    """Whether it is trained against the model: then draws and energies carry the graph of its parameters."""

    rewarded: bool = False
    """Whether ``adversary_term`` needs to know what each sample contributed to the loss."""

    @property
    @abstractmethod
    def temperature(self) -> float:
        """T at which the noise's energies form its density."""

    @property
    @abstractmethod
    def normalized(self) -> bool:
        """Whether ``exp(−energy/T)`` integrates to one."""

    @abstractmethod
    def prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        """Everything that needs to be known of the energy and the data ``(N, *event)``; called once."""

    @abstractmethod
    def draw(self, n: int, data: Tensor, generator: torch.Generator | None) -> Tensor:
        """``n`` samples ``(n, *event)``; ``data`` ``(B, *event)`` is the batch that they are contrasted with.

        Samples ``i·n/B`` to ``(i + 1)·n/B − 1`` are contrasted with datum i.
        """

    @abstractmethod
    def energy(self, x: Tensor, model_energy: Tensor) -> Tensor:
        """The noise's energies ``(B,)`` of ``x`` ``(B, *event)``, given the model's ``(B,)`` of the same ``x``."""

    def energy_of_batch(self, both: Tensor, n: int, model_energy: Tensor) -> Tensor:
        """As :meth:`energy`, of ``n`` data followed by the samples drawn last: a noise may know those already."""
        return self.energy(both, model_energy)

    def adversary_parameters(self) -> list[nn.Parameter]:
        """What is maximised, once prepared."""
        return list(self.parameters()) if self.adversarial else []

    def adversary_term(self, reward: Tensor | None) -> Tensor | None:
        """What is added to the loss for the adversary alone, about the samples drawn last.

        ``reward`` ``(n,)``, where :attr:`rewarded`: each sample's own part of the loss, without graph.
        """
        return None

    def observe(self, pull: Callable[[], Tensor], share: Callable[[], Tensor]) -> None:
        """Told before each step, of its batch.

        ``pull()`` is the contrast's, see :meth:`Contrast.pull`; ``share()`` the effective share of the noise, were it
        weighted to follow the model.
        """

    def after_step(self, energy: nn.Module, step: int) -> None:
        """Called after optimiser step number ``step``, counted from 1."""

    def metrics(self) -> dict[str, Tensor]:
        """Numbers worth logging."""
        return {}
