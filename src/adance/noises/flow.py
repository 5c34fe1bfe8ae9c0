"""Noise from a normalizing flow (zuko), fixed or trained against the model."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from adance.errors import InputError
from adance.noises.noise import Noise, NoiseRecipe, NoiseSample
from adance.noises.standardized import Standardizer, randn, standard_normal_log_prob
from adance.randomness import weights_drawn_from

BATCH = 256


class Flow(NoiseRecipe):
    """A coupling flow on standardized, flattened events, first fitted to the data by maximum likelihood.

    A fixed flow is a noise for NCE that covers the data closely. An adversarial one is the noise of flow contrastive
    estimation (thesis 3.4): samples are f_φ(z) with their graph, so that the gradient in φ flows through them and
    through log p_φ on data and noise alike.

    Args:
        kind: ``spline`` (rational-quadratic, on five standard deviations around the mean) or ``affine``.
        transforms: Coupling transforms in a row, at least 1.
        hidden: Widths of the hidden layers of each.
        fit_steps: Steps of Adam on the likelihood, with batches of 256.
        fit_lr: Learning rate of those steps, above 0.
        adversarial: Train the flow against the model.

    Raises:
        InputError: ``kind`` is unknown, ``transforms`` below 1, ``fit_steps`` below 0, or ``fit_lr`` not above 0.
    """

    def __init__(
        self,
        kind: Literal["spline", "affine"] = "spline",
        transforms: int = 4,
        hidden: Sequence[int] = (64, 64),
        fit_steps: int = 500,
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

    def build(self, data: Tensor, generator: torch.Generator | None = None) -> "FlowNoise":
        """The flow fitted to data ``(N, *event)``."""
        make = _flows()[self.kind]
        with weights_drawn_from(generator):
            flow = make(data[0].numel(), transforms=self.transforms, hidden_features=self.hidden, passes=2)
        noise = FlowNoise(flow.transform.to(data), Standardizer(data))
        optimizer = torch.optim.Adam(noise.flow.parameters(), self.fit_lr)
        for _ in range(self.fit_steps):
            rows = torch.randint(len(data), (BATCH,), generator=generator, device=data.device)
            optimizer.zero_grad()
            torch.autograd.backward(noise.energy(data[rows]).mean())
            optimizer.step()
        optimizer.zero_grad()
        noise.flow.requires_grad_(self.adversarial)
        return noise


class FlowNoise(Noise):
    """Noise from a normalizing flow.

    Args:
        flow: A lazy zuko transform from standardized events to normal ones, called without arguments.
        standard: The standardization of events.
    """

    def __init__(self, flow: nn.Module, standard: Standardizer) -> None:
        super().__init__()
        self.standard, self.flow = standard, flow

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        """``n`` independent samples ``(n, *event)``, with their graph if the flow is trained."""
        z = randn(n, data[0].numel(), data, generator)
        return NoiseSample(self.standard.back(self.flow().inv(z)))

    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        """``−log p_φ(x)`` ``(M,)``."""
        z, log_slope = self.flow().call_and_ladj(self.standard(x))
        energies: Tensor = self.standard.log_volume() - standard_normal_log_prob(z) - log_slope
        return energies


def _flows() -> dict[str, Any]:
    """zuko's flows by name; restores the argument checks of torch's distributions, which importing zuko turns off."""
    checks = Distribution._validate_args
    from zuko.flows import MAF, NSF

    Distribution._validate_args = checks
    return {"spline": NSF, "affine": MAF}
