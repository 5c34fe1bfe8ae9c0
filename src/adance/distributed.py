"""Lets several training processes compute as one over their combined batch; with one process nothing is sent.

Every process must call these functions in the same order. Objectives call them too, so that they compute the same in
your own data-parallel loop as in the trainer.
"""

import torch
from torch import Tensor
from torch import distributed as dist


def world_size() -> int:
    """Number of processes that train together."""
    return dist.get_world_size() if _together() else 1


def rank() -> int:
    """The index of this process among them."""
    return dist.get_rank() if _together() else 0


def mean_over_ranks(x: Tensor) -> Tensor:
    """The mean of ``x`` over all processes; ``x`` itself with one process.

    Its gradient is that of this process's ``x``: data-parallel training averages gradients over processes.
    """
    if world_size() == 1 or x.numel() == 0:
        return x
    total = _sendable(x).clone()
    total = total if total.is_floating_point() else total.float()
    dist.all_reduce(total)
    mean = (total / world_size()).to(x.device)
    return x + (mean - x.detach()) if x.requires_grad else mean


def gather(x: Tensor) -> Tensor:
    """The rows ``x`` ``(B, ...)`` of all N processes, ``(N·B, ...)`` without a graph; ``x`` itself with one process."""
    if world_size() == 1:
        return x
    mine = _sendable(x)
    parts = [torch.empty_like(mine) for _ in range(world_size())]
    dist.all_gather(parts, mine)
    return torch.cat(parts).to(x.device)


def gather_to_main(x: Tensor) -> Tensor:
    """``x`` ``(...)`` of all N processes on the first, ``(N, ...)``; on the others only their own ``(1, ...)``."""
    if world_size() == 1:
        return x[None]
    mine = _sendable(x)
    parts = [torch.empty_like(mine) for _ in range(world_size())] if rank() == 0 else None
    dist.gather(mine, parts)
    return torch.stack(parts or [mine]).to(x.device)


def from_main(x: Tensor) -> Tensor:
    """``x`` of the first process, for random numbers that all processes share."""
    if world_size() == 1:
        return x
    sent = _sendable(x).clone()
    dist.broadcast(sent, 0)
    return sent.to(x.device)


def any_over_ranks(flag: bool) -> bool:
    """Whether ``flag`` is true in any process."""
    return flag if world_size() == 1 else bool(mean_over_ranks(torch.tensor(float(flag))) > 0)


def _together() -> bool:
    return dist.is_available() and dist.is_initialized()


def _sendable(x: Tensor) -> Tensor:
    """``x`` detached and contiguous, on a device that the backend can send from."""
    x = x.detach().contiguous()
    return x.cuda() if dist.get_backend() == "nccl" and not x.is_cuda else x
