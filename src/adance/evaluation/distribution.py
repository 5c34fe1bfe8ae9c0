"""A run as a ``torch.distributions.Distribution``."""

import logging
import math
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from adance.energies.energy import eval_mode, evaluate
from adance.errors import InputError
from adance.evaluation.ais import Bridge, Schedule, anneal_forward, plan
from adance.evaluation.log_z import MIN_EFFECTIVE
from adance.evaluation.normalizable import density_base, temperature_of, why_unnormalized
from adance.numbers import check_count
from adance.samplers.chains import run_chains
from adance.samplers.resampling import LogMean, log_mean_exp, resampled_rows
from adance.training.run import Run

SETTLING_STEPS = 50
"""Steps taken after resampling, so that copies of one chain separate."""

log = logging.getLogger("adance")


class EnergyDistribution(Distribution):
    """``p(x) = exp(−E(x)/T)/Z`` with an estimated log Z; made by :func:`as_distribution`.

    The error of ``log_prob`` is the same for every x; :attr:`log_z` has its standard error. Samples are the ends of
    annealed chains, resampled with their weights.

    Args:
        bridge: The distributions between a base and the model.
        event_shape: The shape of one event.
        schedule: The annealing schedule.
        log_z: The estimate of log Z.
        chains: Minimum number of chains from which samples are resampled.
        generator: Source of the randomness of samples; torch's global generator is not used.
        dtype: The floating-point type of the model.
        validate_args: As for every ``torch.distributions.Distribution``.

    Attributes:
        log_z: The estimate of log Z as ``value``, its standard ``error`` in nats, and the ``effective`` number of
            chains. On average the value is below log Z, so that ``log_prob`` is too high.
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}

    def __init__(
        self,
        bridge: Bridge,
        event_shape: tuple[int, ...],
        schedule: Schedule,
        log_z: LogMean,
        chains: int,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        validate_args: bool | None = None,
    ) -> None:
        self.log_z = log_z
        self._bridge, self._schedule, self._chains = bridge, schedule, chains
        self._generator, self._dtype = generator, dtype
        super().__init__(event_shape=torch.Size(event_shape), validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """The box of the density, or all of space."""
        made: Any = constraints  # whose classes have no types
        inside = made.real if self._bridge.box is None else made.interval(*self._bridge.box)
        found: constraints.Constraint = made.independent(inside, len(self.event_shape))
        return found

    def log_prob(self, value: Tensor) -> Tensor:
        """Estimated log-densities ``(*batch)`` of ``value`` ``(*batch, *event)``, −∞ outside the support.

        Values may have any type. The gradient in ``value`` is that of ``−E/T``, which is exact.

        Raises:
            InputError: The shape does not end with the event's.
        """
        if value.shape[max(0, value.dim() - len(self.event_shape)) :] != self.event_shape:
            raise InputError(
                f"the shape of values must end with the event's shape {tuple(self.event_shape)}, got "
                f"{tuple(value.shape)}"
            )
        if self._validate_args and value.numel() > 0:  # torch cannot check no values
            self._validate_sample(value)
        rows = value.reshape(-1, *self.event_shape).to(self._dtype)
        with eval_mode(self._bridge.model):
            found = -evaluate(self._bridge.model, rows) / self._bridge.temperature - self.log_z.value
        if self._bridge.box is not None:
            low, high = self._bridge.box
            inside = ((rows >= low) & (rows <= high)).flatten(1).all(1)
            found = torch.where(inside, found, -torch.inf)
        return found.reshape(value.shape[: value.dim() - len(self.event_shape)])

    @torch.no_grad()
    def sample(self, sample_shape: torch.Size | list[int] | tuple[int, ...] = ()) -> Tensor:
        """Samples ``(*sample_shape, *event)``; each call gives new ones."""
        n = math.prod(sample_shape)
        with eval_mode(self._bridge.model):
            weights, x = anneal_forward(self._bridge, self._schedule, max(n, self._chains), self._generator)
            x = x[resampled_rows(x, weights, self._generator)]
            order = torch.randperm(len(x), generator=self._generator, device=x.device)
            kernel, last = self._schedule.kernel, self._schedule.step_sizes[-1]
            step_size = None if last is None else last[order[:n]] if last.dim() else last
            energy = self._bridge.at(1.0)
            ends = run_chains(
                kernel, energy, x[order[:n]], SETTLING_STEPS, generator=self._generator, step_size=step_size
            )
        return self._bridge.place(ends.x).reshape(*sample_shape, *self.event_shape)


def as_distribution(
    run: Run,
    *,
    chains: int = 512,
    max_temperatures: int = 3000,
    seed: int = 0,
    force: bool = False,
    validate_args: bool | None = None,
) -> EnergyDistribution:
    """A run as a ``torch.distributions.Distribution``, in the units of the model.

    Log Z is estimated by annealed importance sampling (Neal 2001), which takes seconds to minutes. A warning is logged
    if the estimate cannot be trusted. For a bracket, which bounds log Z on both sides, use ``adance evaluate``.

    Args:
        run: The run.
        chains: Number of annealed chains.
        max_temperatures: Maximum number of temperatures.
        seed: Seed of the estimate and of the samples.
        force: Treat ``exp(−E/T)`` as the density even if the run has none, for example if nothing makes it integrable.
        validate_args: As for every ``torch.distributions.Distribution``.

    Raises:
        InputError: The run has no density, for example because its chains are short-run, or ``chains`` is below 2.
    """
    reasons, temperature = "; ".join(why_unnormalized(run)), temperature_of(run)
    if reasons and not force:
        raise InputError(f"{run.folder.path} has no density: {reasons}; set force=True to use exp(−E/T) anyway")
    check_count("chains", chains, 2)
    generator = torch.Generator(run.device).manual_seed(seed)
    bridge = Bridge(run.energy, density_base(run), temperature)
    with eval_mode(run.energy):
        schedule = plan(bridge, generator=generator, max_temperatures=max_temperatures)
        log_z = log_mean_exp(anneal_forward(bridge, schedule, chains, generator)[0])
    if not schedule.complete:
        log.warning(
            f"log Z cannot be trusted: {max_temperatures} temperatures did not reach the model; raise max_temperatures"
        )
    elif not log_z.effective >= MIN_EFFECTIVE:
        log.warning(f"log Z cannot be trusted: it rests on {log_z.effective:.1f} effective chains; raise chains")
    return EnergyDistribution(bridge, run.event_shape, schedule, log_z, chains, generator, run.dtype, validate_args)
