"""The log-likelihood of held-out data, between two bounds on log Z."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.energies.analytic import Density, Uniform
from adance.errors import InputError
from adance.evaluation.ais import plan
from adance.evaluation.bracket import Bracket, bracket_log_z
from adance.evaluation.bridge import Bridge
from adance.evaluation.grid import REACH, grid_log_z
from adance.evaluation.measurement import Measurement
from adance.evaluation.normalizable import continuous_rows, density_base, why_unnormalized
from adance.samplers.chains import run_chains
from adance.samplers.mala import MALA
from adance.training.run import Run

CHAINS = 500
MODEL_STEPS = 500
SMALLEST_TEMPERATURE = 1e-12


def measure_likelihood(
    run: Run,
    data: Dataset,
    *,
    n: int = 1000,
    chains: int = CHAINS,
    max_temperatures: int = 3000,
    force: bool = False,
    seed: int = 0,
    say: Callable[[str], None] = lambda what: None,
) -> list[Measurement]:
    """Log Z as a bracket, and with it nats and bits per dimension of held-out rows; on the plane the grid's beside it.

    The backward run begins at chains of 500 MALA steps from training rows, at the model's own temperature.

    Args:
        run: The run.
        data: Its data.
        n: Held-out rows at most.
        chains: Annealed chains in each direction.
        max_temperatures: Most temperatures of the schedule.
        force: Measure a model that claims no density.
        seed: Seed of everything random.
        say: Told what is done next.

    Raises:
        InputError: The model claims no density, and ``force`` is off; or its temperature is 0.
    """
    missing = why_unnormalized(run)
    if missing and not force:
        raise InputError(
            f"{run.folder.path} claims no density: {'; '.join(missing)}; --force measures exp(−E/T) anyway"
        )
    T = 1.0 if run.kernel is None else run.kernel.temperature
    if not T > SMALLEST_TEMPERATURE:
        raise InputError(f"{run.folder.path} has chains at temperature {T:g}, which have no density exp(−E/T)")
    generator = torch.Generator(run.device).manual_seed(seed)
    base = density_base(run)
    bridge = Bridge(run.energy, base, T)
    say(f"likelihood: drawing {chains} chains of {MODEL_STEPS} steps from training rows")
    starts = _chains_of_model(run, data, bridge, chains, generator)
    say(f"likelihood: choosing temperatures, at most {max_temperatures}")
    schedule = plan(bridge, generator=generator, max_temperatures=max_temperatures)
    say(f"likelihood: annealing {chains} chains over {len(schedule.step_sizes)} temperatures, there and back")
    bracket = bracket_log_z(run.energy, bridge, starts, exact=False, schedule=schedule, generator=generator)

    forced = f"the model claims no density ({'; '.join(missing)})" if missing else None
    common = {"group": "likelihood", "seed": seed, "chain_length": bracket.temperatures}
    measurements = _bracket_measurements(bracket, chains, common, forced)
    rows = data.batch(torch.arange(min(n, len(data.test))), "test")
    rows, log_volumes = continuous_rows(run, rows, torch.Generator().manual_seed(seed))
    log_masses = log_volumes - run.score(rows).double() / T
    outside = int(log_volumes.isneginf().sum())
    if outside:
        forced = _joined(
            f"{outside} of {len(rows)} rows lie outside the chains' bounds, where the density is 0", forced
        )
    held_out = {**common, "split": "test", "n": len(rows), "samples": "held-out data"}
    measurements += _likelihood_measurements(log_masses, bracket, rows[0].numel(), held_out, forced)
    if run.event_shape == (2,):
        measurements += _grid_measurements(run, data, base, log_masses, T, held_out)
    return measurements


def _chains_of_model(run: Run, data: Dataset, bridge: Bridge, chains: int, generator: torch.Generator) -> Tensor:
    rows = torch.randint(len(data.train), (chains,), generator=torch.Generator().manual_seed(generator.initial_seed()))
    x, _ = continuous_rows(run, data.batch(rows), torch.Generator().manual_seed(generator.initial_seed()))
    kernel = MALA(steps=MODEL_STEPS, step_size=0.1 * bridge.temperature, adaptation=0.2)
    model = bridge.at(1.0)
    return run_chains(kernel, model, x.to(run.device), generator=generator, adapt=MODEL_STEPS // 2).x


def _bracket_measurements(bracket: Bracket, n: int, common: dict[str, Any], forced: str | None) -> list[Measurement]:
    unsure = "" if bracket.closed else ", not an estimate"
    shared = {**common, "n": n, "samples": "annealed chains", "note": _joined(bracket.verdict, forced)}
    return [
        Measurement(metric="log_z_lower", name=f"log Z, from below{unsure}", value=bracket.lower, **shared),
        Measurement(metric="log_z_upper", name=f"log Z, from above{unsure}", value=bracket.upper, **shared),
        Measurement(
            metric="log_z_forward",
            name="log Z, annealed forward",
            value=bracket.forward,
            spread=bracket.forward_error,
            **{**shared, "note": f"effective sample size {bracket.forward_effective:.1f} of {bracket.chains}"},
        ),
        Measurement(
            metric="log_z_backward",
            name=f"log Z, annealed backward from {'exact samples' if bracket.exact else 'chains'}",
            value=bracket.backward,
            spread=bracket.backward_error,
            **{**shared, "note": f"effective sample size {bracket.backward_effective:.1f} of {bracket.chains}"},
        ),
    ]


def _likelihood_measurements(
    log_masses: Tensor, bracket: Bracket, size: int, common: dict[str, Any], forced: str | None
) -> list[Measurement]:
    """Of ``log_masses`` ``(n,)``: log-densities of the rows in the data's units, without log Z."""
    mean, error = float(log_masses.mean()), float(log_masses.std()) / math.sqrt(len(log_masses))
    measurements, unsure = [], "" if bracket.closed else ", not an estimate"
    for side, log_z in (("lower", bracket.upper), ("upper", bracket.lower)):
        nats = mean - log_z
        where = "from below" if side == "lower" else "from above"
        shared: dict[str, Any] = {**common, "note": _joined(bracket.verdict, forced)}
        measurements.append(
            Measurement(
                metric=f"log_likelihood_{side}",
                name=f"log-likelihood (nats), {where}{unsure}",
                value=nats,
                spread=error,
                better="higher",
                **shared,
            )
        )
        other = "upper" if side == "lower" else "lower"
        measurements.append(
            Measurement(
                metric=f"bits_per_dimension_{other}",
                name=f"bits per dimension, {'from above' if other == 'upper' else 'from below'}{unsure}",
                value=-nats / size / math.log(2),
                spread=error / size / math.log(2),
                better="lower",
                **shared,
            )
        )
    return measurements


