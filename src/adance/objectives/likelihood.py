"""Maximum likelihood: the energy is pushed down on data and up on samples of the model, which Markov chains draw."""

import copy

import torch
from torch import Tensor, nn

from adance.energies.energy import evaluate
from adance.energies.spectral import power_iteration_held
from adance.errors import InputError
from adance.noises.snapshot import Snapshot
from adance.objectives.measures import energy_measures
from adance.objectives.objective import LossOutput, Objective
from adance.samplers.defaults import Changes
from adance.samplers.kernel import Kernel
from adance.samplers.starts import ChainStarts, StartKind


class MaximumLikelihood(Objective):
    """Maximum likelihood with Markov chains (thesis 2.4; Du and Mordatch 2019).

    The loss is ``mean E(x⁺) − mean E(x⁻) + α·(mean E₊² + mean E₋²)`` over data x⁺ ``(B, *event)`` and the ends x⁻
    ``(B, *event)`` of as many chains of the present model. Without α its gradient is T times that of the negative
    log-likelihood of ``exp(−E/T)``, T the chain's temperature; the value itself says nothing of how good the model is.
    It is the gradient of :class:`~adance.objectives.AdaNCE` with ``interval=1``.

    Estimates the density up to its constant, at temperature T, as well as the chains sample it: exactly where they
    have mixed (MALA, from a buffer, smooth laws); otherwise a law whose short chains look like data. No log Z.

    Choose it for samples of images and as the yardstick of other methods, where a chain for every optimiser step can
    be afforded. ``AdaNCE`` spends fewer chains; score matching spends none.

    Args:
        sampler: Kernel of the chains. By default ``Langevin(steps=30, step_size=1, noise_std=0.005)`` for images and
            ``MALA(steps=50)`` at T = 1 for vectors.
        start: Where chains start: ``noise``; ``data``; ``persistent``, from the ends of earlier chains;
            ``rejuvenated``, the same, but a share of them from noise; ``reweighted``, persistent chains that are
            resampled after every step by how much likelier it made them (Carbone et al. 2023), for exact kernels.
        rejuvenation: R, that share; by default 0.25 for images, 0.02 for vectors. Du and Mordatch have 0.05.
        buffer: Ends of chains that are kept; by default 5,000, or a batch where that is more. Du and Mordatch have
            10,000.
        energy_penalty: α, which keeps energies from running away.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        sampler: Kernel | Changes | None = None,
        start: StartKind = "rejuvenated",
        rejuvenation: float | None = None,
        buffer: int | None = None,
        energy_penalty: float = 0.0,
    ) -> None:
        super().__init__()
        if not energy_penalty >= 0:
            raise InputError(f"energy_penalty must be 0 or more, got {energy_penalty}")
        self.steps: int | None = None
        self.noise = Snapshot(sampler, ChainStarts(start, rejuvenation, buffer), interval=1)
        self.sampler, self.energy_penalty = self.noise.sampler, energy_penalty

    @property
    def temperature(self) -> float:
        """T of the density that is estimated, the chain's."""
        return self.noise.temperature

    @property
    def chain_runs(self) -> float | None:
        """How many runs most of its chains from noise had behind them."""
        return self.noise.starts.runs

    def _prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        self.noise.prepare(energy, data, batch, generator)
        assert self.noise.sampler is not None
        self.sampler = self.init_args["sampler"] = self.noise.sampler
        if self.steps is not None:
            self.noise.sampler = _with_steps(self.sampler, self.steps)

    def loss(self, energy: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> LossOutput:
        """The loss of a batch ``x`` ``(B, *event)``; data and samples go through the energy in one forward pass."""
        if not self.prepared:
            self.prepare(energy, x, generator=generator)
        n = len(x)
        with power_iteration_held(energy):
            energies = evaluate(energy, torch.cat([x, self.noise.draw(n, x, generator)]))
        data, noise = energies[:n], energies[n:]
        value = data.mean() - noise.mean()
        if self.energy_penalty > 0:
            value = value + self.energy_penalty * (data.square().mean() + noise.square().mean())
        found, detached = value.detach(), energies.detach()
        return LossOutput(
            value, detached[:n], detached[n:], lambda: energy_measures(found, detached, n) | self.noise.metrics()
        )

    def _after_step(self, energy: nn.Module, step: int) -> None:
        self.noise.after_step(energy, step)


class ContrastiveDivergence(MaximumLikelihood):
    """Contrastive divergence, CD-k (Hinton 2002): maximum likelihood with chains of k steps from the data themselves.

    The loss is ``mean E(x⁺) − mean E(x⁻) + α·(mean E₊² + mean E₋²)``, x⁻ ``(B, *event)`` being where k steps lead from
    x⁺ ``(B, *event)``.

    Estimates the density up to its constant, at the chain's temperature T. The gradient is biased, but is zero at the
    truth if the chain leaves ``exp(−E/T)`` as it is (MALA): then a model that can hold the truth finds it. With an
    unadjusted chain what finds the data is the chain's own stationary law: for ``½a(x − b)²`` and Langevin of step α
    that is 1/a ← s²(1 − αa/2) at T = 1. Regions that no chain reaches from data are never pushed up.

    Choose it where chains are dear and the data cover what matters, as with Boltzmann machines and outlier scores;
    not for samples that start from noise.

    Args:
        k: Steps of a chain.
        sampler: Kernel of the chains; its own number of steps is kept for sampling from the trained model.
        energy_penalty: α.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(self, k: int = 1, sampler: Kernel | Changes | None = None, energy_penalty: float = 0.0) -> None:
        super().__init__(sampler, "data", energy_penalty=energy_penalty)
        self.steps = _positive("k", k)


class PersistentCD(MaximumLikelihood):
    """Persistent contrastive divergence, PCD-k (Tieleman 2008): chains that go on from where they were a step before.

    The loss is ``mean E(x⁺) − mean E(x⁻) + α·(mean E₊² + mean E₋²)``, x⁻ ``(B, *event)`` being where k more steps have
    led the chains; they start from noise once, and follow the model as it changes.

    Estimates the density up to its constant, at the chain's temperature. The bias vanishes as the learning rate falls,
    since the chains then keep up with the model, unless they cannot cross between modes.

    Choose it over CD for a density that holds away from data too, with small learning rates; over the rejuvenated
    buffer of ``MaximumLikelihood`` where samples need not be reached from noise in a few steps.

    Args:
        k: Steps of the chains for each optimiser step; by default the sampler's own number.
        sampler: Kernel of the chains.
        chains: How many there are, of which each step moves a batch; by default as many as a batch, so that every
            chain moves at every step.
        energy_penalty: α.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        k: int | None = None,
        sampler: Kernel | Changes | None = None,
        chains: int | None = None,
        energy_penalty: float = 0.0,
    ) -> None:
        self.chains = None if chains is None else _positive("chains", chains)
        super().__init__(sampler, "persistent", buffer=chains, energy_penalty=energy_penalty)
        self.steps = None if k is None else _positive("k", k)

    def _prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        if self.chains is None:
            self.noise.starts.capacity = batch
        super()._prepare(energy, data, batch, generator)


def _positive(name: str, number: int) -> int:
    if number < 1:
        raise InputError(f"{name} must be at least 1, got {number}")
    return number


def _with_steps(kernel: Kernel, steps: int) -> Kernel:
    short = copy.copy(kernel)
    short.steps = steps
    return short
