import json
import math

import pytest
import torch

from adance.data import Identity, ImageScale, Standardize, transform_from_state
from adance.data.dequantize import dequantize, level_bins
from adance.errors import InputError

RAW = torch.tensor([[1.0, 5.0, 1e9], [3.0, 5.0, 1e9 + 1], [5.0, 5.0, 1e9 + 2]], dtype=torch.float64)
TRANSFORMS = [
    Identity(),
    ImageScale(0.0, 255.0, 256, 3),
    ImageScale(0.0, 16.0, 17, 3),
    ImageScale(-1.0, 1.0, None, 3),
    Standardize.fit(RAW),
]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
def test_round_trip_state_and_log_det(transform):
    again = transform_from_state(json.loads(json.dumps(transform.state())))
    assert again == transform
    x = transform.to_model(torch.tensor([[0.0, 3.0, 7.0]], dtype=torch.float64))
    assert x.dtype == torch.float32
    torch.testing.assert_close(transform.to_model(transform.to_data(x)), x)
    zero, one = torch.zeros(1, 3), torch.ones(1, 3)
    scale = 1 / (transform.to_data(one).double() - transform.to_data(zero).double())
    assert scale.log().sum().item() == pytest.approx(transform.log_det, abs=1e-5)


def test_image_values():
    scale = ImageScale(0.0, 255.0, 256, 4)
    raw = torch.tensor([0, 255, 51], dtype=torch.uint8)
    torch.testing.assert_close(scale.to_model(raw), raw.float() / 127.5 - 1)
    assert scale.level_width == 2 / 255
    assert scale.log_det == pytest.approx(-4 * math.log(127.5))
    assert ImageScale(0.0, 1.0, None, 4).to_model(torch.tensor([0.0, 0.5, 1.0])).tolist() == [-1, 0, 1]
    assert torch.equal(ImageScale(-1.0, 1.0, None, 4).to_model(torch.tensor([-1.0, 0.3])), torch.tensor([-1.0, 0.3]))
    assert Identity().level_width is None


def test_standardize():
    transform = Standardize.fit(RAW)
    assert transform.std[1] == 1
    x = transform.to_model(RAW)
    torch.testing.assert_close(x[:, 0], x[:, 2])
    torch.testing.assert_close(x[:, 1], torch.zeros(3))
    torch.testing.assert_close(transform.to_data(x), RAW, rtol=0, atol=1e-6)


def test_constant_and_tiny_columns():
    assert Standardize.fit(torch.full((1000, 1), 0.1, dtype=torch.float64)).std == (1.0,)
    tiny = Standardize.fit(torch.tensor([[1e-200], [3e-200]], dtype=torch.float64))
    assert tiny.std[0] == pytest.approx(1e-200)
    assert math.isfinite(tiny.log_det)


@pytest.mark.parametrize(
    "state", [{}, {"type": "wavelet"}, {"type": "image_scale"}, {"type": "standardize", "mean": 1}]
)
def test_bad_state(state):
    with pytest.raises(InputError, match="transform"):
        transform_from_state(state)


def test_bins_are_centered_on_their_values_and_cut_at_the_bounds():
    x, u = torch.linspace(-1, 1, 3), torch.tensor([0.0, 0.5, 1.0])
    assert dequantize(x, 1.0, u).tolist() == [-1.5, 0, 1.5]
    assert dequantize(x, 1.0, u, (-1.5, 1.5)).tolist() == [-1.5, 0, 1.5]
    assert dequantize(x, 1.0, u, (-1.0, 1.25)).tolist() == [-1, 0, 1.25]
    low, high = level_bins(x, 1.0, (-1.0, 0.25))
    assert (high - low).tolist() == [0.5, 0.75, 0]
