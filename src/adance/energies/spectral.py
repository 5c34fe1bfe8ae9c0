"""Spectral normalization (Miyato et al. 2018; thesis Algorithm 3.2) with torch's own parametrization.

torch advances the power iteration inside every training forward. Then an energy differs from its own frozen copy by
hundreds of times the ratio's temperature. So here the iteration is paused during every forward, and advanced once after
each optimizer step.

The product of the layers' norms bounds the Lipschitz constant of a fully connected net (3.10). For a convolution torch,
as the thesis, normalizes the kernel flattened to a matrix; the operator's own norm can be larger, up to the square root
of the number of kernel positions that overlap (the kernel's width, for a square kernel and stride 1).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import torch
from torch import nn
from torch.nn.utils.parametrizations import _SpectralNorm, spectral_norm
from torch.nn.utils.parametrize import is_parametrized
from torch.nn.utils.spectral_norm import SpectralNorm as HookSpectralNorm

from adance.energies.energy import eval_mode
from adance.errors import InputError


def normalize_layers(module: nn.Module) -> nn.Module:
    """Put spectral normalization on every linear and convolution layer of ``module``, in place."""
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)) and not is_parametrized(layer, "weight"):
            spectral_norm(layer)
    return module


def power_iteration_held(energy: object) -> AbstractContextManager[None]:
    """Context manager without power iteration; all other flags stay as they are."""
    norms = [norm for _, _, norm in _spectral_norms(energy)]
    return eval_mode(nn.ModuleList(norms)) if norms else nullcontext()


@torch.no_grad()
def advance_power_iteration(energy: object) -> None:
    """Advance the power iteration of every normalized weight by one cycle; call it after each optimizer step."""
    for layer, name, norm in list(_spectral_norms(energy)):
        flag, norm.training = norm.training, True
        getattr(layer, name)
        norm.training = flag


def refuse_hook_spectral_norm(energy: nn.Module) -> None:
    """Check that no layer uses torch's older spectral normalization, whose power iteration cannot be paused.

    Raises:
        InputError: A layer uses ``torch.nn.utils.spectral_norm``.
    """
    for name, module in energy.named_modules():
        if any(isinstance(hook, HookSpectralNorm) for hook in module._forward_pre_hooks.values()):
            raise InputError(
                f"the energy's layer {name!r} uses torch.nn.utils.spectral_norm; "
                "use torch.nn.utils.parametrizations.spectral_norm"
            )


def _spectral_norms(energy: object) -> Iterator[tuple[nn.Module, str, _SpectralNorm]]:
    if not isinstance(energy, nn.Module):
        return
    for layer in energy.modules():
        if is_parametrized(layer):
            for name, chain in cast(nn.ModuleDict, layer.parametrizations).items():
                for norm in chain.children():
                    if isinstance(norm, _SpectralNorm):
                        yield layer, name, norm
