"""The ten simulators of the benchmark of simulation-based inference (Lueckmann et al. 2021), in torch.

Each task is a prior and a function from θ ``(N, d)`` to data ``(N, p)``. Observations, reference samples and the fixed
arrays of two tasks are read from the folder ``sbibm/tasks`` of the wheel ``sbibm``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor
from torch.distributions import Distribution, Independent, LogNormal, MultivariateNormal, Uniform

Simulator = Callable[[Tensor, torch.Generator], Tensor]

NAMES = (
    "two_moons",
    "gaussian_linear",
    "gaussian_linear_uniform",
    "gaussian_mixture",
    "slcp",
    "bernoulli_glm",
    "sir",
    "lotka_volterra",
    "bernoulli_glm_raw",
    "slcp_distractors",
)


@dataclass(frozen=True, eq=False)
class Task:
    """A prior, a simulator, and where its observations are."""

    name: str
    prior: Distribution
    simulate: Simulator
    folder: Path

    def observation(self, number: int) -> tuple[Tensor, Tensor]:
        """The data ``(p,)`` of observation 1 to 10, and 10,000 samples of its posterior."""
        folder = self.folder / "files" / f"num_observation_{number}"
        suffix = {"slcp_distractors": "_distractors", "bernoulli_glm_raw": "_raw"}.get(self.name, "")
        x = np.loadtxt(folder / f"observation{suffix}.csv", delimiter=",", skiprows=1)
        reference = np.loadtxt(folder / "reference_posterior_samples.csv.bz2", delimiter=",", skiprows=1)
        return torch.tensor(x, dtype=torch.float32), torch.tensor(reference, dtype=torch.float32)


def task(name: str, root: Path) -> Task:
    """The task called ``name``, with its files under ``root``."""
    folder = root / {"slcp_distractors": "slcp", "bernoulli_glm_raw": "bernoulli_glm"}.get(name, name)
    prior, simulate = {
        "two_moons": lambda: (box(2, 1.0), two_moons),
        "gaussian_linear": lambda: (MultivariateNormal(torch.zeros(10), 0.1 * torch.eye(10)), gaussian_linear),
        "gaussian_linear_uniform": lambda: (box(10, 1.0), gaussian_linear),
        "gaussian_mixture": lambda: (box(2, 10.0), gaussian_mixture),
        "slcp": lambda: (box(5, 3.0), slcp),
        "slcp_distractors": lambda: (box(5, 3.0), distractors(folder / "files")),
        "bernoulli_glm": lambda: (glm_prior(), bernoulli_glm(folder / "files", raw=False)),
        "bernoulli_glm_raw": lambda: (glm_prior(), bernoulli_glm(folder / "files", raw=True)),
        "sir": lambda: (log_normal([math.log(0.4), math.log(0.125)], [0.5, 0.2]), sir),
        "lotka_volterra": lambda: (log_normal([-0.125, -3.0, -0.125, -3.0], [0.5] * 4), lotka_volterra),
    }[name]()
    return Task(name, prior, simulate, folder)


def box(size: int, half: float) -> Distribution:
    return Independent(Uniform(torch.full((size,), -half), torch.full((size,), half)), 1)


def log_normal(mean: list[float], std: list[float]) -> Distribution:
    return Independent(LogNormal(torch.tensor(mean), torch.tensor(std)), 1)


def normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator)


def two_moons(theta: Tensor, generator: torch.Generator) -> Tensor:
    angle = math.pi * (torch.rand(len(theta), generator=generator) - 0.5)
    radius = 0.1 + 0.01 * normal((len(theta),), generator)
    across, along = theta.sum(1) / math.sqrt(2), (theta[:, 1] - theta[:, 0]) / math.sqrt(2)
    return torch.stack([radius * angle.cos() + 0.25 - across.abs(), radius * angle.sin() + along], 1)


def gaussian_linear(theta: Tensor, generator: torch.Generator) -> Tensor:
    return theta + math.sqrt(0.1) * normal(theta.shape, generator)


def gaussian_mixture(theta: Tensor, generator: torch.Generator) -> Tensor:
    narrow = torch.rand(len(theta), 1, generator=generator) < 0.5
    return theta + torch.where(narrow, 0.1, 1.0) * normal(theta.shape, generator)


def slcp(theta: Tensor, generator: torch.Generator) -> Tensor:
    """Four points of a normal distribution with means θ₁, θ₂, standard deviations θ₃², θ₄² and correlation tanh θ₅."""
    first, second = theta[:, 2:4].square().T
    rho = theta[:, 4].tanh()
    covariance = torch.stack([first**2, rho * first * second, rho * first * second, second**2], 1).view(-1, 2, 2)
    root = torch.linalg.cholesky(covariance + 1e-6 * torch.eye(2))
    points = theta[:, None, :2] + normal((len(theta), 4, 2), generator) @ root.mT
    return points.flatten(1)


def distractors(files: Path) -> Simulator:
    """The data of slcp among 92 columns of noise from a mixture of Student's distributions, in a fixed order."""
    parts = student_mixture(files / "gmm.torch")
    order = read_tensor(files / "permutation_idx.torch")

    def simulate(theta: Tensor, generator: torch.Generator) -> Tensor:
        weights, freedom, mean, root = parts
        chosen = torch.multinomial(weights, len(theta), replacement=True, generator=generator)
        chi = torch._standard_gamma((freedom[chosen] / 2).double(), generator=generator) * 2
        scale = (freedom[chosen] / chi).sqrt().float()
        noise = mean[chosen] + scale[:, None] * torch.einsum(
            "nij,nj->ni", root[chosen], normal((len(theta), mean.shape[1]), generator)
        )
        return torch.cat([slcp(theta, generator), noise], 1)[:, order.long()]

    return simulate


