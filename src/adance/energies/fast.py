"""The chain's copy: a frozen copy whose layers compute the same numbers faster.

Only chains use it. The noise's density is the plain frozen copy, since the ratio's two energies must come from one
code path. Weights keep their names and shapes, so :func:`adance.energies.frozen.refresh` updates it in place, and
compiled programs stay valid.
"""

import copy
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adance.energies.conditional import given
from adance.energies.energy import energy_and_gradient, evaluate

THIN = 16
"""With fewer inputs, a linear layer's weight is stored by columns, which makes its gradient up to 5 times faster."""


FEW_INPUTS = 32
"""With at most this many inputs per output, a convolution on the CPU is a product with unfolded patches."""


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


class FastLinear(nn.Linear):
    """A linear layer that multiplies in the type of its weight."""

    def forward(self, x: Tensor) -> Tensor:
        """Outputs ``(..., O)`` of inputs ``(..., I)``, in the type of the inputs."""
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias).to(x.dtype)


def is_plain(layer: nn.Conv2d) -> bool:
    """Whether groups and dilation are 1 and the padding is given as numbers of zeros."""
    undilated = layer.groups == 1 and tuple(layer.dilation) == (1, 1)
    return undilated and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


class FastConv2d(nn.Conv2d):
    """A convolution computed as a matrix product if possible, otherwise with channels last.

    With groups, dilation or other padding it is torch's own.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Outputs ``(B, O, H', W')`` of inputs ``(B, C, H, W)``, in the type of the inputs."""
        weight = self.weight  # a parametrized one is computed at each access
        narrow = x.to(weight.dtype)
        as_products = x.ndim == 4 and is_plain(self)
        y: Tensor = self._convolve(narrow, weight) if as_products else self._conv_forward(narrow, weight, self.bias)
        return y.to(x.dtype)

    def _convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        (kh, kw), (ph, pw), (sh, sw) = self.kernel_size, self._pads, self.stride
        h, w = (x.shape[2] + 2 * ph - kh) // sh + 1, (x.shape[3] + 2 * pw - kw) // sw + 1
        if h == w == 1:
            return self._cover(x[:, :, : max(kh - ph, 0), : max(kw - pw, 0)], weight)
        if x.device.type == "cpu" and self.in_channels * kh * kw <= FEW_INPUTS:
            return self._unfold(x, weight, h, w)
        return F.conv2d(x.contiguous(memory_format=torch.channels_last), weight, self.bias, self.stride, self._pads)

    def _cover(self, x: Tensor, weight: Tensor) -> Tensor:
        """A convolution with one output position, as a linear layer."""
        (ph, pw), (h, w) = self._pads, x.shape[2:]
        weight = weight[:, :, ph : ph + h, pw : pw + w]
        # in the order in which they are in memory
        rows, weight = x.permute(0, 2, 3, 1).flatten(1), weight.permute(0, 2, 3, 1).flatten(1)
        return F.linear(rows, weight, self.bias)[:, :, None, None]

    def _unfold(self, x: Tensor, weight: Tensor, h: int, w: int) -> Tensor:
        """A product with the ``h·w`` patches, which is faster for few inputs."""
        (kh, kw), (ph, pw), (sh, sw) = self.kernel_size, self._pads, self.stride
        padded = F.pad(x, (pw, pw, ph, ph)).permute(0, 2, 3, 1)
        patches = [
            padded[:, i : i + sh * (h - 1) + 1 : sh, j : j + sw * (w - 1) + 1 : sw]
            for i in range(kh)
            for j in range(kw)
        ]
        # a row for each input: the products of both gradients are several times faster than with a row for each output
        rows = weight.permute(2, 3, 1, 0).flatten(0, 2).contiguous()
        flat = torch.cat(patches, -1).flatten(0, 2)
        outputs = flat @ rows if self.bias is None else torch.addmm(self.bias, flat, rows)
        return outputs.view(len(x), h, w, rows.shape[1]).permute(0, 3, 1, 2)

    @property
    def _pads(self) -> tuple[int, int]:
        assert isinstance(self.padding, tuple)
        return self.padding[0], self.padding[1]
