"""Importance weights: their mean, effective sample size, resampling, and the step that keeps enough of the latter."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from adance.distributed import from_main


def effective_sample_share(log_weights: Tensor) -> Tensor:
    """Effective sample size of importance weights ``exp(log_weights)`` ``(M,)``, as a share of M, in (0, 1]."""
    first, second = torch.logsumexp(log_weights, 0), torch.logsumexp(2 * log_weights, 0)
    return (2 * first - second).exp() / len(log_weights)


def finite_sample_share(log_weights: Tensor) -> Tensor:
    """Like :func:`effective_sample_share`, but weights that are not finite count as 0."""
    log_weights = torch.where(log_weights.isfinite(), log_weights, -torch.inf)
    return effective_sample_share(log_weights).nan_to_num(0.0)


class LogMean(NamedTuple):
    """The logarithm of the mean of importance weights.

    Attributes:
        value: ``log mean w``.
        error: Its standard error, ``sd(w)/(√n mean w)``; infinite for one weight.
        effective: The effective sample size ``(Σw)²/Σw²``.
    """

    value: float
    error: float
    effective: float


def log_mean_exp(log_weights: Tensor) -> LogMean:
    """The logarithm of the mean of weights ``exp(log_weights)`` ``(n,)``, in float64.

    If a weight is ``nan`` or infinite, or all are 0, the mean is ``nan`` and the effective sample size 0.
    """
    n, log_weights = len(log_weights), log_weights.double()
    if not bool(log_weights.max().isfinite()):  # the maximum is nan if any weight is
        return LogMean(math.nan, math.nan, 0.0)
    weights = (log_weights - log_weights.max()).exp()
    error = float(weights.std(correction=1) / weights.mean()) / math.sqrt(n) if n > 1 else math.inf
    value = float(log_weights.logsumexp(0)) - math.log(n)
    return LogMean(value, error, n * float(effective_sample_share(log_weights)))


def longest_step(keeps: Callable[[float], bool], rest: float, shortest: float, halvings: int) -> float:
    """The longest step of at most ``rest`` that ``keeps`` enough of the effective sample size, by bisection.

    Args:
        keeps: Whether a step keeps enough; true for 0, and monotone.
        rest: The longest step.
        shortest: Returned if no longer one keeps enough.
        halvings: Bisections.
    """
    if keeps(rest):
        return rest
    low, high = 0.0, rest
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return min(rest, max(low, shortest))


def resampled_rows(x: Tensor, log_weights: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Rows ``(M,)`` of ``x`` ``(M, *event)``, resampled with weights ``exp(log_weights)`` ``(M,)``.

    Systematic: a row with the share w of all weight appears ``w·M`` times, rounded up or down, and so does each set of
    rows that are neighbors in a random direction, such as a mode. Weights that are not finite count as 0; without any
    finite weight every row appears once. Several processes that pass the same rows get the same result.
    """
    # on the CPU, since not every device has float64, which equal weights need to stay equal
    weights = torch.where(log_weights.isfinite(), log_weights, -torch.inf).cpu().double().softmax(0)
    weights = torch.where(weights.isfinite().all(), weights, 1 / len(weights))
    flat = x.flatten(1)
    direction = from_main(torch.randn(flat.shape[1], generator=generator, device=x.device, dtype=x.dtype))
    order = torch.argsort(flat @ direction).cpu()
    offset = from_main(torch.rand((), generator=generator, device=x.device)).cpu()
    places = (torch.arange(len(weights)) + offset.double()) / len(weights)
    kept = torch.searchsorted(weights[order].cumsum(0), places).clamp(max=len(weights) - 1)
    return order[kept].to(x.device)
