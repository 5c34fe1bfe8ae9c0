"""Maximum likelihood: lowers the energy of data and raises that of samples of the model, drawn by Markov chains.

It is the contrast ``mean r(noise) − mean r(data)`` with a snapshot of the model that is refreshed at every step.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace

from adance.contrasts.linear import Linear
from adance.defaults import BUFFER
from adance.numbers import check_count, check_real
from adance.objectives.contrastive import Contrastive
from adance.objectives.log_ratio import LogRatio
from adance.objectives.objective import ChainPlan, Recipe, Setting, Site
from adance.objectives.resolve import Sampler, resolve_buffer, resolve_pool, resolve_sampler, resolve_start
from adance.objectives.snapshot_recipe import SnapshotRecipe
from adance.samplers.kernel import Kernel
from adance.samplers.persistent_chains import StartKind, check_starts


class _Likelihood(Recipe):
    """The difference of the mean energies of data and of chains on the current model."""

    energy_penalty: float

    @abstractmethod
    def _snapshot(self, setting: Setting) -> SnapshotRecipe:
        """The chains in training, with every number filled in."""

    def chain_plan(self, setting: Setting) -> ChainPlan:
        """A batch of chains at every step."""
        return self._snapshot(setting).plan(setting)

    def build_for(self, site: Site) -> Contrastive:
        noise = self._snapshot(site.setting).build(site)
        return Contrastive(
            Linear(), noise, LogRatio(), energy_penalty=self.energy_penalty, backward_dtype=site.chains.dtype
        )


def _choose(
    setting: Setting, sampler: Sampler, start: StartKind, rejuvenation: float | None, buffer: int | None
) -> SnapshotRecipe:
    kernel, rows = resolve_sampler(sampler, setting), setting.batch_size
    start, rejuvenation = resolve_start(start, rejuvenation, kernel, setting)
    pool = resolve_pool(None, 1, rows, setting)
    return SnapshotRecipe(kernel, start, rejuvenation, 1, pool, resolve_buffer(buffer, start, rows))


@dataclass(frozen=True)
class MaximumLikelihood(_Likelihood):
    """Maximum likelihood with Markov chains (thesis 2.4; Du and Mordatch 2019).

    The loss is ``mean E(x⁺) − mean E(x⁻) + α·(mean E₊² + mean E₋²)`` over data x⁺ ``(B, *event)`` and the ends x⁻
    ``(B, *event)`` of as many chains on the current model. Without α its gradient is T times that of the negative
    log-likelihood of ``exp(−E/T)``, where T is the chain's temperature. The value itself does not measure the quality
    of the model. It is the gradient of :class:`~adance.objectives.AdaNCE` with ``interval=1``.

    Estimates the density up to its constant, at temperature T, as well as the chains sample it: exactly if they have
    mixed (MALA, from a buffer, smooth distributions); otherwise a model whose short chains look like data. It learns no
    log Z.

    Choose it for samples of images, and as a baseline for other methods, if a chain for every optimizer step is
    affordable. ``AdaNCE`` spends fewer chains; score matching spends none.

    Args:
        sampler: Kernel of the chains. By default ``Langevin(steps=30, step_size=1, noise_std=0.005, bounds=(-1, 1))``
            for images and ``MALA(steps=50)`` at T = 1 for vectors.
        start: Where chains start: ``noise``; ``data``; ``persistent``, from the ends of earlier chains;
            ``rejuvenated``, the same, but a share of them from noise; ``reweighted``, persistent chains that are
            resampled after every step by how much likelier the step made them (Carbone et al. 2023), for exact kernels.
        rejuvenation: R, the share of chains that restart from noise; by default 0.25 for images, 0.02 for vectors. Du
            and Mordatch use 0.05.
        buffer: Number of chains in the buffer; by default 5,000, or the batch size if that is larger. Du and Mordatch
            use 10,000.
        energy_penalty: Weight α of a term that keeps energies from growing without bound.

    Raises:
        InputError: ``rejuvenation`` is outside [0, 1], ``buffer`` below 1 or ``energy_penalty`` below 0.
    """

    sampler: Sampler = None
    start: StartKind = "rejuvenated"
    rejuvenation: float | None = None
    buffer: int | None = None
    energy_penalty: float = 0.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        check_starts(self.start, self.rejuvenation or 0.0, BUFFER if self.buffer is None else self.buffer)
        check_real("energy_penalty", self.energy_penalty, 0)

    def resolve(self, setting: Setting) -> "MaximumLikelihood":
        """The recipe with every ``None`` filled in from :mod:`adance.defaults`."""
        chosen = self._snapshot(setting)
        return replace(
            self, sampler=chosen.sampler, start=chosen.start, rejuvenation=chosen.rejuvenation, buffer=chosen.buffer
        )

    def _snapshot(self, setting: Setting) -> SnapshotRecipe:
        return _choose(setting, self.sampler, self.start, self.rejuvenation, self.buffer)


@dataclass(frozen=True)
class ContrastiveDivergence(_Likelihood):
    """Contrastive divergence, CD-k (Hinton 2002): maximum likelihood with chains of k steps from the data themselves.

    The loss is ``mean E(x⁺) − mean E(x⁻) + α·(mean E₊² + mean E₋²)``, where chains lead from x⁺ ``(B, *event)`` to x⁻
    ``(B, *event)`` in k steps.

    Estimates the density up to its constant, at the chain's temperature T. The gradient is biased, but is zero at the
    truth if the chain leaves ``exp(−E/T)`` invariant (MALA), so that a flexible enough model finds the truth. With an
    unadjusted chain, the chain's own stationary distribution fits the data instead: for ``½a(x − b)²`` and Langevin of
    step α that means 1/a = s²(1 − αa/2) at T = 1. Regions that no chain reaches from data are never pushed up.

    Choose it if chains are expensive and the data cover what matters, as for Boltzmann machines and outlier scores; not
    for samples that start from noise.

    Args:
        k: Steps of a chain.
        sampler: Kernel of the chains; its own number of steps is kept for sampling from the trained model.
        energy_penalty: Weight α of a term that keeps energies from growing without bound.

    Raises:
        InputError: ``k`` is below 1 or ``energy_penalty`` below 0.
    """

    k: int = 1
    sampler: Sampler = None
    energy_penalty: float = 0.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        check_count("k", self.k)
        check_real("energy_penalty", self.energy_penalty, 0)

    def resolve(self, setting: Setting) -> "ContrastiveDivergence":
        """The recipe with the default kernel filled in."""
        return replace(self, sampler=self.kernel(setting))

    def kernel(self, setting: Setting) -> Kernel:
        """The sampler, with its own number of steps."""
        return resolve_sampler(self.sampler, setting)

    def _snapshot(self, setting: Setting) -> SnapshotRecipe:
        return _choose(setting, self.sampler, "data", None, None).with_steps(self.k)


@dataclass(frozen=True)
class PersistentCD(_Likelihood):
    """Persistent contrastive divergence, PCD-k (Tieleman 2008): chains that continue from the previous step.

    The loss is ``mean E(x⁺) − mean E(x⁻) + α·(mean E₊² + mean E₋²)``, where x⁻ ``(B, *event)`` are the chains after k
    more steps. They start from noise once and follow the model as it changes.

    Estimates the density up to its constant, at the chain's temperature. The bias vanishes as the learning rate falls,
    since the chains then keep up with the model, unless they cannot cross between modes.

    Choose it over CD, with small learning rates, if the density must also be correct far from data. Choose it over the
    rejuvenated buffer of ``MaximumLikelihood`` if short chains from noise need not end at good samples.

    Args:
        k: Steps of the chains for each optimizer step; by default the sampler's own number.
        sampler: Kernel of the chains.
        chains: Number of chains; each step moves a batch of them. By default the batch size, so that every chain moves
            at every step.
        energy_penalty: Weight α of a term that keeps energies from growing without bound.

    Raises:
        InputError: ``k`` or ``chains`` is below 1, ``chains`` below a batch, or ``energy_penalty`` below 0.
    """

    k: int | None = None
    sampler: Sampler = None
    chains: int | None = None
    energy_penalty: float = 0.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        check_count("k", 1 if self.k is None else self.k)
        check_count("chains", 1 if self.chains is None else self.chains)
        check_real("energy_penalty", self.energy_penalty, 0)

    def resolve(self, setting: Setting) -> "PersistentCD":
        """The recipe with the default kernel, its number of steps and the batch size filled in."""
        chosen = self._snapshot(setting)
        return replace(self, k=chosen.sampler.steps, sampler=self.kernel(setting), chains=chosen.buffer)

    def kernel(self, setting: Setting) -> Kernel:
        """The sampler, with its own number of steps."""
        return resolve_sampler(self.sampler, setting)

    def _snapshot(self, setting: Setting) -> SnapshotRecipe:
        chains = self.chains or setting.batch_size
        chosen = _choose(setting, self.sampler, "persistent", None, chains)
        return chosen.with_steps(self.k) if self.k else chosen
