"""A population of chains that follows the distribution of a changing model (Carbone et al. 2023).

At each change, chains are resampled with weights by how much likelier the model now makes them. That alone gives them
the new distribution. So only as many chains are moved as needed to keep them distinct: at least as many as resampling
made copies, for about as many steps as a chain's energy takes to decorrelate.
"""

import math

import torch
from torch import Tensor, nn

from adance.distributed import gather, mean_over_ranks
from adance.energies import eval_mode, evaluate, freeze, refresh
from adance.energies.analytic import Density
from adance.samplers.buffer import ReplayBuffer
from adance.samplers.kernel import Kernel
from adance.samplers.rows import where_rows
from adance.samplers.smc import LogDensity, Moved, log_densities, reweight_and_move

CORRELATION = 0.5
"""Chains move until the correlation between the energies of starts and ends falls to about this value."""


class Population(nn.Module):
    """Keeps a buffer of chains distributed as a changing model.

    Args:
        energy: The model, of which a copy is kept.
        buffer: The chains, drawn from ``start``.
        start: Their initial distribution, from which chains also restart.
        kernel: The kernel that moves them. Its number of steps is the maximum for one move.

    Attributes:
        share: Effective share of the last weights, ``()``.
        steps: Number of steps of the next move, ``()``.
    """

    share: Tensor
    steps: Tensor
    started: Tensor
    log_density: Tensor
    copies: Tensor

    def __init__(self, energy: nn.Module, buffer: ReplayBuffer, start: Density, kernel: Kernel) -> None:
        super().__init__()
        self.followed, self.start, self.kernel = freeze(energy), start, kernel
        x = buffer.samples
        self.register_buffer("started", torch.zeros((), dtype=torch.bool, device=x.device))
        self.register_buffer("share", torch.ones((), device=x.device))
        self.register_buffer("steps", torch.tensor(kernel.steps, device=x.device))
        self.register_buffer("log_density", start.log_prob(x).detach())
        self.register_buffer("copies", torch.zeros(len(x), dtype=torch.bool, device=x.device))

    def reweight(
        self, buffer: ReplayBuffer, energy: nn.Module, generator: torch.Generator | None, step_size: Tensor | None
    ) -> Moved:
        """Give the buffer the density ``exp(−E/T)`` of a frozen ``energy``.

        The first call starts from the buffer's initial distribution, later calls from the density of the previous one.
        """
        before = self._log_density_of(self.followed) if self.started else self.start.log_prob
        with eval_mode(energy), eval_mode(self.followed):
            moved = reweight_and_move(
                buffer, before, self._log_density_of(energy), self.kernel, generator, step_size, self.log_density
            )
        refresh(self.followed, energy)
        self.started.fill_(True)
        self.share.copy_(moved.share)
        self.log_density.copy_(moved.log_density)
        self.copies.copy_(moved.copies)
        return moved

    def choose(self, n: int, generator: torch.Generator | None) -> Tensor:
        """Random slots of the chains to move: the smallest positive multiple of ``n`` that covers the number of copies.

        Copies are not preferred: they are where the model makes chains likelier, so that moving only them would change
        the distribution.
        """
        copies = float(mean_over_ranks(self.copies.sum().float()))
        count = min(len(self.copies), n * max(1, math.ceil(copies / n)))
        return torch.randperm(len(self.copies), generator=generator, device=self.copies.device)[:count]

    @torch.no_grad()
    def restart(
        self, buffer: ReplayBuffer, slots: Tensor, energy: nn.Module, generator: torch.Generator | None
    ) -> None:
        """Propose to restart the chains in ``slots`` ``(n,)`` from fresh samples x' of the initial distribution q.

        x' replaces x with probability ``min(1, p(x')q(x) / p(x)q(x'))``, where p is the density of ``energy``
        (an independence sampler). This leaves p invariant, needs no gradients, and lets chains cross between modes that
        q covers.
        """
        x = buffer.samples[slots]
        fresh = self.start.sample(len(x), generator).to(x.dtype)
        old = self.log_density[slots]
        with eval_mode(energy):
            new = log_densities(self._log_density_of(energy), fresh)
        log_ratio = (new - self.start.log_prob(fresh)) - (old - self.start.log_prob(x))
        accepted = torch.rand(len(x), generator=generator, device=x.device).log() < log_ratio
        buffer.write(slots, where_rows(accepted, fresh, x))
        self.log_density[slots] = torch.where(accepted, new, old)

    @torch.no_grad()
    def note_move(self, buffer: ReplayBuffer, slots: Tensor, energy: nn.Module) -> None:
        """Set the number of steps of the next move, from the chains in ``slots`` ``(n,)``, which have just moved.

        The number changes by a factor of at most 2 from one move to the next.
        """
        start = self.log_density[slots]
        with eval_mode(energy):
            end = log_densities(self._log_density_of(energy), buffer.samples[slots])
        self.log_density[slots] = end
        found = float(torch.corrcoef(torch.stack([gather(start), gather(end)]).double())[0, 1])
        if math.isnan(found):  # all energies are equal
            return
        wanted = math.log(CORRELATION) / math.log(min(max(found, 0.25), 0.707))
        self.steps.fill_(min(max(round(wanted * int(self.steps)), 1), self.kernel.steps))

    def _log_density_of(self, energy: nn.Module) -> LogDensity:
        return lambda x: -evaluate(energy, x) / self.kernel.temperature
