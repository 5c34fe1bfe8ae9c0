"""The ways in which samples are drawn from a run: chain length, start, and whether the last steps are noise-free."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from adance.errors import InputError
from adance.evaluation.reference import as_events
from adance.samplers.kernel import Kernel, run_chains
from adance.samplers.langevin import Langevin
from adance.samplers.sampling import sampling_steps
from adance.training.run import Run, Start

LONGER = 10
NOISE_FREE = 10


@dataclass(frozen=True)
class Draw:
    """One way to draw samples.

    Attributes:
        name: Such as ``short-run from noise``.
        start: Where chains start.
        steps: Steps of a chain in all.
        noise_free: How many of the last steps have σ = 0.
        adapt: How many of the first steps adapt the step size, for kernels that do.
    """

    name: str
    start: Start
    steps: int
    noise_free: int = 0
    adapt: int = 0


def all_draws(run: Run) -> list[Draw]:
    """Every way that fits the run, what ``adance sample`` draws first.

    *Default* chains are those of ``adance sample``, *short-run* ones take as many steps as in training, *long-run* ones
    ten times as many. Each starts from noise, and from the buffer where the run has one (default chains do not). For
    Langevin each comes again with σ = 0 in the last 10 steps (a third of the chain at most): gradient steps, which take
    away the last noise. Adjusted kernels are exact as they are, and have none.
    """
    kernel = run.sampler
    lengths = {"default": sampling_steps(kernel), "short-run": kernel.steps, "long-run": LONGER * kernel.steps}
    draws = []
    for kind, length in lengths.items():
        for start in ("noise", "buffer"):
            if start == "buffer" and (kind == "default" or run.buffer is None):
                continue
            name = f"{kind} from {'noise' if start == 'noise' else 'the buffer'}"
            adapt = length // 2 if start == "noise" or kind == "long-run" else length
            draws.append(Draw(name, start, length, 0, adapt))  # type: ignore[arg-type]
            free = min(NOISE_FREE, length // 3)
            if isinstance(kernel, Langevin) and kernel.noise_std > 0 and free > 0:
                draws.append(Draw(f"{name}, last {free} steps noise-free", start, length, free))  # type: ignore[arg-type]
    return draws


def choose_draws(run: Run, chosen: Sequence[str]) -> list[Draw]:
    """Those whose names begin with one of ``chosen``; all for none.

    Raises:
        InputError: A choice fits no name.
    """
    draws = all_draws(run)
    for choice in chosen:
        if not any(draw.name.startswith(choice) for draw in draws):
            names = "; ".join(draw.name for draw in draws)
            raise InputError(f"--samples {choice}: begins none of: {names}")
    return [draw for draw in draws if not chosen or any(draw.name.startswith(choice) for choice in chosen)]


def draw(run: Run, way: Draw, n: int, seed: int = 0) -> Tensor:
    """``(n, *event)`` samples drawn in one way, in the model's units, images clamped to [−1, 1], on the CPU.

    Chains that ended nowhere finite are kept as they are only for vectors; the features of such a row are an error.
    """
    generator = torch.Generator(run.device).manual_seed(seed)
    x = run.starts(n, way.start, generator)
    noisy = way.steps - way.noise_free
    chains = run_chains(run.sampler, run.energy, x, noisy, generator=generator, adapt=way.adapt)
    x = chains.x
    if way.noise_free:
        assert isinstance(run.sampler, Langevin)
        still = Langevin(way.noise_free, run.sampler.step_size, noise_std=0, bounds=run.sampler.bounds)
        x = run_chains(still, run.energy, x, generator=generator).x
    return as_events(x, run.data["kind"]).cpu()
