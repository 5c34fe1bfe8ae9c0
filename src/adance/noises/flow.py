"""Noise from a normalizing flow (zuko), fixed or trained against the model."""

import copy
import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from adance.configurable import build, describe
from adance.energies.analytic import Density, ExactDensity
from adance.errors import InputError
from adance.noises.fixed import DensityNoise, FixedNoise
from adance.noises.noise import Noise, NoiseSample
from adance.noises.standardized import Standardizer, randn, standard_normal_log_prob
from adance.randomness import weights_drawn_from

BATCH = 256
HELD_OUT = 0.1
"""Share of the rows that decide when to stop."""

MIN_HELD_OUT, MAX_HELD_OUT = 20, 2000
CHECK_EVERY = 50
"""Steps between two looks at the held-out rows."""

PATIENCE = 10
"""Looks without an improvement after which the fit stops."""


class Flow(DensityNoise):
    """An autoregressive flow on standardized, flattened events, first fitted to the data by maximum likelihood.

    It starts as the normal distribution with the data's mean and standard deviation in each axis. A tenth of the rows
    is held out: the fit ends at the weights that are best on them, so a flow is no worse there than where it started.

    A fixed flow is a noise for NCE that covers the data closely. An adversarial one is the noise of flow contrastive
    estimation (thesis 3.4): samples are f_φ(z) with their graph, so that the gradient in φ flows through them and
    through log p_φ on data and noise alike.

    Args:
        kind: ``spline`` (rational-quadratic, on five standard deviations around the mean) or ``affine``.
        transforms: Coupling transforms in a row, at least 1.
        hidden: Widths of the hidden layers of each.
        fit_steps: Largest number of steps of Adam on the likelihood, with batches of 256.
        fit_lr: Learning rate of those steps at first, above 0; it falls to 0.
        adversarial: Train the flow against the model.

    Raises:
        InputError: ``kind`` is unknown, ``transforms`` below 1, ``fit_steps`` below 0, or ``fit_lr`` not above 0.
    """

    def __init__(
        self,
        kind: Literal["spline", "affine"] = "spline",
        transforms: int = 4,
        hidden: Sequence[int] = (64, 64),
        fit_steps: int = 1000,
        fit_lr: float = 2e-3,
        adversarial: bool = False,
    ) -> None:
        if kind not in ("spline", "affine"):
            raise InputError(f"unknown kind of flow {kind!r}: use spline or affine")
        if not (transforms >= 1 and fit_steps >= 0 and fit_lr > 0):
            raise InputError(
                f"a flow needs transforms ≥ 1, fit_steps ≥ 0 and fit_lr > 0, got {transforms=}, {fit_steps=}, {fit_lr=}"
            )
        self.kind, self.transforms, self.hidden = kind, transforms, tuple(hidden)
        self.fit_steps, self.fit_lr, self.adversarial = fit_steps, fit_lr, adversarial
        self.trained = adversarial

    def fit(self, data: Tensor, generator: torch.Generator | None = None) -> "FlowDensity":
        """The flow fitted to data ``(N, *event)``."""
        make = _flows()[self.kind]
        with weights_drawn_from(generator):
            flow = make(data[0].numel(), transforms=self.transforms, hidden_features=self.hidden, passes=2)
        _start_at_identity(flow)
        density = FlowDensity(flow.transform.to(data), Standardizer(data), data[0])
        self._train(density, data, generator)
        density.requires_grad_(False)
        return density

    def blank(self, event_shape: tuple[int, ...]) -> Density:
        """A flow that is not fitted."""
        described = describe(self)
        described["init_args"]["fit_steps"] = 0
        return build(described, Flow).fit(torch.eye(2, math.prod(event_shape)).view(2, *event_shape))

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> Noise:
        """The noise fitted to data ``(N, *event)``."""
        density = self.fit(data, generator)
        return FlowNoise(density.requires_grad_()) if self.adversarial else FixedNoise(density)

    def _train(self, density: "FlowDensity", data: Tensor, generator: torch.Generator | None) -> None:
        """Maximize the likelihood, and end at the weights that are best on held-out rows."""
        if self.fit_steps == 0:
            return
        train, test = _split(data, generator)
        best = start = _Look(density, test)
        optimizer = torch.optim.Adam(density.parameters(), self.fit_lr)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.fit_steps)
        for step in range(1, self.fit_steps + 1):
            rows = torch.randint(len(train), (BATCH,), generator=generator, device=data.device)
            optimizer.zero_grad()
            torch.autograd.backward(density(train[rows]).mean())
            optimizer.step()
            falling.step()
            if step % CHECK_EVERY == 0 or step == self.fit_steps:
                look = _Look(density, test, step)
                best = look if look.mean < best.mean else best
                if step - best.step >= PATIENCE * CHECK_EVERY:
                    break
        optimizer.zero_grad()
        density.load_state_dict(best.weights if best.is_better_than(start) else start.weights)


