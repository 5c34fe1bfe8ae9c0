"""Linear layers and convolutions that compute the same as torch's, but faster."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
