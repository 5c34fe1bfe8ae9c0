"""Implicit score matching (thesis 2.2.3.2): exact, with Hutchinson's trace, sliced, and by finite differences."""

from typing import Literal

import torch
from torch import Tensor, nn

from adance.energies.conditional import given
from adance.energies.energy import check_events, evaluate
from adance.energies.spectral import power_iteration_held
from adance.errors import InputError
from adance.objectives.objective import LossOutput, Objective, Site
from adance.objectives.scores import energies_and_score, score_output, second_derivatives
from adance.objectives.smoothness import refuse_piecewise_linear

Kind = Literal["exact", "hutchinson", "sliced", "sliced_vr", "finite_difference"]
Directions = Literal["rademacher", "gaussian"]
KINDS = ("exact", "hutchinson", "sliced", "sliced_vr", "finite_difference")


class ScoreMatching(Objective):
    """Implicit score matching (Hyvärinen 2005; thesis 2.8), without chains and without noise.

    The loss is the mean over a batch x ``(B, *event)`` of ``½‖s(x)‖² + Tr ∇s(x)``, s = ∇log p = −∇E ``(B, *event)`` at
    T = 1: the Fisher divergence to the data up to a constant. With M random directions v ``(M, B, *event)``,
    E[vvᵀ] = I:

    - ``exact``: the trace by d Hessian-vector products, d the number of axes of an event of any shape.
    - ``hutchinson``: ``½‖s‖² + vᵀ∇s v``. No variance from v where the Hessian is diagonal and v is Rademacher.
    - ``sliced`` (Song et al. 2019; thesis 2.9): ``½(vᵀs)² + vᵀ∇s v``. The same in expectation, with more variance.
    - ``sliced_vr``: the variance-reduced sliced form, the same as ``hutchinson``.
    - ``finite_difference`` (Pang et al. 2020): the sliced form by differences of energies at x ± εv, without any
      derivative in x: ``½((E₊ − E₋)/2ε)² − (E₊ + E₋ − 2E₀)/ε²``. Its error falls like ε², but rounding adds some
      ``1e-7·|E|/ε²`` in float32.

    Estimates the density up to its constant, at T = 1. The score hardly depends on the relative weights of modes that
    are far apart, so the model gets these weights wrong. It learns no log Z.

    Choose it for smooth energies on continuous data: ``exact`` for few axes, ``hutchinson`` for many,
    ``finite_difference`` if second derivatives are expensive. A batch costs 1 + d, 1 + M and 1 + M gradients, or 1 + 2M
    energies. For discrete data and data on a boundary use ``DenoisingScoreMatching`` instead.

    Args:
        kind: Form of the loss: ``exact``, ``hutchinson``, ``sliced``, ``sliced_vr`` or ``finite_difference``.
        projections: M, number of random directions for each row.
        directions: Distribution of the directions: ``rademacher`` (±1) or ``gaussian``.
        step: ε of ``finite_difference``, in model units.
        chunk: Number of Hessian-vector products computed at once, which bounds the memory.

    Raises:
        InputError: ``kind`` or ``directions`` is unknown, ``projections`` or ``chunk`` below 1, or ``step`` not above
            0; on the first batch, if the energy has piecewise-linear parts.
    """

    def __init__(
        self,
        kind: Kind = "hutchinson",
        projections: int = 1,
        directions: Directions = "rademacher",
        step: float = 0.01,
        chunk: int = 32,
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise InputError(f"unknown kind of score matching {kind!r}: use one of {', '.join(KINDS)}")
        if directions not in ("rademacher", "gaussian"):
            raise InputError(f"unknown directions {directions!r}: use rademacher or gaussian")
        if not (projections >= 1 and step > 0 and chunk >= 1):
            raise InputError(
                f"ScoreMatching needs projections ≥ 1, step > 0 and chunk ≥ 1, got {projections=}, {step=}, {chunk=}"
            )
        self.kind, self.projections, self.directions = kind, projections, directions
        self.step, self.chunk = step, chunk
        self._checked = False

    def build_for(self, site: Site) -> "ScoreMatching":
        """The objective itself; checks that the energy has second derivatives."""
        self._check(given(site.energy, site.condition), site.data)
        return self

    def _check(self, energy: nn.Module, x: Tensor) -> None:
        refuse_piecewise_linear(energy, x[:2], f"{self.kind} score matching")
        self._checked = True

    def loss(
        self,
        energy: nn.Module,
        x: Tensor,
        generator: torch.Generator | None = None,
        condition: Tensor | None = None,
    ) -> LossOutput:
        """The loss of a batch ``x`` ``(B, *event)``."""
        check_events(x)
        energy = given(energy, condition)
        if not self._checked:
            self._check(energy, x)
        with torch.enable_grad(), power_iteration_held(energy):
            if self.kind == "finite_difference":
                energies, squares, traces = self._by_differences(energy, x, generator)
            else:
                energies, squares, traces = self._by_derivatives(energy, x, generator)
            return score_output((0.5 * squares + traces).mean(), energies, squares)

    def _by_derivatives(
        self, energy: nn.Module, x: Tensor, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Energies, ``‖s‖²`` or its sliced form, and the trace of ∇s, each ``(B,)``."""
        leaf, energies, score = energies_and_score(energy, x)
        squares = score.flatten(1).square().sum(1)
        if self.kind == "exact":
            axes = torch.eye(x[0].numel(), dtype=x.dtype, device=x.device).view(-1, 1, *x.shape[1:])
            return energies, squares, second_derivatives(score, leaf, axes, self.chunk).sum(0)
        v = self._draw(x, generator)
        if self.kind == "sliced":
            squares = (v * score).flatten(2).sum(2).square().mean(0)
        return energies, squares, second_derivatives(score, leaf, v, self.chunk).mean(0)

    def _by_differences(
        self, energy: nn.Module, x: Tensor, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same from energies only, in one forward pass."""
        offsets = self.step * self._draw(x, generator)
        places = torch.cat([x[None], x + offsets, x - offsets]).flatten(0, 1)
        values = evaluate(energy, places).view(-1, len(x))
        energies, ahead, behind = values[0], values[1 : 1 + len(offsets)], values[1 + len(offsets) :]
        squares = ((ahead - behind) / (2 * self.step)).square().mean(0)
        traces = -((ahead - energies) + (behind - energies)).mean(0) / self.step**2
        return energies, squares, traces

    def _draw(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Directions ``(M, B, *event)`` with E[vvᵀ] = I."""
        shape = (self.projections, *x.shape)
        if self.directions == "gaussian":
            return torch.randn(shape, generator=generator, dtype=x.dtype, device=x.device)
        return 2 * torch.randint(2, shape, generator=generator, device=x.device).to(x.dtype) - 1
