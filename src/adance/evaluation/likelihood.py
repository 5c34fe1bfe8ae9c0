"""The log-likelihood of held-out data, between two bounds on log Z."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.energies.analytic import Density, Uniform
from adance.errors import InputError
from adance.evaluation.ais import Bridge, plan
from adance.evaluation.log_z import HALF_WIDTH, Bracket, bracket_log_z, grid_log_z
from adance.evaluation.measurement import Measurement
from adance.evaluation.normalizable import continuous_rows, density_base, temperature_of, why_unnormalized
from adance.evaluation.options import Options
from adance.samplers.chains import run_chains
from adance.samplers.mala import MALA
from adance.training.run import Run

MODEL_STEPS = 500
SMALLEST_TEMPERATURE = 1e-12

Measure = partial[Measurement]


def measure_likelihood(
    run: Run, data: Dataset, options: Options | None = None, say: Callable[[str], None] = lambda what: None
) -> list[Measurement]:
    """Log Z as a bracket, and from it nats and bits per dimension of held-out rows; in the plane by a grid too.

    The backward run begins at chains of 500 MALA steps from training rows, at the model's own temperature.

    Args:
        run: The run.
        data: The run's data.
        options: Of these ``n`` (the largest number of held-out rows), ``chains``, ``max_temperatures``, ``force`` and
            ``seed``.
        say: Called with a description of each part before it is computed.

    Raises:
        InputError: The model is not normalizable, and ``force`` is off; or its temperature is 0.
    """
    options = options or Options()
    n, T, reasons = options.chains, temperature_of(run), "; ".join(why_unnormalized(run))
    if reasons and not options.force:
        raise InputError(f"{run.folder.path} is not normalizable: {reasons}; --force measures exp(−E/T) anyway")
    if not T > SMALLEST_TEMPERATURE:
        raise InputError(f"{run.folder.path} has chains at temperature {T:g}, where exp(−E/T) is not a density")
    generator = torch.Generator(run.device).manual_seed(options.seed)
    base = density_base(run)
    bridge = Bridge(run.energy, base, T)
    say(f"likelihood: drawing {n} chains of {MODEL_STEPS} steps from training rows")
    starts = _model_chains(run, data, bridge, n, generator)
    say(f"likelihood: choosing temperatures, at most {options.max_temperatures}")
    schedule = plan(bridge, generator=generator, max_temperatures=options.max_temperatures)
    say(f"likelihood: annealing {n} chains over {len(schedule.step_sizes)} temperatures, there and back")
    bracket = bracket_log_z(bridge, starts, exact=False, schedule=schedule, generator=generator)

    forced = f"the model is not normalizable ({reasons})" if reasons else None
    measure = partial(Measurement, "likelihood", seed=options.seed)
    annealed = partial(measure, chain_length=bracket.temperatures)
    found = _log_z(bracket, partial(annealed, n=n, samples="annealed chains"), forced)
    log_masses, size, outside = _log_masses(run, data, options)
    if outside:
        where = f"{outside} of {len(log_masses)} rows are outside the chains' bounds, where the density is 0"
        forced = _join(where, forced)
    held_out = {"split": "test", "n": len(log_masses), "samples": "held-out data"}
    found += _log_likelihood(log_masses, bracket, size, partial(annealed, **held_out), forced)
    if run.event_shape == (2,):
        found += _by_grid(run, data, base, log_masses, partial(measure, **held_out))
    return found


def _model_chains(run: Run, data: Dataset, bridge: Bridge, n: int, generator: torch.Generator) -> Tensor:
    seed = generator.initial_seed()
    rows = torch.randint(len(data.train), (n,), generator=torch.Generator().manual_seed(seed))
    x, _ = continuous_rows(run, data.batch(rows), torch.Generator().manual_seed(seed))
    kernel = MALA(steps=MODEL_STEPS, step_size=0.1 * bridge.temperature, adaptation=0.2)
    return run_chains(kernel, bridge.at(1.0), x.to(run.device), generator=generator, adapt=MODEL_STEPS // 2).x


def _log_masses(run: Run, data: Dataset, options: Options) -> tuple[Tensor, int, int]:
    """Log-densities ``(n,)`` of held-out rows in the data's units, without log Z; values in a row; rows outside."""
    rows = data.batch(torch.arange(min(options.n, len(data.test))), "test")
    rows, log_volumes = continuous_rows(run, rows, torch.Generator().manual_seed(options.seed))
    log_masses = log_volumes - run.score(rows).double() / temperature_of(run)
    return log_masses, rows[0].numel(), int(log_volumes.isneginf().sum())


