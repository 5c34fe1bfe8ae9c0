import pytest
import torch

from adance.errors import InputError
from adance.evaluation.feature_metrics import precision_and_recall


def test_precision_and_recall_by_hand():
    """k = 1 on a line: the balls of real data cover [−40, 11], those of samples [−0.5, 19.5] and [10, 70]."""
    real = torch.tensor([[0.0], [1.0], [6.0], [-20.0]])
    generated = torch.tensor([[0.5], [0.0], [10.0], [40.0]])
    assert precision_and_recall(real, generated, k=1) == pytest.approx((0.75, 0.75))


def test_one_law_has_both_high(generator):
    x = torch.randn(2000, 4, generator=generator)
    precision, recall = precision_and_recall(x[:1000], x[1000:])
    assert precision > 0.85
    assert recall > 0.85


def test_a_part_of_the_law_has_precision_without_recall(generator):
    real = torch.randn(1000, 4, generator=generator)
    part = 0.05 * torch.randn(1000, 4, generator=generator)
    precision, recall = precision_and_recall(real, part)
    assert precision > 0.99
    assert recall < 0.01


def test_large_sets_are_chunked_alike(generator, monkeypatch):
    x = torch.randn(300, 3, generator=generator)
    whole = precision_and_recall(x[:150], x[150:])
    monkeypatch.setattr("adance.evaluation.feature_metrics.CHUNK", 7)
    assert precision_and_recall(x[:150], x[150:]) == whole


def test_fewer_rows_than_neighbors_are_an_error():
    with pytest.raises(InputError, match="more than 3 rows"):
        precision_and_recall(torch.zeros(3, 2), torch.zeros(9, 2))
