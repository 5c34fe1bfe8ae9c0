"""Metrics of a contrast in training."""

from torch import Tensor


def auc(energy_data: Tensor, energy_noise: Tensor) -> Tensor:
    """Probability that a datum's energy ``(B,)`` is below a noise sample's ``(M,)``; ties count half."""
    gap = energy_noise[None, :] - energy_data[:, None]
    return (gap > 0).float().mean() + 0.5 * (gap == 0).float().mean()


def energy_metrics(value: Tensor, data: Tensor, noise: Tensor) -> dict[str, Tensor]:
    """The loss ``value``, and statistics of the energies of ``data`` ``(B,)`` and of ``noise`` ``(M,)``."""
    return {"loss": value, "energy_data": data.mean(), "energy_noise": noise.mean(), "auc": auc(data, noise)}
