"""The self-adapting noise: frozen earlier copies of the model, sampled with short chains (thesis Algorithm 3.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adance.contrasts.contrast import Contrast
from adance.energies import evaluate, freeze, given, refresh
from adance.errors import InputError
from adance.noises.noise import Noise, NoiseSample, Separation
from adance.noises.refresh import Interval, RefreshRule
from adance.numbers import check_count
from adance.samplers.model_chains import ModelChains
from adance.samplers.pool import Pool, Taken


@dataclass(eq=False)
class PoolSample(NoiseSample):
    """Samples from a pool.

    Attributes:
        taken: Where in the pool they are.
    """

    taken: Taken | None = None


class Snapshot(Noise):
    """A mixture, with equal weights, of frozen copies of the model taken at the last m refreshes.

    Chains run on the newest snapshot only. The pools of the earlier ones are kept, and samples come from all pools. The
    energy is ``−T log((1/m) Σᵢ exp(−Eᵢ/T))``: the snapshots' unknown log Z are assumed to be equal, which is more
    accurate the less the model still moves. If they differ by c, the effect is that of a mixture with weights e^c; at
    the small T of the chains it is nearly the minimum of the energies. Each step evaluates m frozen copies. The noise
    of earlier snapshots keeps the model from returning to where it was: without them, at a long interval, each snapshot
    can undo what the previous one taught.

    At ``interval=1`` the noise is the model itself, and its energies are the model's own.

    Args:
        energy: The model.
        chains: Runs chains on the snapshots; made for the first one.
        data: Data ``(N, *event)``, whose dtype and device the samples have.
        interval: K ≥ 1, optimizer steps between refreshes, or ``auto``: refresh when the mean weight of a batch of data
            in the gradient has fallen to a fifth of its value in the snapshot's first batch; for reweighted chains,
            when their effective share falls below a half; or after 50 steps.
        pool: Chains run at each refresh, from which batches are drawn without repeats until the pool is used up and
            shuffled again. 0: a fresh batch every step. Reweighted chains all have the snapshot's distribution, so
            batches are drawn from all of them, and a refresh moves at least ``pool`` of them (a batch if 0).
        snapshots: m ≥ 1; more than one needs a pool.
        last: The step after which K is 1 and the noise is the model itself, if there is one.
        condition: An example ``(1, *condition)`` for a conditional energy; all conditions have its type and shape.

    Raises:
        InputError: ``interval`` is neither ``auto`` nor at least 1, ``pool`` is below 0, ``snapshots`` below 1, or more
            than 1 without a pool.
    """

    normalized = False

    def __init__(
        self,
        energy: nn.Module,
        chains: ModelChains,
        data: Tensor,
        interval: Interval,
        pool: int = 0,
        snapshots: int = 1,
        last: int | None = None,
        condition: Tensor | None = None,
    ) -> None:
        super().__init__()
        check_count("pool", pool, 0)
        check_count("snapshots", snapshots)
        if pool == 0 and snapshots > 1:
            raise InputError("a mixture of snapshots needs a pool: use a pool above 0, or snapshots=1")
        self.chains, self.pool_size, self.snapshots = chains, pool, snapshots
        population = chains.population
        self.follows, self.rows = population is not None, pool if population is None else len(population.copies)
        self.temperature = chains.kernel.temperature
        self.rule = RefreshRule(interval, self.follows, last)
        self.frozen = freeze(energy)
        self.earlier = nn.ModuleList(freeze(energy) for _ in range(snapshots - 1))
        room = snapshots * self.rows
        conditions = None if condition is None else condition.new_zeros((room, *condition.shape[1:]))
        self.pool = Pool(data.new_zeros((room, *data.shape[1:])), conditions)
        self._refreshed, self._kept = True, 0

    @property
    def descent(self) -> float | None:
        """α‖∇E‖² of Langevin chains, at their last run; ``None`` for other kernels."""
        return self.chains.descent

    @property
    def lr_factor(self) -> float:
        """Factor of the learning rate, below 1 if snapshots of reweighted chains would become stale too soon."""
        return self.rule.lr_factor

    @property
    def is_model(self) -> bool:
        """Whether the noise is the model itself: a single snapshot, refreshed at every step, or the end of training."""
        return self.rule.interval == self.snapshots == 1 or self.rule.finishing

    @property
    def energy_gradients(self) -> int:  # type: ignore[override]
        """Energy gradients of all chains so far."""
        return self.chains.gradients

    def check_contrast(self, contrast: Contrast) -> None:
        """Check that ``interval='auto'`` without reweighted chains gets a contrast with bounded weights.

        Raises:
            InputError: The contrast's weights are not bounded.
        """
        if self.rule.adaptive and not (self.rule.reweights or contrast.bounded_weights):
            name = type(contrast).__name__
            raise InputError(
                f"interval='auto' needs a contrast with bounded weights, such as Logistic, not {name}; set interval to "
                "a number"
            )

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> PoolSample:
        """``n`` ends of chains ``(n, *event)``, newly run or the next of the pool.

        Raises:
            InputError: ``n`` is larger than the pool, or the conditions have another type or shape than the one that
                this noise was made with.
        """
        self._check_conditions(condition)
        if n > self.rows > 0:
            raise InputError(f"cannot take {n} noise samples from a pool of {self.rows}: make the pool larger")
        fresh = not self.follows and (self.pool_size == 0 or self.rule.finishing)
        if self._refreshed and not fresh:
            self._fill_pool(n, data, generator, condition)
        self._refreshed = False
        if fresh:
            x, condition = self.chains.run(self.frozen, n, data, generator, condition)
            return PoolSample(x, self.is_model, condition)
        taken = self.pool.take(n, generator)
        return PoolSample(taken.x, self.is_model, taken.condition, taken)

    def _check_conditions(self, condition: Tensor | None) -> None:
        known = self.pool.conditions
        if condition is None and known is None:
            return
        if condition is None or known is None:
            raise InputError("a condition was passed to only one of build() and loss(): pass it to both, or to neither")
        if (condition.dtype, condition.shape[1:]) != (known.dtype, known.shape[1:]):
            raise InputError(
                f"loss() got conditions of type {condition.dtype} and shape {tuple(condition.shape)}, but build() one "
                f"of type {known.dtype} and shape {(1, *known.shape[1:])}"
            )

    def _fill_pool(self, n: int, data: Tensor, generator: torch.Generator | None, condition: Tensor | None) -> None:
        pool, energies = self.pool, None
        if self.follows:
            newest, energies = self.chains.follow(self.frozen, self.pool_size or n, generator)
        else:
            newest, condition = self.chains.run(self.frozen, self.pool_size, data, generator, condition)
        earlier = slice(self.rows * min(self._kept, self.snapshots - 1))
        if pool.conditions is not None and condition is not None:
            condition = torch.cat([condition, pool.conditions[earlier]])
        samples = torch.cat([newest, pool.samples[earlier]])
        pool.fill(samples, generator, None if len(samples) > len(newest) else energies, condition)

    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """The mixture's energies ``(M,)``; those of a pool's samples are computed once for each snapshot.

        They are computed together with data, as the model's are, so that right after a refresh both are bit-identical.
        Those of reweighted chains are known from the reweighting, and agree up to rounding.
        """
        taken = sample.taken if isinstance(sample, PoolSample) else None
        if taken is None:
            return self._mixture(x, condition)
        n = len(x) - len(taken.x)
        if self.pool.energies_known:
            of_data = None if condition is None else condition[:n]
            return torch.cat([self._mixture(x[:n], of_data), self.pool.recall(taken)])
        energies = self._mixture(x, condition)
        self.pool.remember(taken, energies[n:])
        return energies

    def _mixture(self, x: Tensor, condition: Tensor | None) -> Tensor:
        if self.snapshots == 1:
            return evaluate(given(self.frozen, condition), x)
        T, parts = self.temperature, [self.frozen, *self.earlier[: self._kept]]
        energies = torch.stack([evaluate(given(part, condition), x) for part in parts])
        least = energies.amin(0)
        # minus the smallest, so that equal snapshots give exactly their own energy
        return least if T == 0 else least - T * ((least - energies) / T).exp().mean(0).log()

    def after_step(self, energy: nn.Module, step: int, separation: Separation) -> None:
        """Refresh the snapshot if that is due."""
        was_finishing = self.rule.finishing
        if not self.rule.due(step, separation):
            return
        # the newest snapshot takes the place of the oldest; one that the pool has no samples of is dropped
        if was_finishing:
            self._kept = 0
        elif self.snapshots > 1 and not (self._refreshed or self.rule.finishing):
            refresh(self.earlier[self._kept % (self.snapshots - 1)], self.frozen)
            self._kept += 1
        refresh(self.frozen, energy)
        self._refreshed = True

    def metrics(self) -> dict[str, Tensor]:
        """Metrics of the chains; with ``auto`` also the number of refreshes and, if reweighted, ``lr_factor``."""
        count = {"refreshes": torch.tensor(self.rule.count, dtype=torch.int64)} if self.rule.adaptive else {}
        lr = {"lr_factor": torch.tensor(self.lr_factor)} if self.rule.adaptive and self.follows else {}
        return self.chains.metrics() | count | lr

    def get_extra_state(self) -> Tensor:
        """State that is neither weight nor buffer: whether just refreshed, number of snapshots, refresh rule."""
        return torch.tensor([self._refreshed, self._kept, *self.rule.state()], dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        """Continue from :meth:`get_extra_state`."""
        refreshed, kept, *rule = state.flatten().tolist()
        self._refreshed, self._kept = bool(refreshed), int(kept)
        self.rule.restore(rule)
