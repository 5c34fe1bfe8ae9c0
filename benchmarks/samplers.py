"""How much is a sampler's gradient worth? Effective samples per gradient and per second, compared with other libraries.

    python benchmarks/samplers.py [--chains 64] [--steps 4000] [--repeats 3] [--write]

Runs the same kernels at the same settings on the same targets from the same exact samples, in adance, in ebmkit and in
blackjax, as far as they are installed (``pip install adance[bench]``), one thread each, in float32, and keeps every
position. Step sizes are those that adance's adaptation finds for a kernel on a target; jitter is off. The effective
sample size is arviz's (bulk), of the watched coordinate that mixes worst, all chains together; where chains hardly mix
it is rough, so the squared jump of the watched coordinates per gradient is next to it, which is exact to a percent
and equal for equal kernels. Gradients are counted where they are evaluated, but for blackjax, which evaluates one a
leapfrog step and one a MALA step. Times are processor seconds, the median of the repeats; compilation, blackjax's
and ours, is left out. Prints a Markdown table; --write puts it into docs/samplers.md.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import importlib.util
import math
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.samplers import (
    HMC,
    MALA,
    Kernel,
    Langevin,
    RandomWalkMetropolis,
    SplitKernel,
    Tempering,
    UnderdampedLangevin,
    dense_mass,
    effective_sample_size,
    run_chains,
)

DOC = Path(__file__).parents[1] / "docs" / "samplers.md"
BEGIN, END = "<!-- table of benchmarks/samplers.py -->", "<!-- end of the table -->"
LEAPFROG = 10


@dataclass
class Target:
    """An energy in torch and in JAX, exact samples, and the coordinates to watch."""

    name: str
    energy: Callable[[Tensor], Tensor]
    log_density: Callable[[Any], Any]
    sample: Callable[[int, torch.Generator], Tensor]
    watch: Callable[[Tensor], Tensor] = lambda x: x


def gaussian() -> Target:
    """100 dimensions, condition number 100, axes turned; the widest and the narrowest axis are watched."""
    generator = torch.Generator().manual_seed(0)
    axes = torch.linalg.qr(torch.randn(100, 100, generator=generator)).Q
    std = torch.logspace(-1, 0, 100)
    precision = (axes / std.square()) @ axes.T

    def log_density(x: Any) -> Any:
        import jax.numpy as jnp

        return -0.5 * x @ (jnp.asarray(precision.numpy()) @ x)

    return Target(
        "Gaussian, 100-d, condition 100",
        lambda x: 0.5 * ((x @ precision) * x).sum(1),
        log_density,
        lambda n, g: (torch.randn(n, 100, generator=g) * std) @ axes.T,
        lambda x: x @ axes[:, [0, -1]],
    )


def funnel() -> Target:
    """Neal's funnel: v ~ N(0, 3²), nine coordinates N(0, e^v); v is watched."""

    def log_density(x: Any) -> Any:
        import jax.numpy as jnp

        return -(x[0] ** 2 / 18 + 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) + 4.5 * x[0])

    def sample(n: int, g: torch.Generator) -> Tensor:
        noise = torch.randn(n, 10, generator=g)
        v = 3 * noise[:, :1]
        return torch.cat([v, (v / 2).exp() * noise[:, 1:]], 1)

    return Target(
        "funnel, 10-d",
        lambda x: x[:, 0].square() / 18 + 0.5 * x[:, 1:].square().sum(1) * (-x[:, 0]).exp() + 4.5 * x[:, 0],
        log_density,
        sample,
        lambda x: x[..., :1],
    )


def mixture() -> Target:
    """Eight round modes of standard deviation ½ on a circle of radius 2."""
    angles = 2 * math.pi * torch.arange(8) / 8
    centers = 2 * torch.stack([angles.cos(), angles.sin()], 1)

    def log_density(x: Any) -> Any:
        import jax
        import jax.numpy as jnp

        return jax.nn.logsumexp(-2 * jnp.sum((x - jnp.asarray(centers.numpy())) ** 2, 1))

    return Target(
        "mixture of 8, 2-d",
        lambda x: -torch.logsumexp(-2 * (x[:, None] - centers).square().sum(2), 1),
        log_density,
        lambda n, g: centers[torch.randint(8, (n,), generator=g)] + 0.5 * torch.randn(n, 2, generator=g),
    )


