"""The self-adapting noise: a frozen earlier copy of the model, sampled with short chains (thesis Algorithm 3.1)."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from adance.energies.conditional import Given
from adance.energies.energy import evaluate, is_vector, reading
from adance.energies.fast import chain_copy
from adance.energies.frozen import freeze, refresh
from adance.errors import InputError
from adance.noises.following import Follower
from adance.noises.noise import Noise
from adance.noises.pool import Pool
from adance.noises.refreshes import Interval, Refreshes
from adance.numbers import is_whole
from adance.samplers.chains import run_chains
from adance.samplers.defaults import Changes, chosen_sampler, default_start_law, warn_of_noise
from adance.samplers.kernel import Kernel
from adance.samplers.starts import ChainStarts


class Snapshot(Noise):
    """The model as it was at the last refresh; every ``interval`` optimiser steps it is taken anew.

    With ``interval="auto"`` that is when it has served: when the mean weight of a batch of data in the gradient has
    fallen to a fifth of what it was in the snapshot's first batch; where chains are reweighted, when weights would
    leave an effective share of less than a half of them; or after 50 steps. Finding out waits for the device at each
    step.

    Args:
        sampler: The kernel of the chains; its temperature is the noise's. By default one for the kind of event; a
            mapping changes some of its arguments.
        starts: Where the chains start; where it does not say, ``reweighted`` for vectors with an exact sampler, and
            ``rejuvenated`` else.
        interval: K ≥ 1, optimiser steps between refreshes, or ``auto``; by default 10 for images, 50 for vectors, and
            ``auto`` where chains are reweighted.
        pool: Chains drawn at each refresh, from which minibatches are taken without repeats until it is used up and
            shuffled again. 0: a fresh batch every step. By default ``batch·⌈K/10⌉``, for ``auto`` with a K of 10 for
            images and 50 for vectors; 0 for conditional energies.

    Raises:
        InputError: The interval or the pool is out of range.

    Attributes:
        compile_chains: Whether they run as compiled programs.
        around_chains: Makes a context that chains run in, to take their time.
        chain_dtype: Type in which the chain's copy of the energy multiplies; its own by default.
    """

    normalized = False
    compile_chains: bool = False
    chain_dtype: torch.dtype | None = None
    around_chains: Callable[[], AbstractContextManager[Any]] = nullcontext
    pool: Pool
    record: Tensor

    def __init__(
        self,
        sampler: Kernel | Changes | None,
        starts: ChainStarts,
        interval: Interval | None = None,
        pool: int | None = None,
    ) -> None:
        super().__init__()
        if not (pool is None or (is_whole(pool) and pool >= 0)):
            raise InputError(f"pool is a number of chains, 0 or more, got {pool!r}")
        self.sampler = sampler if isinstance(sampler, Kernel) else None
        self.starts, self.pool_size = starts, pool
        self.refreshes = Refreshes(interval)
        self._given_sampler, self._given_pool = sampler, pool
        self.frozen: nn.Module | None = None
        self.follower: Follower | None = None
        self._begin()

    @property
    def temperature(self) -> float:
        """The chain's."""
        assert self.sampler is not None, "prepare() first"
        return self.sampler.temperature

    @property
    def interval(self) -> int:
        """K; with ``auto`` its greatest value."""
        return self.refreshes.interval

    @property
    def until_served(self) -> bool:
        """Whether a snapshot is taken anew when it has served."""
        return self.refreshes.until_served

    @property
    def reweights(self) -> bool:
        """Whether chains follow the model by Jarzynski weights."""
        return self.starts.kind == "reweighted"

    def prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        """Settle sampler, interval and pool size for ``batch`` noises a step; take a snapshot; fill the buffer."""
        self._begin()
        self.sampler = chosen_sampler(self._given_sampler, data.shape[1:])
        warn_of_noise(self.sampler, data)
        vectors, conditional = is_vector(data.shape[1:]), isinstance(energy, Given)
        self._settle_starts(vectors, conditional)
        self._settle_pool(vectors, conditional, batch)
        self.frozen = freeze(energy)
        noise = default_start_law(data)
        self.starts.prepare(noise, generator)
        if self.starts.buffer is not None and not conditional and self.sampler.gradients_at_init == 0:
            # a kernel of other units than these starts says so here, before anything is written
            with reading(self.frozen), torch.no_grad():
                self.sampler.init(self.frozen, self.starts.buffer.samples[:2])
        self.follower = Follower(energy, noise.log_prob).to(data.device) if self.reweights else None
        self.pool = Pool(data.new_zeros((self._room(), *data.shape[1:])))
        self.register_buffer("record", data.new_zeros(3))

    def _settle_starts(self, vectors: bool, conditional: bool) -> None:
        assert self.sampler is not None
        can_follow = self.sampler.keeps_law and not conditional
        self.starts.settle("reweighted" if vectors and can_follow else "rejuvenated")
        if self.reweights and not can_follow:
            why = "a conditional energy's belong to one batch" if conditional else f"a {self.sampler} has another law"
            raise InputError(f"chains cannot be reweighted: {why}; give another start")

    def _settle_pool(self, vectors: bool, conditional: bool, batch: int) -> None:
        usual_interval = 50 if vectors else 10
        self.refreshes.begin("auto" if self.reweights else usual_interval)
        if conditional and self._given_pool:
            raise InputError(f"chains of a conditional energy belong to one batch: give pool=0, not {self._given_pool}")
        served_by_pool = usual_interval if self.until_served else self.interval
        usual = 0 if conditional else batch * math.ceil(served_by_pool / 10)
        self.pool_size = usual if self._given_pool is None else self._given_pool
        if 0 < self.pool_size < batch:
            raise InputError(f"a pool of {self.pool_size} chains is smaller than one batch of {batch}; pool=0 or more")
        self.starts.make_room(max(self.pool_size, batch))

    def _begin(self) -> None:
        self._gradients, self._stale = 0, True
        self._step_size: Tensor | None = None
        self._chain: tuple[nn.Module, ...] = ()  # in a tuple, so that it is no part of the state

    def draw(self, n: int, data: Tensor, generator: torch.Generator | None) -> Tensor:
        """``n`` ends of chains ``(n, *event)``, new ones or the next of the pool.

        Raises:
            InputError: The batch is larger than the one that the pool was made for.
        """
        if self.pool_size == 0:
            x = self._run(n, data, generator)
            self._stale = False
            return x
        assert self.pool_size is not None, "prepare() first"
        if n > self.pool_size:
            raise InputError(f"{n} noise samples cannot be drawn from a pool of {self.pool_size}; make the pool larger")
        if self._stale:
            self.pool.fill(self._fresh_pool(data, generator), generator)
            self._stale = False
        return self.pool.take(n, generator)

    def _room(self) -> int:
        """Chains that the pool can hold."""
        return self.pool_size or 0

    def _fresh_pool(self, data: Tensor, generator: torch.Generator | None) -> Tensor:
        return self._run(self._room(), data, generator)

    def energy(self, x: Tensor, model_energy: Tensor) -> Tensor:
        """The snapshot's energies ``(B,)``; at K = 1 they are the model's own."""
        if self.interval == 1:
            return model_energy.detach()
        assert self.frozen is not None, "prepare() first"
        return evaluate(self.frozen, x)

    def energy_of_batch(self, both: Tensor, n: int, model_energy: Tensor) -> Tensor:
        """As :meth:`energy`; a pool's energies are computed once for each snapshot.

        They are computed beside data, as the model's are: right after a refresh both are the same to the last bit.
        """
        if self.pool_size == 0 or self.interval == 1:
            return self.energy(both, model_energy)
        if self.pool.energies_known:
            return torch.cat([self.energy(both[:n], model_energy[:n]), self.pool.recall()])
        energies = self.energy(both, model_energy)
        self.pool.remember(energies[n:])
        return energies

    def observe(self, pull: Callable[[], Tensor], share: Callable[[], Tensor]) -> None:
        """Keep what a refresh by itself goes by."""
        self.refreshes.observe(pull, share, self.reweights)

    def after_step(self, energy: nn.Module, step: int) -> None:
        """Take the snapshot anew when ``step`` is a multiple of K, or when it has served."""
        if self.refreshes.due(step):
            self._renew(energy)

    def _renew(self, energy: nn.Module) -> None:
        assert self.frozen is not None, "prepare() first"
        refresh(self.frozen, energy)
        self._stale = True

    def metrics(self) -> dict[str, Tensor]:
        """Of the last chains: mean gradient norm v and acceptance. So far: chains restarted, gradients, refreshes.

        Where chains are reweighted, also the effective share that the last weights would have left at once.
        """
        names = ("gradient_norm", "acceptance", "restarted_chains")
        share = {} if self.follower is None else {"chain_share": self.follower.share.clone()}
        spent = {"energy_gradients": self._gradients} | (
            {"refreshes": self.refreshes.count} if self.until_served else {}
        )
        counts = {name: torch.tensor(count, dtype=torch.int64) for name, count in spent.items()}
        return dict(zip(names, self.record.clone().unbind(), strict=True)) | share | counts

    def _chain_energy(self, starts: Tensor) -> nn.Module:
        """The snapshot's copy for chains from ``starts``, with its present weights."""
        assert self.frozen is not None, "prepare() first"
        if self._chain:
            refresh(self._chain[0].to(self.record.device), self.frozen)
        else:
            self._chain = (chain_copy(self.frozen, starts, self.chain_dtype),)
        return self._chain[0]

    def _run(self, n: int, data: Tensor, generator: torch.Generator | None) -> Tensor:
        assert self.sampler is not None, "prepare() first"
        with self.around_chains():
            if self.follower is not None and self._stale:
                self._follow(self.follower, self.sampler, generator)
            starts = self.starts.draw(n, data, generator)
            chains = run_chains(
                self.sampler,
                self._chain_energy(starts),
                starts,
                generator=generator,
                adapt=self.sampler.steps,
                step_size=self._step_size,
                compile=self.compile_chains,
            )
        self._step_size = chains.step_size
        self._gradients += chains.gradients
        restarted = self.record[2] + (~chains.finite).sum()
        self.record.copy_(torch.stack([chains.gradient_norm.nanmean(), chains.acceptance.mean(), restarted]))
        return self.starts.take_back(chains.x, chains.finite, generator)

    def _follow(self, follower: Follower, sampler: Kernel, generator: torch.Generator | None) -> None:
        """Bring the buffer's chains to the law of the snapshot."""
        assert self.frozen is not None
        assert self.starts.buffer is not None
        found = follower.bring(self.starts.buffer, self.frozen, sampler, generator, self._step_size)
        self._step_size, self._gradients = found.step_size, self._gradients + found.gradients

    def get_extra_state(self) -> Tensor:
        """What is neither weight nor buffer: gradients so far, whether the pool is stale, refreshes, step size."""
        step_size = math.nan if self._step_size is None else float(self._step_size)
        return torch.tensor([self._gradients, self._stale, *self.refreshes.state(), step_size], dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        """Go on from :meth:`get_extra_state`."""
        gradients, stale, *refreshes, step_size = state.tolist()
        self._gradients, self._stale = int(gradients), bool(stale)
        self.refreshes.restore(refreshes)
        self._step_size = None if math.isnan(step_size) else self.record.new_tensor(step_size)
