"""Laws with exact samples, for tests: energies as plain functions, and a two-sample test."""

from dataclasses import dataclass
from typing import Any

import torch
from scipy.stats import ks_2samp


@dataclass
class Law:
    name: str
    energy: Any
    sample: Any
    d: int


COVARIANCE = torch.tensor([[1.0, 0.6, -0.3], [0.6, 2.0, 0.4], [-0.3, 0.4, 0.5]], dtype=torch.float64)
PRECISION = torch.linalg.inv(COVARIANCE)


def normal(n, d, generator):
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


def gaussian_energy(x):
    return 0.5 * ((x @ PRECISION.to(x)) * x).sum(1)


def gaussian_sample(n, generator, covariance=COVARIANCE):
    return normal(n, 3, generator) @ torch.linalg.cholesky(covariance).T


CENTERS = torch.tensor([[-1.5, 0.0], [1.5, 1.0]], dtype=torch.float64)
WIDTHS = torch.tensor([0.7, 0.4], dtype=torch.float64)
WEIGHTS = torch.tensor([0.3, 0.7], dtype=torch.float64)


def mixture_energy(x):
    squares = (x[:, None] - CENTERS).square().sum(2) / WIDTHS.square()
    return -torch.logsumexp(WEIGHTS.log() - 2 * WIDTHS.log() - 0.5 * squares, 1)


def mixture_sample(n, generator):
    which = (torch.rand(n, generator=generator, dtype=torch.float64) > WEIGHTS[0]).long()
    return CENTERS[which] + WIDTHS[which, None] * normal(n, 2, generator)


def funnel_energy(x):
    v = x[:, 0]
    return v.square() / 2 + 0.5 * (x[:, 1:].square() * (-v).exp()[:, None] + v[:, None]).sum(1)


def funnel_sample(n, generator):
    noise = normal(n, 3, generator)
    return torch.cat([noise[:, :1], (noise[:, :1] / 2).exp() * noise[:, 1:]], 1)


GAUSSIAN = Law("gaussian", gaussian_energy, gaussian_sample, 3)
MIXTURE = Law("mixture", mixture_energy, mixture_sample, 2)
FUNNEL = Law("funnel", funnel_energy, funnel_sample, 3)
LAWS = [GAUSSIAN, MIXTURE, FUNNEL]


def same_law(found, right, level=1e-4):
    """Two-sample test at ``level``: Kolmogorov–Smirnov along axes, principal and four fixed directions, by Bonferroni.

    The principal directions are those of both samples together, which the samples enter alike.
    """
    principal = torch.linalg.eigh(torch.cov(torch.cat([found, right]).T)).eigenvectors.T
    directions = torch.cat([principal, normal(4, found.shape[1], torch.Generator().manual_seed(99))])
    features = [torch.cat([x, x @ directions.T], 1) for x in (found, right)]
    p = [ks_2samp(a.numpy(), b.numpy()).pvalue for a, b in zip(features[0].T, features[1].T, strict=True)]
    return min(p) * len(p) > level


def check_covariance(x, covariance, sigmas=5.0):
    """Mean 0 and ``covariance`` within ``sigmas`` standard deviations, those of n independent normal draws."""
    n, variances = len(x), covariance.diagonal()
    spread = ((torch.outer(variances, variances) + covariance.square()) / n).sqrt()
    assert ((torch.cov(x.T) - covariance).abs() < sigmas * spread).all()
    assert (x.mean(0).abs() < sigmas * (variances / n).sqrt()).all()


def bits(n, values=(0.0, 1.0)):
    """All ``2ⁿ`` states ``(2ⁿ, n)``."""
    grid = torch.cartesian_prod(*[torch.tensor(values, dtype=torch.float64)] * n)
    return grid.view(-1, n)


def probabilities(energy, states, temperature=1.0):
    return torch.softmax(-energy(states) / temperature, 0)