class _Look:
    """The weights of a density after ``step`` steps, and its energies ``(M,)`` of held-out rows."""

    def __init__(self, density: "FlowDensity", test: Tensor, step: int = 0) -> None:
        self.step, self.weights = step, copy.deepcopy(density.state_dict())
        with torch.no_grad():
            self.energies = density(test)
        self.mean = float(self.energies.mean())

    def is_better_than(self, other: "_Look") -> bool:
        """Whether the mean energy is lower by more than two standard errors."""
        gain = other.energies - self.energies
        return bool(gain.mean() > 2 * gain.std() / len(gain) ** 0.5)


def _split(data: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """Rows to train on and held-out rows; with fewer than 40 rows, all of them for both."""
    if len(data) < 2 * MIN_HELD_OUT:
        return data, data
    order = torch.randperm(len(data), generator=generator, device=data.device)
    held = min(max(MIN_HELD_OUT, int(HELD_OUT * len(data))), MAX_HELD_OUT)
    return data[order[held:]], data[order[:held]]


class FlowDensity(ExactDensity):
    """The density of a normalizing flow.

    Args:
        flow: A lazy zuko transform from standardized events to normal ones, called without arguments.
        standard: The standardization of events.
        like: An event.
    """

    def __init__(self, flow: nn.Module, standard: Standardizer, like: Tensor) -> None:
        super().__init__(like)
        self.standard, self.flow = standard, flow

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent samples ``(n, *event)``, with their graph if the flow is trained."""
        z = randn(n, self.origin.numel(), self.origin, generator)
        return self.standard.back(self.flow().inv(z))

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-densities ``(B,)`` of ``x`` ``(B, *event)``."""
        z, log_slope = self.flow().call_and_ladj(self.standard(x))
        values: Tensor = standard_normal_log_prob(z) + log_slope - self.standard.log_volume()
        return values


class FlowNoise(Noise):
    """Noise from a normalizing flow that is trained against the model.

    Args:
        density: The flow.
    """

    def __init__(self, density: FlowDensity) -> None:
        super().__init__()
        self.density = density

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        """``n`` independent samples ``(n, *event)``, with their graph."""
        return NoiseSample(self.density.sample(n, generator))

    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """``−log p_φ(x)`` ``(M,)``."""
        return -self.density.log_prob(x)


def _start_at_identity(flow: nn.Module) -> None:
    """Set what determines each transform to 0, at which zuko's splines and affine transforms are the identity."""
    for transform in flow.transform.transforms:  # type: ignore[union-attr]
        # in one dimension there is no network
        determines = list(transform.hyper.modules())[-1] if hasattr(transform, "hyper") else transform
        for parameter in determines.parameters():
            nn.init.zeros_(parameter)


def _flows() -> dict[str, Any]:
    """zuko's flows by name; restores the argument checks of torch's distributions, which importing zuko turns off."""
    checks = Distribution._validate_args
    from zuko.flows import MAF, NSF

    Distribution._validate_args = checks
    return {"spline": NSF, "affine": MAF}
