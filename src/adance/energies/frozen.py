"""The frozen copy: an energy without gradients, in evaluation mode, every parametrization folded into plain weights.

It is the noise's density, and the source of the chain's own copy. Spectral normalization costs nothing in it.
"""

import copy
from itertools import chain
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized, type_before_parametrizations

from adance.energies.energy import eval_mode


def freeze(energy: nn.Module) -> nn.Module:
    """A frozen copy of ``energy``, which itself is left untouched and trainable."""
    frozen = copy.deepcopy(energy).eval().requires_grad_(False)
    for layer in list(frozen.modules()):
        if is_parametrized(layer):
            _drop_parametrizations(layer)
    return frozen


@torch.no_grad()
def refresh(frozen: nn.Module, energy: nn.Module) -> None:
    """Copy the current weights of ``energy`` into its frozen copy, in place."""
    values = folded_state(energy)
    for name, own in folded_state(frozen).items():
        own.copy_(values[name])


@torch.no_grad()
def folded_state(energy: nn.Module) -> dict[str, Tensor]:
    """Every weight and buffer of ``energy`` by name, parametrized ones with the value that the forward uses.

    Tensors that need no computation are the energy's own.
    """
    state: dict[str, Tensor] = {}
    with eval_mode(energy):
        for path, module in energy.named_modules():
            if "parametrizations" in path.split("."):
                continue
            own = chain(
                ((name, getattr(module, name)) for name in parametrized_names(module)),
                module.named_parameters(recurse=False),
                module.named_buffers(recurse=False),
            )
            state |= {f"{path}.{name}" if path else name: value.detach() for name, value in own}
    return state


def parametrized_names(layer: nn.Module) -> list[str]:
    """Names of the weights of ``layer`` itself that are parametrized."""
    return list(cast(nn.ModuleDict, layer.parametrizations)) if is_parametrized(layer) else []


@torch.no_grad()
def _drop_parametrizations(layer: nn.Module) -> None:
    # torch's remove_parametrizations deletes the property from a class that copy and original share,
    # which would break the original: restore the plain class of this one instance instead.
    values = {name: getattr(layer, name).clone() for name in parametrized_names(layer)}
    layer.__class__ = type_before_parametrizations(layer)
    del layer.parametrizations
    for name, value in values.items():
        layer.register_parameter(name, nn.Parameter(value, requires_grad=False))
