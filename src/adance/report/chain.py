"""What a run's chains do: a recording of their way from noise to samples, and energies of all kinds of events."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.errors import InputError
from adance.training.run import Run

MAX_FRAMES, MAX_ENERGIES = 60, 1000


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
    frames = {0: run.sample(n, steps=0, seed=seed)[:shown].cpu()}

    def keep(step: int, x: Tensor) -> None:
        if step in kept:
            frames[step] = x[:shown].to("cpu", copy=True)

    samples = run.sample(n, steps=length, seed=seed, callback=keep)
    energies = {step: float(run.score(x).double().mean()) for step, x in frames.items() if x.isfinite().all()}
    energies = {step: energy for step, energy in energies.items() if np.isfinite(energy)}
    if not energies:
        raise InputError(f"{run.folder.path}: the energy is not finite where chains start, so no chains can be shown")
    return ChainRecording(
        list(energies), [frames[step] for step in energies], list(energies.values()), samples.cpu(), length
    )


def still_frames(recording: ChainRecording, n: int = 6) -> list[int]:
    """Indices of up to ``n`` frames between which the mean energy falls by about the same amount."""
    energies = np.array(recording.energies)
    progress = (energies - energies[0]) / (energies[-1] - energies[0] or 1.0)
    return sorted({0, len(energies) - 1, *(int((progress >= part).argmax()) for part in np.linspace(0, 1, n)[1:-1])})


def energies_of(run: Run, data: Dataset | None, samples: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """The finite energies of up to 1,000 events of each kind, by its name."""
    events: dict[str, Tensor] = {}
    if data is not None:
        events["training data"] = data.batch(torch.arange(min(MAX_ENERGIES, len(data.train))))
        events["held-out data"] = data.batch(torch.arange(min(MAX_ENERGIES, len(data.test))), "test")
    events |= {"samples": samples, "noise": run.sample(MAX_ENERGIES, steps=0, seed=seed)}
    found = {name: run.score(x) for name, x in events.items()}
    return {name: values[values.isfinite()] for name, values in found.items() if values.isfinite().any()}
