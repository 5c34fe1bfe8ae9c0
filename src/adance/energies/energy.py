"""What an energy is, and how it is read: any callable ``(B, *event) -> (B,)``; low energy means likely."""

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
        InputError: The energy returned another shape, which would broadcast silently later.
    """
    values = energy(x)
    if values.shape != x.shape[:1]:
        raise InputError(
            f"the energy returned shape {tuple(values.shape)} for an input of shape {tuple(x.shape)}; "
            f"it must return one number for each row, shape ({len(x)},)"
        )
    return values


def energy_and_gradient(energy: Energy, x: Tensor) -> tuple[Tensor, Tensor]:
    """Energies ``(B,)`` and their gradients in ``x`` ``(B, *event)``, both detached; no weight gets a gradient."""
    if torch.compiler.is_compiling():  # it traces this way of writing a gradient

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


@contextmanager
def reading(energy: Energy) -> Iterator[None]:
    """Evaluation mode while a model is only read; afterwards every train/eval flag is as it was."""
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
        InputError: The energy is a plain function, which has no weights to copy or train.
    """
    if not isinstance(energy, nn.Module):
        raise InputError(f"training needs an energy that is a torch.nn.Module, got {type(energy).__name__}")
    if isinstance(energy, nn.parallel.DistributedDataParallel):
        return cast(nn.Module, energy.module)
    return energy


def is_vector(event_shape: tuple[int, ...] | torch.Size) -> bool:
    """Events of one axis are vectors, others images: the two have different defaults."""
    return len(event_shape) == 1


def refuse_batch_norm(energy: nn.Module) -> None:
    """An energy of one ``x`` must not depend on the rest of its batch.

    Raises:
        InputError: A batch normalisation layer is inside the energy.
    """
    for name, module in energy.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise InputError(
                f"the energy has batch normalisation ({name}: {type(module).__name__}), which makes the energy of one "
                "sample depend on its batch; use another normalisation, or allow_batch_norm=True to insist"
            )
