"""The noise of adversarial contrastive estimation: an implicit neural sampler mixed with a base noise (thesis 3.3)."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from adance.errors import InputError
from adance.noises.fixed import FixedKind, FixedNoise
from adance.noises.noise import Noise
from adance.noises.standardized import Standardizer, randn, standard_normal_log_prob
from adance.randomness import weights_drawn_from


class NeuralSampler(Noise):
    """``p_n = λ p_base + (1 − λ) p_φ`` with ``p_φ(x) = ∫ N(x; μ_φ(z), diag σ_φ²(z)) N(z; 0, I) dz``.

    p_φ has no density in closed form. It is estimated as ``logsumexp_j log p_φ(x|z_j) − log m`` over m fresh z's at
    every step. The estimate of p_φ is unbiased, its logarithm, and so log p_n, biased low, to second order by
    ``½·Var(p̂_n)/p_n²``, which falls like 1/m and grows exponentially with the dimension. The model's energy and log Z
    take over that bias.

    Gradients in φ pass through the samples (``reparameterized``), or, where that is unwanted, are REINFORCE's with the
    mean of the other samples as baseline: unbiased too, of higher variance. Against mode collapse the adversary also
    maximises ``entropy`` times an estimate of the entropy of p_φ.

    Args:
        base: The base noise, fitted to the data.
        base_weight: λ in [0, 1).
        latent: Dimension of z; by default the event's, at most 64.
        hidden: Widths of the hidden layers.
        gradient: How the sampler learns.
        entropy: Weight of the entropy, ≥ 0.
        marginal_draws: m.
        min_std: Lower bound of σ_φ, in standard deviations of the data; the smaller, the larger the bias.

    Raises:
        InputError: A number is out of range.
    """

    temperature = 1.0
    normalized = True
    adversarial = True

    def __init__(
        self,
        base: FixedKind = "gaussian",
        base_weight: float = 0.5,
        latent: int | None = None,
        hidden: Sequence[int] = (64, 64),
        gradient: Literal["reparameterized", "reinforce"] = "reparameterized",
        entropy: float = 0.1,
        marginal_draws: int = 256,
        min_std: float = 0.1,
    ) -> None:
        super().__init__()
        if not (0 <= base_weight < 1 and entropy >= 0 and marginal_draws >= 1 and min_std > 0):
            raise InputError(
                "a neural sampler needs base_weight in [0, 1), entropy ≥ 0, marginal_draws ≥ 1 and min_std > 0, got "
                f"{base_weight}, {entropy}, {marginal_draws}, {min_std}"
            )
        if gradient not in ("reparameterized", "reinforce"):
            raise InputError(f"unknown gradient {gradient!r}; reparameterized or reinforce")
        self.base, self.base_weight = FixedNoise(base), base_weight
        self.latent = self._given_latent = latent
        self.hidden, self.rewarded = tuple(hidden), gradient == "reinforce"
        self.entropy, self.marginal_draws, self.min_std = entropy, marginal_draws, min_std
        self.standard: Standardizer | None = None
        self.net: nn.Module | None = None
        self._generator: torch.Generator | None = None
        self._own = self._conditional = self._marginal = torch.empty(0)

    def prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        """Fit the base noise and make the sampler for the data ``(N, *event)``."""
        self.base.prepare(energy, data, batch, generator)
        self.standard = Standardizer(data)
        dimension = data[0].numel()
        self.latent = self._given_latent or min(dimension, 64)
        layers: list[nn.Module] = []
        with weights_drawn_from(generator):
            for narrow, wide in pairwise([self.latent, *self.hidden]):
                layers += [nn.Linear(narrow, wide), nn.SiLU()]
            self.net = nn.Sequential(*layers, nn.Linear([self.latent, *self.hidden][-1], 2 * dimension)).to(data)

    def adversary_parameters(self) -> list[nn.Parameter]:
        """The sampler's."""
        return [] if self.net is None else list(self.net.parameters())

    def draw(self, n: int, data: Tensor, generator: torch.Generator | None) -> Tensor:
        """``n`` independent draws ``(n, *event)`` of the mixture, with their graph when reparameterised."""
        assert self.standard is not None, "prepare() first"
        mean, std = self._conditional_law(n, data, generator)
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
        z = mean + std * noise
        if self.rewarded:
            z = z.detach()
            self._conditional = _normal_log_prob(z, mean, std)
        base = self.base.draw(n, data, generator)
        self._own = torch.rand(n, generator=generator, device=data.device) >= self.base_weight
        self._generator = generator
        return torch.where(self._own.view(-1, *[1] * (data.ndim - 1)), self.standard.back(z), base)

    def energy(self, x: Tensor, model_energy: Tensor) -> Tensor:
        """The estimate of ``−log p_n(x)`` ``(B,)``, with z's from the generator of the last draw."""
        assert self.standard is not None, "prepare() first"
        mean, std = self._conditional_law(self.marginal_draws, x, self._generator)
        each = _normal_log_prob(self.standard(x)[:, None], mean, std)
        self._marginal = each.logsumexp(1) - math.log(self.marginal_draws) - self.standard.log_volume()
        if self.base_weight == 0:
            return -self._marginal
        base = math.log(self.base_weight) - self.base.energy(x, model_energy)
        return -torch.logaddexp(base, math.log1p(-self.base_weight) + self._marginal)

    def adversary_term(self, reward: Tensor | None) -> Tensor | None:
        """The entropy's, and with REINFORCE the whole gradient through the draws."""
        own, marginal, conditional = self._own, self._marginal[-len(self._own) :], self._conditional
        self._own = self._conditional = self._marginal = torch.empty(0)
        self._generator = None
        count = own.sum()
        share = own.to(marginal.dtype) / count.clamp(min=1)
        term = -self.entropy * (share * marginal).sum()
        if reward is None:
            return term
        gain = reward * count / len(own) - self.entropy * marginal.detach()
        # the mean of the others, so that the baseline does not depend on the sample
        above = (gain - (share * gain).sum()) * count / (count - 1).clamp(min=1)
        score = (share * above * conditional).sum()
        return term + score - score.detach()

    def _conditional_law(self, n: int, like: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of p_φ(·|z), standardised, ``(n, D)`` each, for n fresh z's."""
        assert self.net is not None, "prepare() first"
        assert self.latent is not None
        mean, raw = self.net(randn(n, self.latent, like, generator)).chunk(2, 1)
        return mean, softplus(raw) + self.min_std


def _normal_log_prob(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    return standard_normal_log_prob((x - mean) / std) - std.log().sum(-1)
