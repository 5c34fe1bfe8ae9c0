"""A population of chains that keeps the distribution of a model that changes (Carbone et al. 2023).

At each change the chains are resampled by how much likelier the model has become at each of them. That alone gives them
the new distribution; so only as many are moved as it takes to keep them different: the copies that resampling made, and
some others, for about as many steps as the energy of a chain takes to forget its start.
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
"""Chains move until the correlation between the energies of starts and ends has about this value."""


class Population(nn.Module):
    """Keeps a buffer of chains distributed as a model that changes.

    Args:
        energy: The model, of which a copy is kept.
        buffer: The chains, drawn from ``start``.
        start: Their first distribution, from which chains also restart.
        kernel: The kernel that moves them. Its number of steps is the largest at a time.

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
        """Random slots of the chains to move: ``n``, or the multiple of it that is at least the number of copies.

        Copies are not preferred: they are where the model became likelier, so that moving only them would not keep the
        distribution.
        """
        copies = float(mean_over_ranks(self.copies.sum().float()))
        count = min(len(self.copies), n * max(1, math.ceil(copies / n)))
        return torch.randperm(len(self.copies), generator=generator, device=self.copies.device)[:count]

    @torch.no_grad()
    def restart(
        self, buffer: ReplayBuffer, slots: Tensor, energy: nn.Module, generator: torch.Generator | None
    ) -> None:
        """Propose to the chains in ``slots`` ``(n,)`` to restart from a fresh sample x' of the first distribution q.

        x' takes the place of x with probability ``min(1, p(x')q(x) / p(x)q(x'))``, p being the density of ``energy``
        (independence sampler). It leaves p as it is, costs no gradient, and crosses between modes wherever q covers
        them.
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
        """Learn from chains in ``slots`` ``(n,)``, which have moved on ``energy``, how many steps the next move takes.

        From one move to the next the number changes by a factor of at most 2.
        """
        start = self.log_density[slots]
        with eval_mode(energy):
            end = log_densities(self._log_density_of(energy), buffer.samples[slots])
        self.log_density[slots] = end
        found = float(torch.corrcoef(torch.stack([gather(start), gather(end)]).double())[0, 1])
        if math.isnan(found):  # of equal energies
            return
        wanted = math.log(CORRELATION) / math.log(min(max(found, 0.25), 0.707))
        self.steps.fill_(min(max(round(wanted * int(self.steps)), 1), self.kernel.steps))

    def _log_density_of(self, energy: nn.Module) -> LogDensity:
        return lambda x: -evaluate(energy, x) / self.kernel.temperature
