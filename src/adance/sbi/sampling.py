"""Samples of many posteriors at once: populations of chains that go from the prior to the posterior by temperatures.

Sequential Monte Carlo (Del Moral et al. 2006): for each observation some populations, each with its own temperatures,
weights and resampling, all in one batch of Hamiltonian chains. Modes get their weights from the prior's samples, so no
chain has to cross between modes. Since populations are independent, their disagreement shows whether they have
converged (nested R̂, Margossian et al. 2024).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adance.samplers.chains import run_chains
from adance.samplers.hmc import HMC
from adance.sbi.energy import PosteriorTilt

POPULATIONS = 4
"""Populations for each observation."""

SMALLEST_POPULATION = 64
OVERSAMPLING = 16
"""Samples of the prior for each chain: they cost no gradient, and find small modes with the right weights."""

EFFECTIVE_SHARE = 0.5
"""Effective share of a population that one change of temperature leaves."""

MOVES = 4
"""Trajectories after each change of temperature."""

STEP_SIZE, ADAPTATION = 0.3, 1.0
"""First step size, and its change per step: fast, since it is averaged over all chains of an observation."""

HALVINGS = 30
RIDGE = 1e-4
"""Smallest variance of a direction of the chains' coordinates, relative to the mean variance."""


@dataclass(frozen=True)
class PosteriorChains:
    """Ends of chains on the posteriors of S observations.

    Attributes:
        u: Normal coordinates ``(S, N, d)``; the populations follow each other.
        log_z: Estimate of ``log ∫ p(θ) exp(−f(θ, x)) dθ`` for each observation ``(S,)``.
        acceptance: Mean acceptance in the second half of the last trajectories.
        disagreement: For each observation ``(S,)``, the variance of the populations' means over the variance inside
            them, in the coordinate where it is largest: about 1/n if each is n independent samples.
        temperatures: Temperatures after the first, of the longest path.
    """

    u: Tensor
    log_z: Tensor
    acceptance: float
    disagreement: Tensor
    temperatures: int

    def mixed(self) -> Tensor:
        """Whether each observation's disagreement is below ``0.01 + 10/n``, with n chains per population ``(S,)``."""
        per_population = self.u.shape[1] // POPULATIONS
        return self.disagreement < 0.01 + 10 / per_population


class Tempered(nn.Module):
    """``½‖u‖² + β f(u, x)`` in the coordinates v of chains, ``u = center + root·v``.

    Args:
        energy: The posterior's energy.
        condition: Features of the data of each row ``(R, T, p)``.
        beta: β of each row ``(R,)``.
        center: For each observation ``(S, d)``; rows of one observation follow each other.
        root: For each observation ``(S, d, d)``.
    """

    condition: Tensor
    beta: Tensor
    center: Tensor
    root: Tensor

    def __init__(self, energy: PosteriorTilt, condition: Tensor, beta: Tensor, center: Tensor, root: Tensor) -> None:
        super().__init__()
        self.energy = energy
        for name, value in (("condition", condition), ("beta", beta), ("center", center), ("root", root)):
            self.register_buffer(name, value, persistent=False)

    def place(self, v: Tensor) -> Tensor:
        """u ``(R, d)`` of v ``(R, d)``."""
        return (self.center[:, None] + self._grouped(v) @ self.root.mT).flatten(0, 1)

    def coordinates(self, u: Tensor) -> Tensor:
        """v ``(R, d)`` of u ``(R, d)``."""
        centered = self._grouped(u) - self.center[:, None]
        v: Tensor = torch.linalg.solve_triangular(self.root, centered.mT, upper=False)
        return v.mT.flatten(0, 1)

    def forward(self, v: Tensor) -> Tensor:
        """Energies ``(R,)`` of v ``(R, d)``."""
        u = self.place(v)
        return 0.5 * u.square().sum(1) + self.beta * self.energy.tilt(u, self.condition)

    def _grouped(self, rows: Tensor) -> Tensor:
        return rows.view(len(self.center), -1, rows.shape[1])


