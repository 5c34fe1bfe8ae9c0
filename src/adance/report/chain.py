"""A batch of chains on their way from noise to samples."""

from dataclasses import dataclass

from torch import Tensor

from adance.errors import InputError
from adance.training.run import Run

MAX_FRAMES = 60


@dataclass(frozen=True, eq=False)
class ChainRecording:
    """Chains at some of their steps.

    Attributes:
        steps: The steps, from 0.
        frames: Positions ``(B, *event)`` of the shown chains at each of these steps.
        energies: Their mean energy at each of these steps.
        samples: Ends ``(N, *event)`` of all chains.
        length: The number of steps; more than the last of ``steps`` if chains became non-finite.
    """

    steps: list[int]
    frames: list[Tensor]
    energies: list[float]
    samples: Tensor
    length: int


def record_chain(run: Run, n: int, shown: int, seed: int = 0, steps: int | None = None) -> ChainRecording:
    """Run ``n`` chains from noise as ``adance sample`` does, and record the first ``shown`` at up to 61 steps.

    Raises:
        InputError: The energy is not finite at the start of the chains.
    """
    length = run.sampling_steps if steps is None else steps
    kept = {round(i * length / MAX_FRAMES) for i in range(MAX_FRAMES + 1)}
    frames = {0: run.sample(n, steps=0, seed=seed)[:shown]}

    def keep(step: int, x: Tensor) -> None:
        if step in kept:
            frames[step] = x[:shown].clone()

    samples = run.sample(n, steps=length, seed=seed, callback=keep)
    energies = {step: run.score(x) for step, x in frames.items() if x.isfinite().all()}
    means = {step: float(values.double().mean()) for step, values in energies.items() if values.isfinite().all()}
    if not means:
        raise InputError(f"{run.folder.path}: the energy is not finite where chains start, so no chains can be shown")
    shown_frames = [frames[step].cpu() for step in means]
    return ChainRecording(list(means), shown_frames, list(means.values()), samples.cpu(), length)


def still_frames(recording: ChainRecording, n: int = 6) -> list[int]:
    """Indices of up to ``n`` frames between which the mean energy falls by about the same amount."""
    first, last = recording.energies[0], recording.energies[-1]
    chosen = {0, len(recording.frames) - 1}
    for part in range(1, n - 1):
        level = first + (last - first) * part / (n - 1)
        chosen.add(next(i for i, e in enumerate(recording.energies) if (e - level) * (last - first) >= 0))
    return sorted(chosen)
