"""The self-adapting noise as a mixture of the last snapshots."""

import torch
from torch import Tensor, nn

from adance.energies.energy import evaluate
from adance.energies.frozen import freeze, refresh
from adance.errors import InputError
from adance.noises.refreshes import Interval
from adance.noises.snapshot import Snapshot
from adance.numbers import is_whole
from adance.samplers.defaults import Changes
from adance.samplers.kernel import Kernel
from adance.samplers.starts import ChainStarts

USUAL, LONG = 3, 10
"""Snapshots by default, at an interval longer than that."""


class SnapshotMixture(Snapshot):
    """The mixture, in equal parts, of the model as it was at the last m refreshes.

    Chains are drawn for the newest snapshot alone; the pools of the earlier ones are kept and drawn from too. The
    energy is ``−T log((1/m) Σᵢ exp(−Eᵢ/T))``: the snapshots' unknown log Z are taken as equal, which holds the better
    the less the model still moves. Where they differ by c, the mixture is contrasted as if its parts were weighted by
    e^c; at a chain's small T that is nearly the minimum of the energies. Each step costs m frozen energies.

    The noise of earlier snapshots keeps the model from going back to where it was: at a long interval it would else
    gain from one snapshot what it lost to the one before.

    Args:
        sampler: As for :class:`Snapshot`.
        starts: As for :class:`Snapshot`.
        interval: As for :class:`Snapshot`.
        pool: As for :class:`Snapshot`, for each snapshot; not 0 for more than one.
        snapshots: m ≥ 1; by default 3 for images at a fixed interval over 10, and 1 else.

    Raises:
        InputError: A number is out of range.
    """

    def __init__(
        self,
        sampler: Kernel | Changes | None,
        starts: ChainStarts,
        interval: Interval | None = None,
        pool: int | None = None,
        snapshots: int | None = None,
    ) -> None:
        super().__init__(sampler, starts, interval, pool)
        if not (snapshots is None or (is_whole(snapshots) and snapshots >= 1)):
            raise InputError(f"snapshots is a number of earlier models, at least 1, got {snapshots!r}")
        if pool == 0 and (snapshots or 1) > 1:
            raise InputError("a mixture of snapshots draws from their pools; pool must be more than 0")
        self._given_snapshots, self._kept = snapshots, 0
        self.snapshots = snapshots or 1
        self.earlier = nn.ModuleList()

    def prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        """As :class:`Snapshot`, with room for the earlier snapshots."""
        super().prepare(energy, data, batch, generator)
        self._kept = 0
        self.earlier = nn.ModuleList(freeze(energy) for _ in range(self.snapshots - 1))

    def _settle_pool(self, vectors: bool, conditional: bool, batch: int) -> None:
        super()._settle_pool(vectors, conditional, batch)
        long = self.interval > LONG and not self.until_served
        usual = USUAL if long and self.pool_size and not vectors else 1
        self.snapshots = self._given_snapshots or usual
        if self.snapshots > 1 and self.pool_size == 0:
            raise InputError("a mixture of snapshots cannot be the noise of a conditional energy; give snapshots=1")

    def _room(self) -> int:
        return self.snapshots * super()._room()

    def _fresh_pool(self, data: Tensor, generator: torch.Generator | None) -> Tensor:
        assert self.pool_size is not None, "prepare() first"
        earlier = self.pool.samples[: self.pool_size * min(self._kept, self.snapshots - 1)]
        return torch.cat([self._run(self.pool_size, data, generator), earlier])

    def energy(self, x: Tensor, model_energy: Tensor) -> Tensor:
        """The mixture's energies ``(B,)``."""
        if self.snapshots == 1:
            return super().energy(x, model_energy)
        assert self.frozen is not None, "prepare() first"
        T, parts = self.temperature, [self.frozen, *self.earlier[: self._kept]]
        energies = torch.stack([evaluate(part, x) for part in parts])
        if T == 0:
            return energies.amin(0)
        # less the least one, so that equal snapshots give exactly their own energy
        least = energies.amin(0)
        return least - T * ((least - energies) / T).exp().mean(0).log()

    def _renew(self, energy: nn.Module) -> None:
        # the newest snapshot takes the place of the oldest; one that was never drawn from is dropped
        if self.snapshots > 1 and not self._stale:
            assert self.frozen is not None, "prepare() first"
            place = self._kept % (self.snapshots - 1)
            refresh(self.earlier[place], self.frozen)
            self._kept += 1
        super()._renew(energy)

    def get_extra_state(self) -> Tensor:
        """:class:`Snapshot`'s; of more than one snapshot also how many were kept so far."""
        if self.snapshots == 1:
            return super().get_extra_state()
        return torch.cat([super().get_extra_state(), torch.tensor([self._kept], dtype=torch.float64)])

    def set_extra_state(self, state: Tensor) -> None:
        """Go on from :meth:`get_extra_state`."""
        if self.snapshots == 1:
            super().set_extra_state(state)
            return
        super().set_extra_state(state[:-1])
        self._kept = int(state[-1])
