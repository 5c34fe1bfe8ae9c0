"""Importance weights."""

import torch
from torch import Tensor


def effective_sample_share(log_weights: Tensor) -> Tensor:
    """Effective sample size of importance weights ``exp(log_weights)`` ``(M,)``, as a share of M, in (0, 1]."""
    first, second = torch.logsumexp(log_weights, 0), torch.logsumexp(2 * log_weights, 0)
    return (2 * first - second).exp() / len(log_weights)