def _log_z(bracket: Bracket, measure: Measure, forced: str | None) -> list[Measurement]:
    unsure, note = _unsure(bracket), _join(bracket.verdict, forced)
    found = [
        measure("log_z_lower", f"log Z, from below{unsure}", bracket.lower, note=note),
        measure("log_z_upper", f"log Z, from above{unsure}", bracket.upper, note=note),
    ]
    for name, log_z in (("forward", bracket.forward), ("backward from chains", bracket.backward)):
        note, key = f"effective sample size {log_z.effective:.1f} of {bracket.chains}", name.partition(" ")[0]
        found.append(measure(f"log_z_{key}", f"log Z, annealed {name}", log_z.value, log_z.error, note=note))
    return found


def _log_likelihood(
    log_masses: Tensor, bracket: Bracket, size: int, measure: Measure, forced: str | None
) -> list[Measurement]:
    """Nats of rows of ``size`` values, and bits per dimension; an upper bound of one is a lower bound of the other."""
    sides, found = {"lower": f"from below{_unsure(bracket)}", "upper": f"from above{_unsure(bracket)}"}, []
    mean, error = _mean(log_masses)
    measure = partial(measure, note=_join(bracket.verdict, forced))
    for side, opposite, log_z in (("lower", "upper", bracket.upper), ("upper", "lower", bracket.lower)):
        nats, name = mean - log_z, f"log-likelihood (nats), {sides[side]}"
        bits, bits_name = -nats / size / math.log(2), f"bits per dimension, {sides[opposite]}"
        found.append(measure(f"log_likelihood_{side}", name, nats, error, "higher"))
        bits_error = error / size / math.log(2)
        found.append(measure(f"bits_per_dimension_{opposite}", bits_name, bits, bits_error, "lower"))
    return found


def _by_grid(run: Run, data: Dataset, base: Density, log_masses: Tensor, measure: Measure) -> list[Measurement]:
    if isinstance(base, Uniform):
        low, high = base.low.expand(2).to(run.device), base.high.expand(2).to(run.device)
        center, scale, where = (low + high) / 2, (high - low) / (2 * HALF_WIDTH), "grid of the chains' bounds"
    else:
        rows = data.batch(torch.arange(len(data.train))).to(run.device)
        center, scale, where = rows.mean(0), rows.std(0), f"grid of ±{HALF_WIDTH:g} standard deviations"
    log_z, error = grid_log_z(run.energy, center, scale, temperature_of(run))
    note, nats = f"{where}; a coarser one differs by {error:.1e} nats", log_masses - log_z
    name = "log-likelihood (nats), grid integral"
    found = [
        Measurement("likelihood", "log_z_grid", "log Z, grid integral", log_z, note=note),
        measure("log_likelihood_grid", name, *_mean(nats), "higher", note=note),
    ]
    if data.density is not None:
        exact = data.density.log_prob(data.test[: len(nats)]).double()
        name = "KL(data ‖ model) (nats), grid integral"
        found.append(measure("kl_divergence", name, *_mean(exact - nats), "lower", note=note))
    return found


def _mean(values: Tensor) -> tuple[float, float]:
    """The mean, and its standard error."""
    return float(values.mean()), float(values.std()) / math.sqrt(len(values))


def _unsure(bracket: Bracket) -> str:
    return "" if bracket.closed else ", not an estimate"


def _join(*notes: str | None) -> str:
    return "; ".join(note for note in notes if note)
