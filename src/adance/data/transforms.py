"""Maps between the units that data are stored in and the units that a model sees.

Every transform is affine and one-to-one, so a log-density moves between the two by adding a constant, `log_det`.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from adance.data.moments import Moments, column_moments
from adance.data.rows import AnyRows
from adance.errors import InputError

Kind = Literal["image", "vector"]
"""What events are: images (C, H, W) or vectors (D,)."""


@dataclass(frozen=True)
class Identity:
    """Leaves values as they are: the model sees the data's own units."""

    @property
    def log_det(self) -> float:
        """``log |d model / d data|`` of one event: 0."""
        return 0.0

    @property
    def level_width(self) -> float | None:
        """None: the values are not quantized."""
        return None

    def to_model(self, raw: Tensor) -> Tensor:
        """Float32 copy of `raw` ``(B, *event)``."""
        return raw.to(torch.float32)

    def to_data(self, x: Tensor) -> Tensor:
        """`x` ``(B, *event)`` itself."""
        return x

    def state(self) -> dict[str, Any]:
        """JSON-able form, read back by `transform_from_state`."""
        return {"type": "identity"}


@dataclass(frozen=True)
class ImageScale:
    """Maps pixel values in [low, high] to [-1, 1].

    Attributes:
        low: raw value that becomes -1 (0 for uint8).
        high: raw value that becomes 1 (255 for uint8).
        levels: number of quantization levels (256 for uint8), None for continuous values.
        size: number of values in one event, C * H * W.
    """

    low: float
    high: float
    levels: int | None
    size: int

    @property
    def log_det(self) -> float:
        """``log |d model / d data|`` of one event, size * log(2 / (high - low)), in nats.

        Added to a log-density in model units it gives the log-density per raw unit (per gray level for uint8).
        """
        return self.size * math.log(2 / (self.high - self.low))

    @property
    def level_width(self) -> float | None:
        """Width of one quantization level in model units, 2 / (levels - 1); None for continuous values."""
        return None if self.levels is None else 2 / (self.levels - 1)

    def to_model(self, raw: Tensor) -> Tensor:
        """Float32 images in [-1, 1] of raw images (B, C, H, W) in [low, high]."""
        x = raw.to(torch.float32, memory_format=torch.contiguous_format, copy=True)
        return x.sub_((self.high + self.low) / 2).div_((self.high - self.low) / 2)

    def to_data(self, x: Tensor) -> Tensor:
        """Raw units, neither rounded nor clamped, of images `x` (B, C, H, W) in model units."""
        return x * ((self.high - self.low) / 2) + (self.high + self.low) / 2

    def state(self) -> dict[str, Any]:
        """JSON-able form, read back by `transform_from_state`."""
        return {"type": "image_scale", "low": self.low, "high": self.high, "levels": self.levels, "size": self.size}


@dataclass(frozen=True)
class Standardize:
    """Gives each column of vectors mean 0 and standard deviation 1 over the training rows.

    Attributes:
        mean: column means, D numbers in the data's units.
        std: column standard deviations, D positive numbers; 1 for a constant column.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def fit(cls, raw: AnyRows) -> "Standardize":
        """Statistics of the rows of `raw` (N, D)."""
        return cls.of(column_moments(raw))

    @classmethod
    def of(cls, moments: Moments) -> "Standardize":
        """The transform of rows with these statistics."""
        std = torch.where(moments.constant, 1.0, moments.std)
        return cls(tuple(moments.mean.tolist()), tuple(std.tolist()))

    @property
    def log_det(self) -> float:
        """``log |d model / d data|`` of one row, minus the sum of log std, in nats."""
        return -sum(math.log(s) for s in self.std)

    @property
    def level_width(self) -> float | None:
        """None: the values are not quantized."""
        return None

    def to_model(self, raw: Tensor) -> Tensor:
        """Float32 standardized rows of `raw` (B, D)."""
        mean, std = self._statistics(raw)
        return ((raw.to(torch.float64) - mean) / std).to(torch.float32)

    def to_data(self, x: Tensor) -> Tensor:
        """Rows (B, D) in the data's units, float64 so that a large mean costs no digits."""
        mean, std = self._statistics(x)
        return x.to(torch.float64) * std + mean

    def state(self) -> dict[str, Any]:
        """JSON-able form, read back by `transform_from_state`."""
        return {"type": "standardize", "mean": list(self.mean), "std": list(self.std)}

    def _statistics(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return like.new_tensor(self.mean, dtype=torch.float64), like.new_tensor(self.std, dtype=torch.float64)


Transform = Identity | ImageScale | Standardize


def transform_from_state(state: dict[str, Any]) -> Transform:
    """The transform whose `state()` this is.

    Raises:
        InputError: if the state was not written by a transform of this library.
    """
    try:
        if state["type"] == "identity":
            return Identity()
        if state["type"] == "image_scale":
            levels = None if state["levels"] is None else int(state["levels"])
            return ImageScale(float(state["low"]), float(state["high"]), levels, int(state["size"]))
        if state["type"] == "standardize":
            return Standardize(tuple(map(float, state["mean"])), tuple(map(float, state["std"])))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"transform state {state!r} is incomplete or malformed: {error!r}") from None
    raise InputError(f"transform type {state['type']!r} is unknown: use identity, image_scale or standardize")
