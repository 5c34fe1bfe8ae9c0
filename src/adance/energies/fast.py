"""The chain's copy: a frozen copy whose layers compute the same numbers in the way that is fastest.

Only chains read it. The noise's density is the plain frozen copy, since the ratio's two energies must come from one
code path. Weights keep their names and shapes, so :func:`adance.energies.frozen.refresh` brings it up to date in place
and nothing that was compiled for it is compiled again.
"""

import copy

import torch
from torch import nn

from adance.energies.layers import FastConv2d, FastLinear

THIN = 16
"""With fewer inputs a linear layer's weight lies by columns: the gradient's product with it is up to 5 times faster."""


def fast_copy(frozen: nn.Module, dtype: torch.dtype | None = None) -> nn.Module:
    """A copy of the frozen energy ``frozen`` with faster linear layers and two-dimensional convolutions.

    Args:
        frozen: What :func:`adance.energies.freeze` made.
        dtype: Type in which those layers multiply; everything between them, and their sums, stays as it is.
    """
    fast = copy.deepcopy(frozen)
    for layer in fast.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = FastLinear
            if layer.in_features < THIN:
                layer.weight.data = layer.weight.data.T.contiguous().T
        elif type(layer) is FastConv2d or (type(layer) is nn.Conv2d and _is_plain(layer)):
            layer.__class__ = FastConv2d
            layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
        else:
            continue
        if dtype is not None:
            layer.to(dtype)
    return fast


def _is_plain(layer: nn.Conv2d) -> bool:
    undilated = layer.groups == 1 and tuple(layer.dilation) == (1, 1)
    return undilated and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
