"""Dequantization: a quantized value, such as a gray level, becomes a random point of the bin that it stands for."""

from torch import Tensor


def level_bins(x: Tensor, level_width: float, bounds: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Lower and upper ends (B, *event), float64, of the bins that quantized values stand for, cut at `bounds`.

    The bin of a value is centered on it and one level wide, so the bins of the levels of [-1, 1] reach half a level
    beyond both ends. A bin outside the bounds has length 0.

    Args:
        x: values in model units (B, *event).
        level_width: width of one level in model units.
        bounds: lowest and highest value of the model.
    """
    half = level_width / 2
    return (x.double() - half).clamp(*bounds), (x.double() + half).clamp(*bounds)


def dequantize(x: Tensor, level_width: float, u: Tensor, bounds: tuple[float, float] | None = None) -> Tensor:
    """Quantized values (B, *event) in model units, each moved to the share `u` of its bin, see `level_bins`.

    Args:
        x: values in model units (B, *event).
        level_width: width of one level in model units.
        u: shares (B, *event), uniform in [0, 1).
        bounds: lowest and highest value of the model; None without bounds.
    """
    if bounds is None:
        return x + level_width * (u - 0.5)
    low, high = level_bins(x, level_width, bounds)
    return (low + (high - low) * u).to(x)