def student_mixture(path: Path) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights ``(k,)``, degrees of freedom ``(k,)``, means ``(k, m)`` and roots ``(k, m, m)`` of a pyro object.

    Its classes are stood in for by empty ones, so that pyro is not needed and nothing is unpickled but tensors.
    """
    names = ("torch.MixtureSameFamily", "torch.Categorical", "torch.Independent", "torch.Chi2")
    known = [f"pyro.distributions.{name}" for name in (*names, "multivariate_studentt.MultivariateStudentT")]
    with torch.serialization.safe_globals([(type("Held", (), {}), name) for name in known]):
        mixture = torch.load(path, weights_only=True)
    distribution = mixture._component_distribution.base_dist
    parts = (
        mixture._mixture_distribution.probs,
        distribution.df,
        distribution.loc,
        distribution._unbroadcasted_scale_tril,
    )
    return tuple(part.float() for part in parts)


def read_tensor(path: Path) -> Tensor:
    return torch.load(path, weights_only=True)


def glm_prior() -> Distribution:
    """A smooth filter of nine coefficients, and an offset."""
    size = 9
    difference = torch.eye(size) - torch.diag(torch.ones(size - 1), -1)
    root = difference @ difference + torch.diag(torch.arange(size) / size).sqrt()
    precision = torch.zeros(size + 1, size + 1)
    precision[0, 0] = 0.5
    precision[1:, 1:] = root.T @ root
    return MultivariateNormal(torch.zeros(size + 1), precision_matrix=precision)


def bernoulli_glm(files: Path, raw: bool) -> Simulator:
    """100 spikes or none, as they are or as their number and their correlation with the stimulus at nine lags."""
    design, stimulus = read_tensor(files / "design_matrix.pt"), read_tensor(files / "stimulus_I.pt")

    def simulate(theta: Tensor, generator: torch.Generator) -> Tensor:
        spikes = (torch.rand(len(theta), len(design), generator=generator) < (theta @ design.T).sigmoid()).float()
        if raw:
            return spikes
        lags = torch.nn.functional.conv1d(spikes[:, None], stimulus.view(1, 1, -1), padding=8)[:, 0, -9:]
        return torch.cat([spikes.sum(1, keepdim=True), lags], 1)

    return simulate


def sir(theta: Tensor, generator: torch.Generator) -> Tensor:
    """The infected among 1,000 tested people, on ten days of an epidemic."""
    people, days = 1e6, np.arange(0, 161, 17.0)

    def slope(_: float, state: np.ndarray) -> np.ndarray:
        s, i, _r = state.reshape(3, -1)
        new, over = beta * s * i / people, gamma * i
        return np.concatenate([-new, new - over, over])

    beta, gamma = theta.double().numpy().T
    start = np.repeat([people - 1, 1.0, 0.0], len(theta))
    found = solve_ivp(slope, (0, 160), start, t_eval=days, rtol=1e-6, atol=1e-3)
    infected = torch.tensor(found.y.reshape(3, len(theta), -1)[1] / people).clamp(0, 1)
    return torch.binomial(torch.full_like(infected, 1000.0), infected, generator=generator).float()


def lotka_volterra(theta: Tensor, generator: torch.Generator) -> Tensor:
    """Predators and prey at ten times, with log-normal errors."""
    times = np.arange(0, 20.1, 2.1)

    def slope(_: float, state: np.ndarray) -> np.ndarray:
        x, y = state.reshape(2, -1)
        return np.concatenate([a * x - b * x * y, -c * y + d * x * y])

    parts = []
    for part in torch.split(theta.double(), 500):  # one step size for all, so a stiff row slows only its part
        a, b, c, d = part.numpy().T
        start = np.repeat([30.0, 1.0], len(part))
        found = solve_ivp(slope, (0, 20), start, t_eval=times, rtol=1e-6, atol=1e-6)
        parts.append(torch.tensor(found.y.reshape(2, len(part), -1)).transpose(0, 1).flatten(1))
    sizes = torch.cat(parts).clamp(1e-10, 1e4)
    return (sizes.log().float() + 0.1 * normal(tuple(sizes.shape), generator)).exp()
