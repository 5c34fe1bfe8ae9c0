"""Chains of a model that changes: where they start, how they run, and which are kept between runs."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from adance.distributed import mean_over_ranks, world_size
from adance.energies import eval_mode, given, refresh
from adance.energies.fast import chain_copy
from adance.samplers.chains import Chains, run_chains
from adance.samplers.kernel import Kernel
from adance.samplers.langevin import Langevin
from adance.samplers.persistent_chains import ChainStarts
from adance.samplers.population import Population


@dataclass(frozen=True)
class ChainOptions:
    """How chains are computed.

    Attributes:
        compile: Run chains as compiled programs.
        dtype: Type in which their copy of the energy multiplies; ``None`` for the dtype of the energy. The objective
            may use it for the gradients of its convolutions too.
        timer: Returns a context manager that chains run in, to measure their time.
    """

    compile: bool = False
    dtype: torch.dtype | None = None
    timer: Callable[[], AbstractContextManager[Any]] = nullcontext


class ModelChains(nn.Module):
    """Runs chains on snapshots of a model.

    With several processes, each runs its own chains. Statistics, and the step size that the next chains start with, are
    those of all chains together.

    Args:
        energy: The first snapshot, frozen.
        kernel: The kernel of the chains.
        starts: Where chains start.
        data: Data ``(N, *event)``, whose dtype and device the chains have.
        options: How chains are computed.
    """

    record: Tensor

    def __init__(
        self, energy: nn.Module, kernel: Kernel, starts: ChainStarts, data: Tensor, options: ChainOptions
    ) -> None:
        super().__init__()
        self.kernel, self.starts, self.options, self.gradients = kernel, starts, options, 0
        buffer = starts.buffer if starts.kind == "reweighted" else None
        self.population = None if buffer is None else Population(energy, buffer, starts.noise, kernel)
        self.register_buffer("record", data.new_zeros(3))
        self._step_size: Tensor | None = None
        self._descent: float | None = None
        self._copy: tuple[nn.Module, ...] = ()  # in a tuple, so that it is not part of the state

    def check_units(self, energy: nn.Module) -> None:
        """Check the buffer against the kernel before a run folder is written.

        Raises:
            InputError: The kernel is for other values than the starts.
        """
        if self.starts.buffer is not None and self.kernel.gradients_at_init == 0:
            with eval_mode(energy), torch.no_grad():
                self.kernel.init(energy, self.starts.buffer.samples[:2])

    def follow(self, energy: nn.Module, n: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Reweight the chains to the distribution of a new snapshot ``energy``, and move at least ``n`` of them.

        Returns:
            All chains ``(capacity, *event)`` and their energies ``(capacity,)``.
        """
        population, buffer = self.population, self.starts.buffer
        assert population is not None
        assert buffer is not None
        with self.options.timer():
            moved = population.reweight(buffer, energy, generator, self._step_size)
            if moved.step_size is not None:
                self._count(moved.step_size, moved.gradients)
            slots = population.choose(n, generator)
            population.restart(buffer, slots, energy, generator)
            chains = self._move(energy, buffer.samples[slots], int(population.steps), generator)
            self.starts.store(chains.x, chains.finite, slots, generator)
            population.note_move(buffer, slots, energy)
        return buffer.samples, -self.kernel.temperature * population.log_density

    def run(
        self,
        energy: nn.Module,
        n: int,
        data: Tensor,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Run ``n`` chains on the snapshot ``energy``, for data ``(B, *event)``.

        A conditional energy takes conditions ``(M, *condition)``, M/B for each row of the data; if there are more
        chains than conditions, they are repeated in order.

        Returns:
            The ends ``(n, *event)``, and the condition of each chain ``(n, *condition)``, if the energy is conditional.
        """
        with self.options.timer():
            if condition is not None:
                # chains from data have the condition of their own datum
                data = data.repeat_interleave(max(1, len(condition) // len(data)), 0)
                condition = condition[torch.arange(n, device=condition.device) % len(condition)]
            start = self.starts.sample(n, data, generator)
            chains = self._move(energy, start.x, self.kernel.steps, generator, condition)
        return self.starts.store(chains.x, chains.finite, start.slots, generator), condition

    def _move(
        self,
        energy: nn.Module,
        x: Tensor,
        steps: int,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
    ) -> Chains:
        chains = run_chains(
            self.kernel,
            given(self._copy_of(energy, x, condition), condition),
            x,
            steps,
            generator=generator,
            adapt=steps,
            step_size=self._step_size,
            compile=self.options.compile,
        )
        self._count(chains.step_size, chains.gradients)
        norm, acceptance = mean_over_ranks(chains.gradient_norm), mean_over_ranks(chains.acceptance)
        restarted = self.record[2] + world_size() * mean_over_ranks((~chains.finite).sum())
        self.record.copy_(torch.stack([norm.nanmean(), acceptance.mean(), restarted]))
        self._descent = None
        return chains

    def _count(self, step_size: Tensor | None, gradients: int) -> None:
        """Continue from the mean step size of all processes, and count the gradients of all."""
        self._step_size = None if step_size is None else mean_over_ranks(step_size)
        self.gradients += world_size() * gradients

    def _copy_of(self, energy: nn.Module, x: Tensor, condition: Tensor | None) -> nn.Module:
        """The copy that chains follow, with the present weights of the snapshot ``energy``."""
        if self._copy:
            refresh(self._copy[0].to(self.record.device), energy)
        else:
            self._copy = (chain_copy(energy, x, self.options.dtype, condition),)
        return self._copy[0]

    @property
    def descent(self) -> float | None:
        """Energy ``α·v²`` that one step descends, v the mean gradient norm of the last chains; Langevin chains only."""
        if self._descent is None and isinstance(self.kernel, Langevin):
            self._descent = self.kernel.step_size * float(self.record[0]) ** 2
        return self._descent

    def metrics(self) -> dict[str, Tensor]:
        """Mean gradient norm v and acceptance of the last chains; chains restarted and gradients spent so far.

        For reweighted chains also the effective sample share of the last weights, applied in one step.
        """
        names = ("gradient_norm", "acceptance", "restarted_chains")
        share = {} if self.population is None else {"chain_share": self.population.share.clone()}
        spent = {"energy_gradients": torch.tensor(self.gradients, dtype=torch.int64)}
        return dict(zip(names, self.record.clone().unbind(), strict=True)) | share | spent

    def get_extra_state(self) -> Tensor:
        """State that is neither a weight nor a buffer: gradients so far, and the step size."""
        step_size = math.nan if self._step_size is None else float(self._step_size)
        return torch.tensor([self.gradients, step_size], dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        """Continue from :meth:`get_extra_state`."""
        gradients, step_size = state.flatten().tolist()
        self._descent = None
        self.gradients = int(gradients)
        self._step_size = None if math.isnan(step_size) else self.record.new_tensor(step_size)
