"""Numbers that say how a contrast is going."""

import torch
from torch import Tensor


def effective_sample_share(log_weights: Tensor) -> Tensor:
    """Effective sample size of importance weights ``exp(log_weights)`` ``(M,)``, as a share of M, in (0, 1]."""
    first, second = torch.logsumexp(log_weights, 0), torch.logsumexp(2 * log_weights, 0)
    return (2 * first - second).exp() / len(log_weights)


def auc(energy_data: Tensor, energy_noise: Tensor) -> Tensor:
    """Probability that a datum's energy ``(B,)`` lies below a noise sample's ``(M,)``, ties by half."""
    gap = energy_noise[None, :] - energy_data[:, None]
    return (gap > 0).float().mean() + 0.5 * (gap == 0).float().mean()


def energy_measures(value: Tensor, energies: Tensor, n: int) -> dict[str, Tensor]:
    """The loss ``value``, and how the first ``n`` of ``energies`` ``(n + M,)``, the data's, lie to the rest."""
    data, noise = energies[:n], energies[n:]
    return {"loss": value, "energy_data": data.mean(), "energy_noise": noise.mean(), "auc": auc(data, noise)}
