"""A fit in memory: trains an energy with an objective on rows in memory, and writes nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from adance.energies.energy import eval_mode
from adance.errors import DivergedError
from adance.objectives.objective import Objective
from adance.training.adam import FusedAdam
from adance.training.schedule import learning_rate
from adance.training.settings import Settings


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that are drawn in batches.

    Attributes:
        x: Rows ``(N, *event)`` in the energy's units.
        labels: Conditions ``(N, *condition)`` of a conditional energy.
        noise_std: Standard deviation of Gaussian noise that is added to each row when it is drawn: a tensor that
            broadcasts to an event.
    """

    x: Tensor
    labels: Tensor | None = None
    noise_std: Tensor | None = None

    def draw(self, n: int, generator: torch.Generator) -> "Rows":
        """``n`` rows drawn with replacement, with their noise; all rows in order if there are ``n``."""
        if len(self.x) == n:
            return self.with_noise(generator)
        rows = torch.randint(len(self.x), (n,), generator=generator, device=self.x.device)
        return self.at(rows).with_noise(generator)

    def at(self, rows: Tensor) -> "Rows":
        """The rows with the indices ``rows``."""
        return Rows(self.x[rows], None if self.labels is None else self.labels[rows], self.noise_std)

    def with_noise(self, generator: torch.Generator) -> "Rows":
        """The rows with their noise added."""
        if self.noise_std is None:
            return self
        noise = torch.randn(self.x.shape, generator=generator, dtype=self.x.dtype, device=self.x.device)
        return Rows(self.x + self.noise_std * noise, self.labels)


class RowSource(Protocol):
    """Where the rows of a batch come from."""

    def draw(self, n: int, generator: torch.Generator) -> Rows:
        """``n`` rows."""
        ...


@dataclass(frozen=True)
class FitHistory:
    """How a fit went.

    Attributes:
        losses: The held-out loss before training, and then after every ``evaluate_every`` steps.
        best: The index of the best one, whose weights were kept.
        steps: Steps done.
    """

    losses: tuple[float, ...]
    best: int
    steps: int


def fit_in_memory(
    energy: nn.Module,
    objective: Objective,
    train: RowSource,
    held_out_loss: Callable[[], Tensor],
    settings: Settings,
    generator: torch.Generator,
) -> FitHistory:
    """Train ``energy`` in place, and keep the weights that have the lowest held-out loss.

    The held-out loss is measured before the first step and then every ``evaluate_every`` steps (after the last step
    only, if that is 0). Training stops after ``patience`` measurements in a row without a new best.

    Args:
        energy: The energy, in evaluation mode or without layers that depend on the mode.
        objective: The complete objective; its own parameters are trained too.
        train: The training rows: :class:`Rows`, or anything else that draws them.
        held_out_loss: The loss of held-out rows, always with the same random numbers; see :func:`loss_on`.
        settings: Of these ``steps``, ``batch_size``, ``lr``, ``betas``, ``schedule``, ``decay_after``, ``warmup``,
            ``evaluate_every`` and ``patience`` are used.
        generator: Source of randomness.

    Raises:
        DivergedError: The held-out loss became NaN.
    """
    parameters = [parameter for parameter in energy.parameters() if parameter.requires_grad]
    parameters += objective.own_parameters()
    best = _Best(parameters, held_out_loss)
    optimizer, unmasked = FusedAdam(parameters, settings.betas), torch.zeros((), device=parameters[0].device)
    measure_every, step = settings.evaluate_every or settings.steps, 0
    for step in range(1, settings.steps + 1):
        batch = train.draw(settings.batch_size, generator)
        condition = {} if batch.labels is None else {"condition": batch.labels}
        out = objective.loss(energy, batch.x, generator, **condition)
        optimizer.zero_grad()
        out.value.backward()  # type: ignore[no-untyped-call]
        optimizer.step(learning_rate(settings, step), unmasked)
        objective.after_step(energy, step, out)
        if (step % measure_every == 0 or step == settings.steps) and best.measure(settings.patience):
            break
    return best.restore(step)


def loss_on(energy: nn.Module, objective: Objective, rows: Rows, seed: int) -> Callable[[], Tensor]:
    """The loss of ``rows``, always with the random numbers of ``seed``, so that measurements can be compared."""
    noisy = rows.with_noise(torch.Generator(rows.x.device).manual_seed(seed))
    condition = {} if noisy.labels is None else {"condition": noisy.labels}

    def held_out_loss() -> Tensor:
        generator = torch.Generator(rows.x.device).manual_seed(seed)
        with torch.no_grad(), eval_mode(energy):
            return objective.loss(energy, noisy.x, generator, **condition).value

    return held_out_loss


class _Best:
    """The best weights so far, by the held-out loss."""

    def __init__(self, parameters: Sequence[nn.Parameter], held_out_loss: Callable[[], Tensor]) -> None:
        self.parameters, self.held_out_loss = parameters, held_out_loss
        self.losses: list[float] = []
        self.best = 0
        self.measure(0)

    def measure(self, patience: int) -> bool:
        """Measure the held-out loss, and return whether the last ``patience`` measurements brought no new best."""
        loss = float(self.held_out_loss())
        if loss != loss:
            raise DivergedError("the held-out loss is NaN: a row is outside the noise's support, or training diverged")
        self.losses.append(loss)
        if loss <= self.losses[self.best]:
            self.best = len(self.losses) - 1
            self.weights = [parameter.detach().clone() for parameter in self.parameters]
        return 0 < patience <= len(self.losses) - 1 - self.best

    @torch.no_grad()
    def restore(self, steps: int) -> FitHistory:
        for parameter, weight in zip(self.parameters, self.weights, strict=True):
            parameter.copy_(weight)
        return FitHistory(tuple(self.losses), self.best, steps)
