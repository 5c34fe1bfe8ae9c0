"""Kernels refuse settings that are not finite."""

import math

import pytest

from adance.errors import InputError
from adance.samplers import (
    HMC,
    MALA,
    Flip,
    Langevin,
    MetropolisHastings,
    MomentumLangevin,
    RandomWalkMetropolis,
    UnderdampedLangevin,
)

SETTINGS = {
    Langevin: ("step_size", "noise_std", "temperature"),
    MomentumLangevin: ("step_size", "noise_std", "temperature"),
    UnderdampedLangevin: ("step_size", "friction", "temperature"),
    MALA: ("step_size", "temperature", "adaptation"),
    HMC: ("step_size", "temperature", "adaptation"),
    RandomWalkMetropolis: ("step_size", "temperature", "adaptation"),
}


@pytest.mark.parametrize("value", [math.inf, math.nan])
@pytest.mark.parametrize(("made_from", "name"), [(made, name) for made, names in SETTINGS.items() for name in names])
def test_a_setting(made_from, name, value):
    with pytest.raises(InputError, match=f"{made_from.__name__} needs .*finite.*{name}={value}"):
        made_from(**{name: value})


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_the_temperature_of_any_proposal(value):
    with pytest.raises(InputError, match=f"temperature={value}"):
        MetropolisHastings(Flip(), temperature=value)


@pytest.mark.parametrize(("made_from", "name"), [(MALA, "steps"), (HMC, "leapfrog_steps"), (Langevin, "step_size")])
def test_only_optional_settings_may_be_none(made_from, name):
    with pytest.raises(InputError, match=f"{name} must be .*, got None"):
        made_from(**{name: None})
    assert Langevin(noise_std=None, temperature=None).temperature == pytest.approx(1)
