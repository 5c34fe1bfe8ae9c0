"""Linear layers and convolutions that compute the same as torch's, but faster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

FEW_INPUTS = 32
"""With at most this many inputs per output, a convolution on the CPU is a product with unfolded patches."""


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

    backward_dtype: torch.dtype | None = None

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
        x = x.contiguous(memory_format=torch.channels_last)
        if self.backward_dtype is not None:
            how = self.stride, self._pads, self.backward_dtype
            return _NarrowBackward.apply(x, weight, self.bias, *how)  # type: ignore[no-untyped-call, no-any-return]
        return F.conv2d(x, weight, self.bias, self.stride, self._pads)

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


@contextmanager
def backward_in(energy: object, dtype: torch.dtype | None) -> Iterator[None]:
    """The gradients of convolutions evaluated in this context are products in ``dtype``; values stay as they are.

    It applies to :class:`FastConv2d` layers of ``energy``. Their second derivatives raise an error.
    """
    if dtype is None:
        yield
        return
    modules = energy.modules() if isinstance(energy, nn.Module) else ()
    layers = [layer for layer in modules if isinstance(layer, FastConv2d)]
    for layer in layers:
        layer.backward_dtype = dtype
    try:
        yield
    finally:
        for layer in layers:
            layer.backward_dtype = None


class _NarrowBackward(torch.autograd.Function):
    """A convolution whose gradients are products in a narrower type."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dtype: torch.dtype,
    ) -> Tensor:
        ctx.save_for_backward(x.to(dtype), weight.to(dtype))
        ctx.stride, ctx.padding, ctx.dtype, ctx.has_bias = stride, padding, dtype, bias is not None
        return F.conv2d(x, weight, bias, stride, padding)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wanted = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], False)
        of_x, of_weight, _ = torch.ops.aten.convolution_backward(
            gradient.to(ctx.dtype), x, weight, None, ctx.stride, ctx.padding, (1, 1), False, (0, 0), 1, wanted
        )
        of_bias = gradient.sum((0, 2, 3)) if ctx.has_bias else None
        found = (None if one is None else one.to(gradient.dtype) for one in (of_x, of_weight))
        return (*found, of_bias, None, None, None)
