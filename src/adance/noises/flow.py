"""Noise from a normalizing flow (zuko), fixed or trained against the model."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from adance.errors import InputError
from adance.noises.noise import Noise
from adance.noises.standardized import Standardizer, randn, standard_normal_log_prob
from adance.randomness import weights_drawn_from

BATCH = 256


class Flow(Noise):
    """A coupling flow on standardised, flattened events, first fitted to the data by maximum likelihood.

    Fixed, it is a noise for NCE that covers the data closely. Adversarial, it is flow contrastive estimation's (thesis
    3.4): draws are f_φ(z) with their graph, so that the loss's gradient in φ flows through them and through log p_φ
    on data and noise alike.

    Args:
        kind: ``spline`` (rational-quadratic, on five standard deviations around the mean) or ``affine``.
        transforms: Coupling transforms in a row.
        hidden: Widths of the hidden layers of each.
        fit_steps: Steps of Adam on the likelihood of ``prepare``'s data, batches of 256.
        fit_lr: Their learning rate.
        adversarial: Train it against the model.

    Raises:
        InputError: A number is out of range.
    """

    temperature = 1.0
    normalized = True

    def __init__(
        self,
        kind: Literal["spline", "affine"] = "spline",
        transforms: int = 4,
        hidden: Sequence[int] = (64, 64),
        fit_steps: int = 500,
        fit_lr: float = 2e-3,
        adversarial: bool = False,
    ) -> None:
        super().__init__()
        if kind not in ("spline", "affine"):
            raise InputError(f"unknown kind of flow {kind!r}; spline or affine")
        if not (transforms >= 1 and fit_steps >= 0 and fit_lr > 0):
            raise InputError(
                f"a flow needs transforms ≥ 1, fit_steps ≥ 0 and fit_lr > 0, got {transforms}, {fit_steps}, {fit_lr}"
            )
        self.kind, self.transforms, self.hidden = kind, transforms, tuple(hidden)
        self.fit_steps, self.fit_lr, self.adversarial = fit_steps, fit_lr, adversarial
        self.standard: Standardizer | None = None
        self.flow: nn.Module | None = None

    def prepare(self, energy: nn.Module, data: Tensor, batch: int, generator: torch.Generator | None) -> None:
        """Make the flow and fit it to the data ``(N, *event)``."""
        self.standard = Standardizer(data)
        make = _flows()[self.kind]
        with weights_drawn_from(generator):
            flow = make(data[0].numel(), transforms=self.transforms, hidden_features=self.hidden, passes=2)
        self.flow = flow.transform.to(data)
        optimizer = torch.optim.Adam(self.flow.parameters(), self.fit_lr)
        for _ in range(self.fit_steps):
            rows = torch.randint(len(data), (BATCH,), generator=generator, device=data.device)
            optimizer.zero_grad()
            torch.autograd.backward(self.energy(data[rows], data).mean())
            optimizer.step()
        optimizer.zero_grad()
        self.flow.requires_grad_(self.adversarial)

    def draw(self, n: int, data: Tensor, generator: torch.Generator | None) -> Tensor:
        """``n`` independent draws ``(n, *event)``, with their graph when adversarial."""
        assert self.standard is not None, "prepare() first"
        z = randn(n, data[0].numel(), data, generator)
        return self.standard.back(self._transform().inv(z))

    def energy(self, x: Tensor, model_energy: Tensor) -> Tensor:
        """``−log p_φ(x)`` ``(B,)``."""
        assert self.standard is not None, "prepare() first"
        z, log_slope = self._transform().call_and_ladj(self.standard(x))
        energies: Tensor = self.standard.log_volume() - standard_normal_log_prob(z) - log_slope
        return energies

    def _transform(self) -> Any:
        assert self.flow is not None, "prepare() first"
        return self.flow()


def _flows() -> dict[str, Any]:
    """zuko's flows by name; importing zuko turns off the checks of all of torch's distributions: turn them on again."""
    checks = Distribution._validate_args
    from zuko.flows import MAF, NSF

    Distribution._validate_args = checks
    return {"spline": NSF, "affine": MAF}
