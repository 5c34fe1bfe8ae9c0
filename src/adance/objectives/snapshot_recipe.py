"""The recipe of a snapshot noise, with every number filled in."""

from dataclasses import dataclass, replace

from adance.energies.frozen import freeze
from adance.energies.tilted import Tilted
from adance.noises.refresh import Interval, longest_interval
from adance.noises.snapshot import Snapshot
from adance.objectives.objective import ChainPlan, Setting, Site
from adance.samplers.defaults import default_start_distribution, warn_of_noise
from adance.samplers.kernel import Kernel
from adance.samplers.model_chains import ModelChains
from adance.samplers.persistent_chains import ChainStarts, StartKind, runs_since_noise


@dataclass(frozen=True)
class SnapshotRecipe:
    """Recipe of a snapshot noise; see :class:`~adance.noises.Snapshot` and :class:`~adance.samplers.ChainStarts`.

    Attributes:
        sampler: The kernel of the chains.
        start: Where chains start.
        rejuvenation: R, the probability that a chain restarts from noise.
        interval: K, or ``auto``.
        pool: Chains run at each refresh; 0 for fresh chains at every step.
        buffer: Number of chains in the buffer.
        snapshots: m, the number of snapshots in the mixture.
        finish: The share of the steps, at the end, that have K = 1.
    """

    sampler: Kernel
    start: StartKind
    rejuvenation: float
    interval: Interval
    pool: int
    buffer: int
    snapshots: int = 1
    finish: float = 0.0

    def plan(self, setting: Setting) -> ChainPlan:
        """The chains in training."""
        every = longest_interval(self.interval) if self.pool else 1
        runs = runs_since_noise(self.start, self.rejuvenation)
        return ChainPlan(self.sampler, self.pool or setting.batch_size, every, runs, self.start != "reweighted")

    def with_steps(self, steps: int) -> "SnapshotRecipe":
        """The same recipe with chains of ``steps`` steps."""
        return replace(self, sampler=self.sampler.with_changes({"steps": steps}))

    def build(self, site: Site) -> Snapshot:
        """The noise for an energy and data.

        Raises:
            InputError: The kernel is for other values than the starts.
        """
        warn_of_noise(self.sampler, site.data)
        frozen = freeze(site.energy)
        distribution = frozen.fitted_base if isinstance(frozen, Tilted) else default_start_distribution(site.data)
        starts = ChainStarts(distribution, self.start, self.rejuvenation, self.buffer, site.generator)
        chains = ModelChains(frozen, self.sampler, starts, site.data, site.chains)
        if not site.setting.conditional:
            chains.check_units(frozen)
        steps = site.setting.steps
        last = None if steps is None or self.finish == 0 else round((1 - self.finish) * steps)
        return Snapshot(frozen, chains, site.data, self.interval, self.pool, self.snapshots, last, site.condition)
