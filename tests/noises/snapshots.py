"""Snapshot noises with every number given, for tests."""

from adance.noises import Separation
from adance.objectives import Setting
from adance.objectives.objective import Site
from adance.objectives.snapshot_recipe import SnapshotRecipe
from adance.samplers import ChainOptions


def snapshot(
    energy,
    data,
    sampler,
    *,
    batch=8,
    start="rejuvenated",
    rejuvenation=0.0,
    interval=1,
    pool=0,
    buffer=200,
    snapshots=1,
    finish=0.0,
    steps=None,
    generator=None,
    options=None,
):
    recipe = SnapshotRecipe(sampler, start, rejuvenation, interval, pool, buffer, snapshots, finish)
    setting = Setting(tuple(data.shape[1:]), batch, steps=steps)
    return recipe.build(Site(energy, data, setting, generator, None, options or ChainOptions()))


def unused():
    raise AssertionError("a fixed interval does not look at the batch")


UNSEEN = Separation(unused, unused)
