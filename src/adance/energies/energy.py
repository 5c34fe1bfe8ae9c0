"""Energies: any callable ``(B, *event) -> (B,)``; low energy means likely."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from adance.errors import InputError

Energy = Callable[[Tensor], Tensor]


def evaluate(energy: Energy, x: Tensor) -> Tensor:
    """Energies ``(B,)`` of ``x`` ``(B, *event)``.

    Raises:
        InputError: The energy returned another shape.
    """
    values = energy(x)
    if values.shape != x.shape[:1]:
        raise InputError(
            f"the energy returned shape {tuple(values.shape)} for an input of shape {tuple(x.shape)}; "
            f"it must return one number for each row, shape ({len(x)},)"
        )
    return values


@torch.no_grad()
def energies(energy: Energy, x: Tensor) -> Tensor:
    """Energies ``(B,)`` of ``x`` ``(B, *event)`` without a graph."""
    return evaluate(energy, x)


def energy_and_gradient(energy: Energy, x: Tensor) -> tuple[Tensor, Tensor]:
    """Energies ``(B,)`` and their gradients in ``x`` ``(B, *event)``, both detached; no weight gets a gradient."""
    check_events(x)
    if torch.compiler.is_compiling():  # it can trace this form of a gradient

        def summed(z: Tensor) -> tuple[Tensor, Tensor]:
            values = evaluate(energy, z)
            return values.sum(), values

        gradient, values = torch.func.grad(summed, has_aux=True)(x)
        return values, gradient
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        values = evaluate(energy, x)
        (gradient,) = torch.autograd.grad(values.sum(), x)
    return values.detach(), gradient


def check_events(x: Tensor) -> None:
    """Check that ``x`` is ``(B, *event)`` with events of at least one axis.

    Raises:
        InputError: Events have no axis.
    """
    if x.ndim < 2:
        raise InputError(
            f"got events of shape {tuple(x.shape[1:])} in a tensor of shape {tuple(x.shape)}: events need at least one "
            "axis, so give numbers as x[:, None], of shape (B, 1)"
        )


@contextmanager
def outside_inference_mode() -> Iterator[None]:
    """Leave ``torch.inference_mode`` for a block: chains need gradients, which weights created in it can never have."""
    if not torch.is_inference_mode_enabled():
        yield
        return
    with torch.inference_mode(False):
        yield


@contextmanager
def eval_mode(energy: Energy) -> Iterator[None]:
    """Context manager for evaluation mode; afterwards every train/eval flag is restored."""
    training = [module for module in energy.modules() if module.training] if isinstance(energy, nn.Module) else []
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def unwrap(energy: Energy) -> nn.Module:
    """The module itself, without a data-parallel wrapper.

    Raises:
        InputError: The energy is not a ``torch.nn.Module``.
    """
    if not isinstance(energy, nn.Module):
        raise InputError(f"training needs an energy that is a torch.nn.Module, got {type(energy).__name__}")
    if isinstance(energy, nn.parallel.DistributedDataParallel):
        return cast(nn.Module, energy.module)
    return energy


def is_vector(event_shape: tuple[int, ...] | torch.Size) -> bool:
    """Whether events are vectors (one axis) rather than images; the two have different defaults."""
    return len(event_shape) == 1


def refuse_batch_norm(energy: nn.Module, otherwise: str = "allow_batch_norm=True") -> None:
    """Check that the energy of a row does not depend on the rest of its batch.

    Raises:
        InputError: The energy contains a batch normalization layer.
    """
    for name, module in energy.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise InputError(
                f"the energy has batch normalization ({name}: {type(module).__name__}), which makes the energy of one "
                f"sample depend on its batch; use another normalization, or {otherwise}"
            )
