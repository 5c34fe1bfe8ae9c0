"""What each of several training processes keeps to itself: its pool, its buffer of chains and its generator.

The rest of the state of training is the same in all processes.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from adance.distributed import from_main, gather_to_main, rank, world_size
from adance.errors import InputError
from adance.samplers.buffer import ReplayBuffer
from adance.samplers.pool import Pool

GENERATOR = "generator"


def own_names(module: nn.Module) -> list[str]:
    """Names of the buffers of an objective that differ between processes; an energy has none."""
    return [
        f"{path}.{name}"
        for path, part in module.named_modules()
        if isinstance(part, (Pool, ReplayBuffer))
        for name, _ in part.named_buffers()
    ]


@torch.no_grad()
def share_first_state(module: nn.Module) -> None:
    """Copy the weights and buffers that processes must agree on, such as a fitted noise, from the first process."""
    if world_size() == 1:
        return
    own = set(own_names(module))
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        if name not in own:
            value.copy_(from_main(value))


def states_of_others(objective: nn.Module, generator: torch.Generator) -> dict[str, Tensor]:
    """On the first process, what each of the others keeps to itself, named ``<process>.<name>``; elsewhere empty.

    All processes must call it.
    """
    if world_size() == 1:
        return {}
    state = objective.state_dict() | {GENERATOR: generator.get_state()}
    every = {name: gather_to_main(state[name]) for name in (*own_names(objective), GENERATOR)}
    ranks = range(1, world_size()) if rank() == 0 else ()
    return {f"{process}.{name}": parts[process] for name, parts in every.items() for process in ranks}


def processes_of(others: Mapping[str, Tensor]) -> int:
    """The number of processes that wrote ``others``, as returned by :func:`states_of_others`."""
    return 1 + sum(name.endswith(f".{GENERATOR}") for name in others)


def own_state(objective: nn.Module, first: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The buffers that this process continues with.

    With as many processes as before, each gets its own buffers back. Otherwise chains are redistributed: chain i of
    process p is chain i of former process ``(p + i) mod n`` of n. With more processes than before, some are copied.

    Args:
        objective: The objective.
        first: The objective's state in the first process.
        others: As returned by :func:`states_of_others`.

    Raises:
        InputError: A buffer of a process is missing, or its shape differs from that of the first.
    """
    before, me, names = processes_of(others), rank(), own_names(objective)
    if before == world_size() == 1:
        return {}
    try:
        states = [first, *({name: others[f"{process}.{name}"] for name in names} for process in range(1, before))]
        if before == world_size():
            return {name: states[me][name] for name in names}
        return {name: _dealt(torch.stack([state[name] for state in states]), me) for name in names}
    except (KeyError, RuntimeError) as error:
        raise InputError(f"ranks.safetensors does not fit the objective: {error}") from None


def _dealt(parts: Tensor, process: int) -> Tensor:
    """Rows ``(n, ...)`` for a process from those of all processes before ``(N, n, ...)``."""
    places = torch.arange(parts.shape[1])
    return parts[(process + places) % len(parts), places]