@torch.no_grad()
def sample_posteriors(
    energy: PosteriorTilt,
    condition: Tensor,
    n: int,
    *,
    parameters: int,
    steps: int = 20,
    leapfrog_steps: int = 8,
    generator: torch.Generator | None = None,
    compile: bool = False,
) -> PosteriorChains:
    """Sample the posteriors of S observations.

    Args:
        energy: The energy, frozen.
        condition: Features of the data ``(S, T, p)``, of T trials each.
        n: Samples for each observation, rounded up to a multiple of four and to at least 256.
        parameters: Number of parameters d.
        steps: Trajectories at the end.
        leapfrog_steps: Gradients of each.
        generator: Source of randomness.
        compile: Compile the last trajectories.
    """
    each = max(SMALLEST_POPULATION, math.ceil(n / POPULATIONS))
    populations = len(condition) * POPULATIONS
    drawn = OVERSAMPLING * each  # for each population at first, of which as many are kept as there are chains
    u = torch.randn(populations * drawn, parameters, generator=generator)
    beta, log_z = torch.zeros(populations), torch.zeros(populations, dtype=torch.float64)
    step_size, temperatures = None, 0
    while bool((beta < 1).any()):
        rows = condition.repeat_interleave(len(u) // len(condition), 0)
        f = energy.tilt(u, rows).view(populations, -1).double()
        change = _next_change(f, beta, EFFECTIVE_SHARE * each / f.shape[1])
        log_weights = -change[:, None] * f
        log_z += log_weights.logsumexp(1) - math.log(f.shape[1])
        u = u[_resample(log_weights, each, generator)]
        rows = condition.repeat_interleave(len(u) // len(condition), 0)
        beta = torch.where(beta + change >= 1, 1.0, beta + change).float()
        temperatures += 1
        if bool((beta < 1).any()):
            kernel = HMC(MOVES, STEP_SIZE, max(1, leapfrog_steps // 2), adaptation=ADAPTATION)
            u, step_size, _ = _move(energy, u, rows, beta, kernel, step_size, MOVES, generator)
    kernel = HMC(steps, STEP_SIZE, leapfrog_steps, adaptation=ADAPTATION)
    u, _, acceptance = _move(energy, u, rows, beta, kernel, step_size, steps // 2, generator, compile)
    u = u.view(populations, each, parameters)
    grouped = log_z.view(-1, POPULATIONS).logsumexp(1) - math.log(POPULATIONS)
    return PosteriorChains(u.view(len(condition), -1, parameters), grouped, acceptance, _disagreement(u), temperatures)


def _move(
    energy: PosteriorTilt,
    u: Tensor,
    rows: Tensor,
    beta: Tensor,
    kernel: HMC,
    step_size: Tensor | None,
    adapt: int,
    generator: torch.Generator | None,
    compile: bool = False,
) -> tuple[Tensor, Tensor, float]:
    """Run the kernel in coordinates in which each observation's chains have covariance 1.

    Returns u, the step size of each observation's chains, and the mean acceptance in the second half of the steps.
    """
    observations = len(beta) // POPULATIONS
    grouped = u.view(observations, -1, u.shape[1])
    center, root = grouped.mean(1), _root(grouped)
    tempered = Tempered(energy, rows, beta.repeat_interleave(len(u) // len(beta)), center, root)
    if step_size is None:
        step_size = u.new_full((observations,), kernel.step_size)
    chains = run_chains(
        kernel,
        tempered,
        tempered.coordinates(u),
        generator=generator,
        adapt=adapt,
        step_size=step_size.repeat_interleave(len(u) // observations),
        compile=compile,
    )
    assert chains.step_size is not None
    step_size = chains.step_size.log().view(observations, -1).mean(1).exp()
    return tempered.place(chains.x), step_size, float(chains.acceptance[kernel.steps // 2 :].mean())


def _root(u: Tensor) -> Tensor:
    """The Cholesky factor ``(S, d, d)`` of each covariance of u ``(S, N, d)``."""
    centered = u - u.mean(1, keepdim=True)
    covariance = centered.mT @ centered / u.shape[1]
    mean = covariance.diagonal(dim1=1, dim2=2).mean(1)
    ridge = (RIDGE * mean).clamp(min=1e-10)
    root: Tensor = torch.linalg.cholesky(covariance + ridge[:, None, None] * torch.eye(u.shape[2]))
    return root


def _next_change(f: Tensor, beta: Tensor, share: float) -> Tensor:
    """For each population the change of β ``(G,)`` that leaves an effective ``share``, from f ``(G, n)``."""
    rest = (1 - beta).double()
    low, high = torch.zeros_like(rest), rest.clone()
    for _ in range(HALVINGS):
        middle = torch.where(_share(rest, f) >= share, rest, (low + high) / 2)
        enough = _share(middle, f) >= share
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    return torch.maximum(low, torch.minimum(rest, torch.full_like(rest, 1e-6)))


def _share(change: Tensor, f: Tensor) -> Tensor:
    log_weights = -change[:, None] * f
    return (2 * log_weights.logsumexp(1) - (2 * log_weights).logsumexp(1)).exp() / f.shape[1]


def _resample(log_weights: Tensor, n: int, generator: torch.Generator | None) -> Tensor:
    """Row numbers ``(G·n,)``: systematic resampling of n in each population, from log-weights ``(G, m)``."""
    populations, m = log_weights.shape
    offset = torch.rand(populations, 1, generator=generator)
    places = (torch.arange(n) + offset.double()) / n
    kept = torch.searchsorted(log_weights.softmax(1).cumsum(1), places).clamp(max=m - 1)
    return (kept + m * torch.arange(populations)[:, None]).flatten()


def _disagreement(u: Tensor) -> Tensor:
    """The largest ratio of the variance between populations to that inside them ``(S,)``, from u ``(G, n, d)``."""
    means, inside = u.mean(1), u.var(1)
    between = means.view(-1, POPULATIONS, u.shape[2]).var(1)
    ratio = between / inside.view(-1, POPULATIONS, u.shape[2]).mean(1).clamp(min=1e-30)
    return ratio.amax(1)
