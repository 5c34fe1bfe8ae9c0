"""Noises for pairs (θ, x): x stays, and θ is drawn from the prior, around the true θ, or from a snapshot's posterior.

All of them act on normal coordinates u of θ, whose prior is standard normal. The first two have the prior's energy
``½‖u‖²``, so that the log-ratio to the posterior's energy is ``−f(θ, x)``.
"""

import math

import torch
from torch import Tensor, nn

from adance.contrasts.contrast import Contrast
from adance.energies.frozen import freeze, refresh
from adance.errors import InputError
from adance.noises.noise import Noise, NoiseSample, Separation
from adance.numbers import check_count
from adance.sbi.energy import PosteriorTilt


class _OnPrior(Noise):
    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """The prior's energies ``½‖u‖²`` ``(M,)``."""
        return 0.5 * x.square().sum(1)


class ShuffledNoise(_OnPrior):
    """θ of other simulations: pairs from p(θ)p(x), the noise of neural ratio estimation.

    With :class:`~adance.contrasts.Logistic` this is NRE-A (Hermans et al. 2020), with
    :class:`~adance.contrasts.Ranking` NRE-B (Durkan et al. 2020). The ratio is ``p(x|θ)`` up to a function of x even
    if the θ of the simulations are not from the prior.

    Args:
        rows: u of the simulations ``(N, d)``.
    """

    rows: Tensor

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        self.register_buffer("rows", rows)

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        """``n`` of the rows ``(n, d)``, drawn with replacement."""
        return NoiseSample(self.rows[torch.randint(len(self.rows), (n,), generator=generator)])


class PriorPerturbation(_OnPrior):
    """θ around the true one, at every scale: ``c = √(1−s²) u + sξ₀``, and from it ``yᵢ = √(1−s²) c + sξᵢ``.

    Both steps are reversible under the standard normal prior. So given c and the set {u, y₁, …, y_M}, each of the
    M + 1 is the datum with probability proportional to its posterior over its prior density, which a ranking contrast
    learns without a constant. s is drawn for each datum: with probability ``from_prior`` it is 1, and the yᵢ are
    samples of the prior; else it is log-uniform between ``smallest`` and 1, and local noise teaches the details that
    samples of the prior rarely meet.

    Args:
        smallest: Smallest s, in (0, 1].
        from_prior: Probability of s = 1, in [0, 1].

    Raises:
        InputError: ``smallest`` is not in (0, 1], or ``from_prior`` is not in [0, 1].
    """

    normalized = False

    def __init__(self, smallest: float = 0.02, from_prior: float = 0.2) -> None:
        super().__init__()
        if not 0 < smallest <= 1:
            raise InputError(f"smallest must be above 0 and at most 1, got {smallest}")
        if not 0 <= from_prior <= 1:
            raise InputError(f"from_prior must be a probability, got {from_prior}")
        self.smallest, self.from_prior = smallest, from_prior

    def check_contrast(self, contrast: Contrast) -> None:
        """Check that the contrast compares a datum only with its own noise.

        Raises:
            InputError: A constant of a datum would not cancel from the contrast.
        """
        _check_pairs(contrast)

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        """``n/B`` perturbations of each datum of ``data`` ``(B, d)``, grouped by datum."""
        s = self._scales(data, generator)
        keep = (1 - s.square()).sqrt()
        center = keep * data + s * _normal(data.shape, data, generator)
        shape = (len(data), n // len(data), data.shape[1])
        around = (keep * center)[:, None] + s[:, None] * _normal(shape, data, generator)
        return NoiseSample(around.flatten(0, 1))

    def _scales(self, data: Tensor, generator: torch.Generator | None) -> Tensor:
        place, choice = torch.rand((2, len(data), 1), generator=generator, dtype=data.dtype, device=data.device)
        return torch.where(choice < self.from_prior, 1.0, (math.log(self.smallest) * place).exp())


class PosteriorSnapshot(Noise):
    """θ from the posterior of a frozen earlier copy of the model, refreshed every K steps: self-adapting noise.

    No chains are run. Candidates are the datum and perturbations around it (:class:`PriorPerturbation`), of which by
    symmetry each is the datum with a probability that follows the posterior; the noise is drawn among them with the
    snapshot's probabilities ``∝ exp(−f)``. So datum and noise are distributions on the same set, whose constant
    cancels from a ranking contrast.

    Args:
        energy: The model.
        interval: K ≥ 1, optimizer steps between refreshes.
        candidates: Perturbations of each datum.
        perturbation: How they are drawn.

    Raises:
        InputError: ``interval`` or ``candidates`` is below 1.
    """

    normalized = False

    def __init__(
        self,
        energy: PosteriorTilt,
        interval: int = 50,
        candidates: int = 31,
        perturbation: PriorPerturbation | None = None,
    ) -> None:
        super().__init__()
        check_count("interval", interval)
        check_count("candidates", candidates)
        frozen = freeze(energy)
        assert isinstance(frozen, PosteriorTilt)
        self.frozen, self.interval, self.candidates = frozen, interval, candidates
        self.perturbation = perturbation or PriorPerturbation()

    def check_contrast(self, contrast: Contrast) -> None:
        """Check that the contrast compares a datum only with its own noise.

        Raises:
            InputError: A constant of a datum would not cancel from the contrast.
        """
        _check_pairs(contrast)

    @torch.no_grad()
    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        """``n/B`` samples for each datum of ``data`` ``(B, d)``, grouped by datum, at ``condition`` ``(n, p)``."""
        assert condition is not None
        each, places = n // len(data), self.candidates + 1
        around = self.perturbation.sample(self.candidates * len(data), data, generator).x
        among = torch.cat([data[:, None], around.view(len(data), self.candidates, -1)], 1)
        f = self.frozen.tilt(among.flatten(0, 1), condition[::each].repeat_interleave(places, 0)).view(-1, places)
        chosen = torch.multinomial((-f).softmax(1), each, replacement=True, generator=generator)
        return NoiseSample(among.gather(1, chosen[:, :, None].expand(-1, -1, data.shape[1])).flatten(0, 1))

    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """The snapshot's energies ``(M,)`` of u ``(M, d)`` at ``condition`` ``(M, p)``."""
        assert condition is not None
        return self.frozen(x, condition)  # type: ignore[no-any-return]

    def after_step(self, energy: nn.Module, step: int, separation: Separation) -> None:
        """Refresh the snapshot every K steps."""
        if step % self.interval == 0:
            refresh(self.frozen, energy)


def _check_pairs(contrast: Contrast) -> None:
    if not contrast.ignores_constant:
        raise InputError(
            f"{type(contrast).__name__} with perturbed parameters: the constant of the ratio depends on x; use Ranking "
            "or Conditional"
        )


def _normal(shape: tuple[int, ...] | torch.Size, like: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