@dataclass
class Result:
    """Positions ``(draws, chains, d)``, evaluations (of gradients where there are any), and seconds of each repeat."""

    positions: Tensor
    evaluations: int
    seconds: list[float]


class Counted:
    """An energy that counts the rows that it is asked for."""

    def __init__(self, energy: Callable[[Tensor], Tensor]) -> None:
        self.energy, self.rows = energy, 0

    def __call__(self, x: Tensor) -> Tensor:
        """Energies ``(B,)``."""
        self.rows += len(x)
        return self.energy(x)


def timed(run: Callable[[], Any], repeats: int) -> tuple[Any, list[float]]:
    """The last result, and the seconds of each run."""
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        found = run()
        seconds.append(time.process_time() - begun)
    return found, seconds


def in_adance(kernel: Kernel, target: Target, x: Tensor, steps: int, repeats: int) -> Result:
    """Run one of our kernels."""
    generator, energy = torch.Generator().manual_seed(1), Counted(target.energy)
    found, seconds = timed(
        lambda: run_chains(kernel, energy, x, steps, generator=generator, record=True).positions, repeats
    )
    return Result(found, energy.rows // repeats, seconds)


def in_adance_compiled(kernel: Kernel, target: Target, x: Tensor, steps: int, repeats: int) -> Result | None:
    """The same as a compiled program, whose compilation is left out of the times."""
    if not isinstance(kernel, SplitKernel):
        return None

    def run() -> Tensor | None:
        generator = torch.Generator().manual_seed(1)
        return run_chains(kernel, target.energy, x, steps, generator=generator, record=True, compile=True).positions

    run()
    found, seconds = timed(run, repeats)
    assert found is not None
    return Result(found, len(x) * (kernel.gradients_at_init + steps * (kernel.gradients_per_step or 1)), seconds)


def in_ebmkit(kernel: Kernel, target: Target, x: Tensor, steps: int, repeats: int) -> Result | None:
    """Run the same kernel of ebmkit, if it has it."""
    from ebm import samplers

    if isinstance(kernel, MALA):
        sampler = samplers.MALA(kernel.step_size)
    elif isinstance(kernel, HMC) and kernel.mass is None:
        sampler = samplers.HMC(kernel.step_size, kernel.leapfrog_steps)
    elif isinstance(kernel, Langevin):
        sampler = samplers.LangevinDynamics(kernel.step_size)
    else:
        return None
    energy = Counted(target.energy)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        found, seconds = timed(lambda: sampler.sample(energy, x, steps=steps, return_trajectory=True)[1:], repeats)
    return Result(found, energy.rows // repeats, seconds)


def in_blackjax(kernel: Kernel, target: Target, x: Tensor, steps: int, repeats: int) -> Result | None:
    """Run the same kernel of blackjax, if it has it, compiled as one loop over all chains."""
    import blackjax
    import jax
    import jax.numpy as jnp

    d = x.shape[1]
    if isinstance(kernel, MALA):
        algorithm, each = blackjax.mala(target.log_density, kernel.step_size), 1
    elif isinstance(kernel, HMC):
        inverse = jnp.ones(d) if kernel.mass is None else jnp.asarray(torch.linalg.inv(kernel.mass.mass).numpy())
        algorithm = blackjax.hmc(target.log_density, kernel.step_size, inverse, kernel.leapfrog_steps)
        each = kernel.leapfrog_steps
    elif isinstance(kernel, RandomWalkMetropolis):
        sigma = jnp.full(d, kernel.step_size)
        algorithm, each = blackjax.additive_step_random_walk.normal_random_walk(target.log_density, sigma), 1
    else:
        return None

    @jax.jit
    def run(key: Any, x: Any) -> Any:
        def one(states: Any, key: Any) -> Any:
            states, _ = jax.vmap(algorithm.step)(jax.random.split(key, len(x)), states)
            return states, states.position

        return jax.lax.scan(one, jax.vmap(algorithm.init)(x), jax.random.split(key, steps))[1]

    start, key = jnp.asarray(x.numpy()), jax.random.PRNGKey(1)
    run(key, start).block_until_ready()
    found, seconds = timed(lambda: run(key, start).block_until_ready(), repeats)
    return Result(torch.tensor(jax.device_get(found)), len(x) * (1 + each * steps), seconds)


LIBRARIES: dict[str, tuple[str, Callable[..., Result | None]]] = {
    "ebmkit": ("ebm", in_ebmkit),
    "blackjax": ("blackjax", in_blackjax),
}


def tuned(kernel: Kernel, target: Target, steps: int = 500) -> float:
    """The step size that adaptation finds from exact samples."""
    generator = torch.Generator().manual_seed(2)
    x = target.sample(200, generator)
    found = run_chains(kernel, target.energy, x, steps, generator=generator, adapt=steps).step_size
    assert found is not None
    return float(f"{float(found):.3g}")


def kernels(target: Target) -> list[tuple[str, Kernel]]:
    """What is run on a target."""
    walk = RandomWalkMetropolis(step_size=tuned(RandomWalkMetropolis(), target))
    mala = MALA(step_size=tuned(MALA(), target))
    eps = tuned(HMC(leapfrog_steps=LEAPFROG), target, 200)
    made: list[tuple[str, Kernel]] = [
        ("random walk", walk),
        ("MALA", mala),
        (f"HMC, L={LEAPFROG}", HMC(step_size=eps, leapfrog_steps=LEAPFROG, jitter=0)),
        ("Langevin ᵘ", Langevin(step_size=float(f"{mala.step_size / 4:.3g}"))),
        ("underdamped ᵘ", UnderdampedLangevin(step_size=float(f"{eps / 2:.3g}"))),
    ]
    if "Gaussian" in target.name:
        mass = dense_mass(target.sample(2000, torch.Generator().manual_seed(3)))
        made.append(
            (f"HMC, L={LEAPFROG}, dense mass", HMC(step_size=0.3, leapfrog_steps=LEAPFROG, jitter=0, mass=mass))
        )
    if "mixture" in target.name:
        made.append(("tempered MALA, 4 temperatures", Tempering(mala)))
    return made


def step_size(kernel: Kernel) -> float:
    """The step size of a kernel, or of the one inside it."""
    return float(getattr(getattr(kernel, "kernel", kernel), "step_size", math.nan))


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4000, help="steps of a chain; a quarter of them for HMC")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOC.name}")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="arviz")
    installed = {name: run for name, (module, run) in LIBRARIES.items() if importlib.util.find_spec(module)}
    lines = [
        "| target | kernel | step size | library | ESS | ESS / 1,000 gradients | squared jump / gradient | ESS / s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for target in (gaussian(), funnel(), mixture()):
        x = target.sample(args.chains, torch.Generator().manual_seed(0))
        for name, kernel in kernels(target):
            steps = max(args.steps // (4 if isinstance(kernel, HMC) else 1), 10)
            for library, run in ({"adance": in_adance, "adance, compiled": in_adance_compiled} | installed).items():
                result = run(kernel, target, x, steps, args.repeats)
                if result is None:
                    continue
                watched = target.watch(result.positions)
                ess = float(effective_sample_size(watched).min())
                seconds = statistics.median(result.seconds)
                jump = float(watched.diff(dim=0).square().sum()) / result.evaluations
                lines.append(
                    f"| {target.name} | {name} | {step_size(kernel):g} | {library} | {ess:,.0f} | "
                    f"{1000 * ess / result.evaluations:.3g} | {jump:.3g} | {ess / seconds:,.0f} |"
                )
                print(lines[-1], flush=True)
    if args.write:
        before, _, rest = DOC.read_text(encoding="utf-8").partition(BEGIN)
        note = f"{args.chains} chains of {args.steps} steps ({args.steps // 4} of HMC), torch {torch.__version__}"
        DOC.write_text(
            f"{before}{BEGIN}\n{note}:\n\n" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
