"""The schemes by which samples are drawn from a run: chain length, start, and whether the last steps are noise-free."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from adance.errors import InputError
from adance.evaluation.reference import as_events
from adance.samplers.chains import run_chains
from adance.samplers.langevin import Langevin
from adance.training.run import Run, Start

LONG_RUN_FACTOR = 10
NOISE_FREE_STEPS = 10


@dataclass(frozen=True)
class SamplingScheme:
    """One scheme to draw samples by.

    Attributes:
        name: Such as ``short-run from noise``.
        start: Where chains start.
        steps: Steps of a chain in all.
        noise_free: How many of the last steps are also taken with σ = 0, from the same chains; 0 for none.
        adapt: How many of the first steps adapt the step size, for kernels that do.
    """

    name: str
    start: Start
    steps: int
    noise_free: int = 0
    adapt: int = 0

    def sample(self, run: Run, n: int, seed: int = 0) -> dict[str, Tensor]:
        """Samples ``(n, *event)`` in the model's units by name, images clamped to [−1, 1], on the CPU.

        The second set, if there is one, is of the same chains with the last steps noise-free. Rows of chains that
        diverged are not finite.
        """
        noisy: list[Tensor] = []

        def keep(step: int, x: Tensor) -> None:
            if step == self.steps - self.noise_free:
                noisy.append(x.clone())

        x = run.sample(n, steps=self.steps, start=self.start, seed=seed, adapt=self.adapt, callback=keep)
        drawn, kernel = {self.name: x}, run.sampler
        if self.noise_free and isinstance(kernel, Langevin):
            quiet = Langevin(self.noise_free, kernel.step_size, noise_std=0, bounds=kernel.bounds)
            drawn[f"{self.name}, last {self.noise_free} noise-free"] = run_chains(quiet, run.energy, noisy[0]).x
        return {name: as_events(x, run.data["kind"]).cpu() for name, x in drawn.items()}


def all_schemes(run: Run) -> list[SamplingScheme]:
    """Every scheme that fits the run; the first is that of ``adance sample``.

    *Default* chains are those of ``adance sample``, *short-run* ones take as many steps as in training, *long-run* ones
    ten times as many, or twice as many as default ones if that is more. Each starts from noise, and from the buffer if
    the run has one (default chains do not). For Langevin each is measured again with σ = 0 in the last 10 steps (a
    third of the chain at most): gradient steps, which remove the last noise. Kernels whose stationary distribution is
    exact (MALA, HMC and the like) get neither these nor long runs: their default chains are long already.
    """
    kernel, default = run.sampler, run.sampling_steps
    noisy = isinstance(kernel, Langevin) and kernel.noise_std > 0
    lengths = {"default": default, "short-run": kernel.steps}
    if not kernel.exact:
        longer = LONG_RUN_FACTOR * kernel.steps
        lengths["long-run"] = longer if longer > default else 2 * default
    schemes = []
    for kind, steps in lengths.items():
        noise_free = min(NOISE_FREE_STEPS, steps // 3) if noisy else 0
        adapt = steps if kind == "short-run" else steps // 2
        schemes.append(SamplingScheme(f"{kind} from noise", "noise", steps, noise_free, adapt))
        if kind != "default" and run.buffer is not None:
            schemes.append(SamplingScheme(f"{kind} from the buffer", "buffer", steps, noise_free, adapt))
    return schemes


def choose_schemes(run: Run, prefixes: Sequence[str]) -> list[SamplingScheme]:
    """The schemes whose names start with one of ``prefixes``; all if there are none.

    Raises:
        InputError: No name starts with one of the prefixes.
    """
    schemes = all_schemes(run)
    for prefix in prefixes:
        if not any(scheme.name.startswith(prefix) for scheme in schemes):
            names = "; ".join(scheme.name for scheme in schemes)
            raise InputError(f'--samples {prefix}: no sampling scheme starts with "{prefix}". Available: {names}')
    return [scheme for scheme in schemes if not prefixes or scheme.name.startswith(tuple(prefixes))]
