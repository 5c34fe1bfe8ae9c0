"""The chain's copy: a frozen copy whose layers compute the same numbers faster.

Only chains use it. The noise's density is the plain frozen copy, since the ratio's two energies must come from one
code path. Weights keep their names and shapes, so :func:`adance.energies.frozen.refresh` updates it in place, and
compiled programs stay valid.
"""

import copy
import warnings

import torch
from torch import Tensor, nn

from adance.energies.conditional import given
from adance.energies.energy import energy_and_gradient, evaluate
from adance.energies.layers import FastConv2d, FastLinear, is_plain

THIN = 16
"""With fewer inputs, a linear layer's weight is stored by columns, which makes its gradient up to 5 times faster."""


def chain_copy(
    frozen: nn.Module, x: Tensor, dtype: torch.dtype | None = None, condition: Tensor | None = None
) -> nn.Module:
    """The fastest copy of ``frozen`` that works for chains from ``x`` ``(B, *event)``, tested on two rows.

    A conditional energy is tested at ``condition`` ``(B or 1, *condition)``.

    A network that calls ``view`` on the output of a layer, or uses a layer's weight directly, may not work with the
    faster layers. Then a warning says why, and the copy has the dtype of the weights, or is a plain one.
    """
    x, z = x[:2], None if condition is None else condition[:2]
    for kind in dict.fromkeys((dtype, None)):
        fast = fast_copy(frozen, kind)
        altered = any(isinstance(layer, (FastLinear, FastConv2d)) for layer in fast.modules())
        reason = _refusal(given(fast, z), x) if altered else None
        if reason is None:
            return fast
        if _refusal(given(frozen, z), x) is None:
            without = "the optimized layers" if kind is None else str(kind).removeprefix("torch.")
            warnings.warn(
                f"{type(frozen).__name__} cannot use {without} ({reason:.200}); its chains will be slower", stacklevel=3
            )
    return copy.deepcopy(frozen)


def _refusal(energy: nn.Module, x: Tensor) -> str | None:
    """Why the energy cannot be evaluated, with or without its gradient; ``None`` if it can."""
    try:
        energy_and_gradient(energy, x)
        with torch.no_grad():
            evaluate(energy, x)
    except (RuntimeError, TypeError, ValueError) as error:
        return " ".join(str(error).split())
    return None


def fast_copy(frozen: nn.Module, dtype: torch.dtype | None = None) -> nn.Module:
    """A copy of the frozen energy ``frozen`` with faster linear layers and two-dimensional convolutions.

    Args:
        frozen: A copy made by :func:`adance.energies.freeze`.
        dtype: Type in which those layers multiply; everything else, including sums, keeps its type.
    """
    fast = copy.deepcopy(frozen)
    for layer in fast.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = FastLinear
            if layer.in_features < THIN:
                layer.weight.data = layer.weight.data.T.contiguous().T
        elif isinstance(layer, nn.Conv2d) and type(layer) in (FastConv2d, nn.Conv2d) and is_plain(layer):
            layer.__class__ = FastConv2d
            layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
        else:
            continue
        if dtype is not None:
            layer.to(dtype)
    return fast