def _grid_measurements(
    run: Run,
    data: Dataset,
    base: Density,
    log_masses: Tensor,
    temperature: float,
    common: dict[str, Any],
) -> list[Measurement]:
    if isinstance(base, Uniform):
        low, high = base.low.expand(2).to(run.device), base.high.expand(2).to(run.device)
        center, scale, where = (low + high) / 2, (high - low) / (2 * REACH), "grid of the chains' bounds"
    else:
        rows = data.batch(torch.arange(len(data.train))).to(run.device)
        center, scale, where = rows.mean(0), rows.std(0), f"grid of ±{REACH:g} standard deviations"
    log_z, error = grid_log_z(run.energy, center, scale, temperature)
    shared = {**common, "chain_length": None}
    note = f"{where}; a coarser one differs by {error:.1e} nats"
    nats = log_masses - log_z
    spread = float(nats.std()) / math.sqrt(len(nats))
    measurements = [
        Measurement(metric="log_z_grid", name="log Z, grid integral", value=log_z, group="likelihood", note=note),
        Measurement(
            metric="log_likelihood_grid",
            name="log-likelihood (nats), grid integral",
            value=float(nats.mean()),
            spread=spread,
            better="higher",
            **{**shared, "note": note},
        ),
    ]
    if data.density is not None:
        exact = data.density.log_prob(data.test[: len(nats)]).double()
        measurements.append(
            Measurement(
                metric="kl_divergence",
                name="KL(data ‖ model) (nats), grid integral",
                value=float((exact - nats).mean()),
                spread=float((exact - nats).std()) / math.sqrt(len(nats)),
                better="lower",
                **{**shared, "note": note},
            )
        )
    return measurements


def _joined(*notes: str | None) -> str:
    return "; ".join(note for note in notes if note)
