"""The ways in which samples are drawn from a run: chain length, start, and whether the last steps are noise-free."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from adance.errors import InputError
from adance.evaluation.reference import as_events
from adance.samplers.chains import run_chains
from adance.samplers.langevin import Langevin
from adance.training.run import Run, Start

LONGER = 10
NOISE_FREE = 10


@dataclass(frozen=True)
class SamplingScheme:
    """One way to draw samples.

    Attributes:
        name: Such as ``short-run from noise``.
        start: Where chains start.
        steps: Steps of a chain in all.
        noise_free: How many of the last steps are taken with σ = 0 too, from the same chains; 0 for none.
        adapt: How many of the first steps adapt the step size, for kernels that do.
    """

    name: str
    start: Start
    steps: int
    noise_free: int = 0
    adapt: int = 0


def all_schemes(run: Run) -> list[SamplingScheme]:
    """Every way that fits the run, what ``adance sample`` draws first.

    *Default* chains are those of ``adance sample``, *short-run* ones take as many steps as in training, *long-run* ones
    ten times as many, or twice as many as default ones where these are as long. Each starts from noise, and from the
    buffer where the run has one (default chains do not). For Langevin each comes again with σ = 0 in the last 10 steps
    (a third of the chain at most): gradient steps, which take away the last noise. Adjusted kernels are exact as they
    are, and have none.
    """
    kernel = run.sampler
    noisy = isinstance(kernel, Langevin) and kernel.noise_std > 0
    default, training = run.sampling_steps, kernel.steps
    longer = LONGER * training if LONGER * training > default else 2 * default
    lengths = {"default": default, "short-run": training, "long-run": longer}
    starts: list[tuple[Start, str]] = [("noise", "noise"), ("buffer", "the buffer")]
    return [
        SamplingScheme(
            name=f"{kind} from {what}",
            start=start,
            steps=steps,
            noise_free=min(NOISE_FREE, steps // 3) if noisy else 0,
            adapt=steps if kind == "short-run" else steps // 2,
        )
        for kind, steps in lengths.items()
        for start, what in starts
        if start == "noise" or (kind != "default" and run.buffer is not None)
    ]


def choose_schemes(run: Run, chosen: Sequence[str]) -> list[SamplingScheme]:
    """Those whose names begin with one of ``chosen``; all for none.

    Raises:
        InputError: A choice fits no name.
    """
    draws = all_schemes(run)
    for choice in chosen:
        if not any(scheme.name.startswith(choice) for scheme in draws):
            names = "; ".join(scheme.name for scheme in draws)
            raise InputError(f"--samples {choice}: begins none of: {names}")
    return [scheme for scheme in draws if not chosen or any(scheme.name.startswith(choice) for choice in chosen)]


def draw(run: Run, scheme: SamplingScheme, n: int, seed: int = 0) -> dict[str, Tensor]:
    """Samples ``(n, *event)`` in the model's units by name, images clamped to [−1, 1], on the CPU.

    The second set, where there is one, is of the same chains with the last steps noise-free. Rows may be non-finite
    where a chain left the numbers.
    """
    noisy: list[Tensor] = []

    def keep(step: int, x: Tensor) -> None:
        if step == scheme.steps - scheme.noise_free:
            noisy.append(x.clone())

    drawn = {
        scheme.name: run.sample(n, steps=scheme.steps, start=scheme.start, seed=seed, adapt=scheme.adapt, callback=keep)
    }
    kernel = run.sampler
    if scheme.noise_free and isinstance(kernel, Langevin):
        still = Langevin(scheme.noise_free, kernel.step_size, noise_std=0, bounds=kernel.bounds)
        drawn[f"{scheme.name}, last {scheme.noise_free} noise-free"] = run_chains(still, run.energy, noisy[0]).x
    return {name: as_events(x, run.data["kind"]).cpu() for name, x in drawn.items()}
