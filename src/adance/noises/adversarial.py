"""The noise of adversarial contrastive estimation: an implicit neural sampler mixed with a base noise (thesis 3.3)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from adance.contrasts import Bregman, Contrast
from adance.distributed import mean_over_ranks, world_size
from adance.errors import InputError
from adance.noises.fixed import FittedKind, FittedNoise
from adance.noises.noise import Noise, NoiseRecipe, NoiseSample
from adance.noises.standardized import Standardizer, randn, standard_normal_log_prob
from adance.numbers import check_count
from adance.randomness import weights_drawn_from


class NeuralSampler(NoiseRecipe):
    """Recipe of :class:`NeuralNoise`: ``p_n = λ p_base + (1 − λ) p_φ``.

    Args:
        base: The base noise, fitted to the data.
        base_weight: λ in [0, 1).
        latent: Dimension of z; by default the event's, at most 64.
        hidden: Widths of the hidden layers.
        gradient: ``reparameterized`` or ``reinforce``.
        entropy: Weight of the entropy, ≥ 0.
        marginal_draws: m, at least 1.
        min_std: Lower bound of σ_φ, in standard deviations of the data; the smaller, the larger the bias.

    Raises:
        InputError: ``base_weight`` is outside [0, 1), ``entropy`` below 0, ``marginal_draws`` or ``latent`` below 1,
            ``min_std`` not above 0, or ``gradient`` unknown.
    """

    def __init__(
        self,
        base: FittedKind = "gaussian",
        base_weight: float = 0.5,
        latent: int | None = None,
        hidden: Sequence[int] = (64, 64),
        gradient: Literal["reparameterized", "reinforce"] = "reparameterized",
        entropy: float = 0.1,
        marginal_draws: int = 256,
        min_std: float = 0.1,
    ) -> None:
        if not (0 <= base_weight < 1 and entropy >= 0 and marginal_draws >= 1 and min_std > 0):
            raise InputError(
                "a neural sampler needs base_weight in [0, 1), entropy ≥ 0, marginal_draws ≥ 1 and min_std > 0, got "
                f"{base_weight=}, {entropy=}, {marginal_draws=}, {min_std=}"
            )
        if gradient not in ("reparameterized", "reinforce"):
            raise InputError(f"unknown gradient {gradient!r}: use reparameterized or reinforce")
        if latent is not None:
            check_count("latent", latent)
        self.base, self.base_weight, self.latent, self.hidden = FittedNoise(base), base_weight, latent, tuple(hidden)
        self.gradient, self.entropy, self.marginal_draws, self.min_std = gradient, entropy, marginal_draws, min_std

    def resolve(self, event_shape: tuple[int, ...]) -> "NeuralSampler":
        """The recipe with the dimension of z filled in."""
        latent = self.latent or min(math.prod(event_shape), 64)
        return NeuralSampler(**{**self.init_args, "latent": latent})

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> "NeuralNoise":
        """A new sampler, and the base noise fitted to data ``(N, *event)``."""
        base, dimension = self.base.build(data, generator), data[0].numel()
        latent = self.resolve(tuple(data.shape[1:])).init_args["latent"]
        widths, layers = [latent, *self.hidden], list[nn.Module]()
        with weights_drawn_from(generator):
            for narrow, wide in pairwise(widths):
                layers += [nn.Linear(narrow, wide), nn.SiLU()]
            net = nn.Sequential(*layers, nn.Linear(widths[-1], 2 * dimension)).to(data)
        return NeuralNoise(self, base, net, Standardizer(data), latent)


@dataclass(eq=False)
class NeuralSample(NoiseSample):
    """Samples of a :class:`NeuralNoise`.

    Attributes:
        from_sampler: Which samples come from the sampler and not from the base noise ``(n,)``.
        conditional: ``log p_φ(x|z)`` of the z that each sample came from ``(n,)``, only for REINFORCE.
        generator: Source of randomness for the z's that estimate the marginal.
        entropy: Weight of the entropy.
        marginal: The estimate of ``log p_φ(x)`` ``(n,)``, once the energies have been computed.
    """

    from_sampler: Tensor = field(kw_only=True)
    conditional: Tensor | None = field(kw_only=True)
    generator: torch.Generator | None = field(kw_only=True)
    entropy: float = field(kw_only=True)
    marginal: Tensor = field(init=False)

    def adversary_term(self, loss_of_each: Callable[[], Tensor]) -> Tensor:
        """The entropy term, and with REINFORCE the gradient through the samples."""
        from_sampler, marginal = self.from_sampler, self.marginal
        count = mean_over_ranks(from_sampler.sum())
        share = from_sampler.to(marginal.dtype) / count.clamp(min=1 / world_size())
        term = -self.entropy * (share * marginal).sum()
        if self.conditional is None:
            return term
        gain = loss_of_each() * count / len(from_sampler) - self.entropy * marginal.detach()
        # the mean of the others, so that the baseline does not depend on the sample
        total = count * world_size()
        above = (gain - mean_over_ranks((share * gain).sum())) * total / (total - 1).clamp(min=1)
        score = (share * above * self.conditional).sum()
        return term + score - score.detach()


class NeuralNoise(Noise):
    """``p_n = λ p_base + (1 − λ) p_φ`` with ``p_φ(x) = ∫ N(x; μ_φ(z), diag σ_φ²(z)) N(z; 0, I) dz``.

    p_φ has no density in closed form. It is estimated as ``logsumexp_j log p_φ(x|z_j) − log m`` over m new z's at every
    step. The estimate of p_φ is unbiased. Its logarithm, and so log p_n, is biased low, to second order by
    ``½·Var(p̂_n)/p_n²``, which falls like 1/m and grows exponentially with the dimension. The model's energy and log Z
    inherit that bias.

    Gradients in φ pass through the samples (``reparameterized``), or are estimated by REINFORCE with the mean of the
    other samples as baseline: also unbiased, with higher variance. Against mode collapse the adversary also maximizes
    ``entropy`` times an estimate of the entropy of p_φ.

    Args:
        settings: The recipe.
        base: The base noise.
        net: Network from z to the mean and the raw standard deviation of x.
        standard: The standardization of events.
        latent: Dimension of z.
    """

    def __init__(
        self, settings: NeuralSampler, base: Noise, net: nn.Sequential, standard: Standardizer, latent: int
    ) -> None:
        super().__init__()
        self.settings, self.base, self.standard, self.net, self.latent = settings, base, standard, net, latent

    def check_contrast(self, contrast: Contrast) -> None:
        """Check that REINFORCE can use the contrast: it needs the loss of each sample.

        Raises:
            InputError: The contrast's loss is not a sum over samples.
        """
        if self.settings.gradient == "reinforce" and not isinstance(contrast, Bregman):
            raise InputError(
                f"{type(contrast).__name__} with NeuralNoise: gradient='reinforce' needs a Bregman contrast"
            )

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NeuralSample:
        """``n`` independent samples ``(n, *event)`` of the mixture, with their graph if reparameterized."""
        mean, std = self._conditional_moments(n, data, generator)
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
        z, conditional = mean + std * noise, None
        if self.settings.gradient == "reinforce":
            z = z.detach()
            conditional = _normal_log_prob(z, mean, std)
        base = self.base.sample(n, data, generator).x
        from_sampler = torch.rand(n, generator=generator, device=data.device) >= self.settings.base_weight
        x = torch.where(from_sampler.view(-1, *[1] * (data.ndim - 1)), self.standard.back(z), base)
        return NeuralSample(
            x, from_sampler=from_sampler, conditional=conditional, generator=generator, entropy=self.settings.entropy
        )

    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """The estimate of ``−log p_n(x)`` ``(M,)``, with z's from the generator of ``sample``."""
        drawn = sample if isinstance(sample, NeuralSample) else None
        generator = None if drawn is None else drawn.generator
        mean, std = self._conditional_moments(self.settings.marginal_draws, x, generator)
        each = _normal_log_prob(self.standard(x)[:, None], mean, std)
        marginal = each.logsumexp(1) - math.log(self.settings.marginal_draws) - self.standard.log_volume()
        if drawn is not None:
            drawn.marginal = marginal[-len(drawn.x) :]
        if self.settings.base_weight == 0:
            return -marginal
        base = math.log(self.settings.base_weight) - self.base.energy(x)
        return -torch.logaddexp(base, math.log1p(-self.settings.base_weight) + marginal)

    def _conditional_moments(self, n: int, like: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of p_φ(·|z), standardized, ``(n, D)`` each, for n new z's."""
        mean, raw = self.net(randn(n, self.latent, like, generator)).chunk(2, 1)
        return mean, softplus(raw) + self.settings.min_std


def _normal_log_prob(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    return standard_normal_log_prob((x - mean) / std) - std.log().sum(-1)
