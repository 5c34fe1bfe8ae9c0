"""Step sizes that adapt in warm-up."""

from torch import Tensor


def initial_step(step_size: float, given: Tensor | None, x: Tensor) -> tuple[Tensor, Tensor]:
    """The first step size and its number of updates; a step size that is given counts as adapted by 60 updates."""
    if given is None:
        return x.new_tensor(step_size), x.new_tensor(0)
    return given, x.new_tensor(60)


def robbins_monro(
    step_size: Tensor, updates: Tensor, probability: Tensor, target: float, gain: float
) -> tuple[Tensor, Tensor]:
    """Robbins–Monro on the logarithm: ``log h ← log h + gain·max(1, n/20)^(−0.6)·(acceptance − target)`` at update n.

    The first twenty updates search at full gain; after them the gains' sum still diverges and that of their squares
    does not, so that h settles (Andrieu and Thoms 2008, section 4).

    Args:
        step_size: h, one number, steered by the mean acceptance; or one for each chain ``(B,)``, by its own.
        updates: Updates so far, one number.
        probability: Acceptance probabilities ``(B,)``.
        target: Acceptance to reach.
        gain: Change of log h at the first updates, for each unit of acceptance error.
    """
    acceptance = probability if step_size.ndim else probability.mean()
    n = updates + 1
    return step_size * (gain * (n / 20).clamp(min=1) ** -0.6 * (acceptance - target)).exp(), n
