import dataclasses
import itertools
import math

import pytest
import torch

from adance.data import Dataset, Standardize
from adance.errors import InputError
from adance.training.batches import Batches
from adance.training.settings import Settings

CPU = torch.device("cpu")


def batches(data, process=0, of=1, **settings):
    return Batches(data, Settings(**{"batch_size": 8, **settings}), CPU, process, of)


def rows_of(data, x):
    """Which training rows these are; each is found exactly once."""
    every = data.batch(torch.arange(len(data.train)))
    same = (x[:, None] == every[None]).flatten(2).all(2)
    assert (same.sum(1) == 1).all()
    return same.long().argmax(1).tolist()


def epoch(data, made, number, generator, per_epoch=6):
    steps = range(number * per_epoch + 1, (number + 1) * per_epoch + 1)
    return [rows_of(data, made.batch(step, generator)) for step in steps]


def test_an_epoch_has_every_row_once_but_those_of_the_last_short_batch(pictures, generator):
    made = batches(pictures)
    orders = []
    for number in range(4):
        drawn = list(itertools.chain(*epoch(pictures, made, number, generator)))
        assert len(drawn) == len(set(drawn)) == 48
        orders.append(drawn)
    assert len({tuple(order) for order in orders}) == 4
    # what is left out differs from epoch to epoch
    assert len({frozenset(range(50)) - frozenset(order) for order in orders}) > 1


def test_a_batch_depends_on_the_seed_and_the_step_alone(pictures, generator):
    forward = [rows_of(pictures, batches(pictures).batch(step, generator)) for step in range(1, 20)]
    one = batches(pictures)
    backward = [rows_of(pictures, one.batch(step, generator)) for step in range(19, 0, -1)]
    assert forward == backward[::-1]
    assert forward != [rows_of(pictures, batches(pictures, seed=1).batch(step, generator)) for step in range(1, 20)]


def test_without_augmentation_nothing_is_drawn(pictures, generator):
    before = generator.get_state()
    batches(pictures).batch(1, generator)
    assert torch.equal(generator.get_state(), before)


def test_processes_take_disjoint_parts_of_the_same_order(pictures, generator):
    first, second, alone = batches(pictures, 0, 2), batches(pictures, 1, 2), batches(pictures, batch_size=16)
    for step in range(1, 8):
        mine, others = (rows_of(pictures, made.batch(step, generator)) for made in (first, second))
        assert not set(mine) & set(others)
        assert mine + others == rows_of(pictures, alone.batch(step, generator))


def test_flip_mirrors_each_image_with_probability_one_half(pictures, generator):
    made, mirrored = batches(pictures, batch_size=50, flip=True), 0
    plain = batches(pictures, batch_size=50)
    for step in range(1, 21):
        x, there = made.batch(step, generator), plain.batch(step, generator)
        same = (x == there).flatten(1).all(1)
        turned = (x == there.flip(-1)).flatten(1).all(1)
        assert torch.equal(same, ~turned)
        mirrored += int(turned.sum())
    assert abs(mirrored - 500) < 4 * math.sqrt(1000 * 0.25)


def test_dequantize_fills_one_level_evenly(pictures, generator):
    made, plain = batches(pictures, batch_size=50, dequantize=True), batches(pictures, batch_size=50)
    width = 2 / 255
    noise = torch.cat([made.batch(s, generator) - plain.batch(s, generator) for s in range(1, 21)]).flatten()
    assert noise.abs().max() <= width / 2 * 1.0001
    assert noise.mean().abs() < 4 * width / math.sqrt(12 * len(noise))
    assert noise.std() == pytest.approx(width / math.sqrt(12), rel=0.02)
    assert (noise < -width / 4).float().mean() == pytest.approx(0.25, abs=0.02)


def test_data_noise_is_gaussian_of_that_deviation(pictures, generator):
    made, plain = batches(pictures, batch_size=50, data_noise=0.3), batches(pictures, batch_size=50)
    noise = torch.cat([made.batch(s, generator) - plain.batch(s, generator) for s in range(1, 41)]).flatten() / 0.3
    n = len(noise)
    assert noise.mean().abs() < 4 / math.sqrt(n)
    assert noise.var() == pytest.approx(1, abs=4 * math.sqrt(2 / n))
    assert noise.pow(4).mean() == pytest.approx(3, abs=4 * math.sqrt(96 / n))


def test_what_does_not_fit_the_data_is_refused(pictures):
    rows = torch.randn(30, 2)
    vectors = Dataset("rows", "vector", rows, rows, Standardize.fit(rows))
    with pytest.raises(InputError, match="pictures has 50 training rows, fewer than one batch of 51"):
        batches(pictures, batch_size=51)
    with pytest.raises(InputError, match="fewer than one batch of 52 in 2 processes; use a smaller batch_size"):
        batches(pictures, 0, 2, batch_size=26)
    with pytest.raises(InputError, match="rows has none"):
        batches(vectors, dequantize=True)
    with pytest.raises(InputError, match="flip is for images; rows has vectors"):
        batches(vectors, flip=True)


def test_an_image_without_levels_is_not_dequantized(pictures):
    smooth = dataclasses.replace(pictures.transform, levels=None)
    with pytest.raises(InputError, match="quantization levels"):
        batches(dataclasses.replace(pictures, transform=smooth), dequantize=True)
