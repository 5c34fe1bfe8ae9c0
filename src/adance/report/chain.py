"""A batch of chains on their way from noise to samples."""

from dataclasses import dataclass

from torch import Tensor

from adance.errors import InputError
from adance.training.run import Run

MOST_FRAMES = 60


@dataclass(frozen=True, eq=False)
class Film:
    """Chains at some of their steps.

    Attributes:
        steps: The steps, from 0.
        frames: Positions ``(B, *event)`` of the chains that are shown, at each.
        energies: Mean energy at each.
        samples: Where all chains ended ``(N, *event)``.
        length: Steps of the chains; more than those shown where chains left the numbers on the way.
    """

    steps: list[int]
    frames: list[Tensor]
    energies: list[float]
    samples: Tensor
    length: int


def record_chain(run: Run, n: int, shown: int, seed: int = 0, steps: int | None = None) -> Film:
    """Run ``n`` chains from noise as ``adance sample`` does, and keep the first ``shown`` at no more than 61 steps."""
    length = run.sampling_steps if steps is None else steps
    kept = sorted({round(i * length / MOST_FRAMES) for i in range(MOST_FRAMES + 1)})
    frames = {0: run.sample(n, steps=0, seed=seed)[:shown]}

    def keep(step: int, x: Tensor) -> None:
        if step in kept:
            frames[step] = x[:shown].clone()

    samples = run.sample(n, steps=length, seed=seed, callback=keep)
    for step in [step for step, x in frames.items() if not (x.isfinite().all() and run.score(x).isfinite().all())]:
        del frames[step]  # where a chain has left the numbers
    if not frames:
        raise InputError(f"{run.folder.path}: the energy is not finite where chains start; there is nothing to show")
    energies = [float(run.score(x).double().mean()) for x in frames.values()]
    return Film(list(frames), [x.cpu() for x in frames.values()], energies, samples.cpu(), length)


def still_frames(film: Film, about: int = 6) -> list[int]:
    """Numbers of a few frames that tell the story: the mean energy falls by about as much from each to the next."""
    first, last = film.energies[0], film.energies[-1]
    chosen = {0, len(film.frames) - 1}
    for part in range(1, about - 1):
        level = first + (last - first) * part / (about - 1)
        chosen.add(next(i for i, e in enumerate(film.energies) if (e - level) * (last - first) >= 0))
    return sorted(chosen)
