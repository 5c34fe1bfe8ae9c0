"""What parameters and data must be."""

from typing import Any

import torch
from torch import Tensor

from adance.errors import InputError


def as_numbers(name: str, values: Any) -> Tensor:
    """``values`` as a tensor of real numbers.

    Raises:
        InputError: They are none; the message calls them ``name``.
    """
    try:
        x = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} must be an array of numbers, got {type(values).__name__}") from None
    if x.is_complex():
        raise InputError(f"{name} must be real, got complex numbers")
    return x


def as_table(name: str, values: Any, columns: int | None = None) -> Tensor:
    """``values`` as a tensor of finite numbers ``(N, d)`` with N and d of at least 1.

    Args:
        name: What the message calls them.
        values: The numbers.
        columns: d, if it is known.

    Raises:
        InputError: They have another shape, or a value is not finite.
    """
    x = as_numbers(name, values)
    if x.ndim != 2 or 0 in x.shape or columns not in (None, x.shape[1]):
        wanted = f"(N, {'p' if columns is None else columns})"
        empty = " and not be empty" if 0 in x.shape else ""
        raise InputError(f"{name} must have shape {wanted}{empty}, got {tuple(x.shape)}")
    if not (finite := x.isfinite().all(1)).all():
        row = int((~finite).nonzero()[0])
        raise InputError(f"row {row} of {name} is not finite: leave out failed simulations, or give them a number")
    return x


def as_pairs(theta: Any, x: Any, parameters: int) -> tuple[Tensor, Tensor]:
    """Parameters ``(N, d)`` and the data that were simulated from them ``(N, p)``, as tensors without gradients.

    Raises:
        InputError: A shape is another one, or a value is not finite.
    """
    first, second = as_table("theta", theta, parameters).detach(), as_table("x", x).detach()
    if len(first) != len(second):
        raise InputError(f"theta and x must have one row per simulation, got {len(first)} and {len(second)} rows")
    return first, second
