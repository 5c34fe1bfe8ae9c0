"""The reference that samples are compared with: features of real data, cached by content of data and extractor."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from adance.data.dataset import Dataset
from adance.errors import InputError
from adance.evaluation.cache import cached_tensors, content_key
from adance.evaluation.extractor import Extractor, extract

Split = Literal["train", "test"]
VERSION = "reference 1"
MAX_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Reference:
    """Features of real data.

    Attributes:
        n: Rows that mean and covariance are over.
        mean: ``(d,)`` float64.
        covariance: ``(d, d)`` float64, with n − 1 in the denominator.
        rows: Features ``(m, d)`` of up to 10,000 rows, for what needs more than two moments.
    """

    n: int
    mean: Tensor
    covariance: Tensor
    rows: Tensor

    @classmethod
    def of(cls, features: Tensor) -> "Reference":
        """Moments of features ``(n, d)``, and up to 10,000 of the rows.

        Raises:
            InputError: There are fewer than two rows, which have no covariance.
        """
        return cls(len(features), **_moments(features))


def load_reference(extractor: Extractor, data: Dataset, split: Split = "train") -> Reference:
    """Features of one split of ``data``, from the cache if they are in it."""
    if not extractor.cached:
        return Reference.of(_features(extractor, data, split))
    raw = data.train if split == "train" else data.test
    key = content_key(VERSION, raw, data.transform.state(), extractor.identity())
    return Reference(len(raw), **cached_tensors("references", key, lambda: _moments(_features(extractor, data, split))))


def _moments(features: Tensor) -> dict[str, Tensor]:
    if len(features) < 2:
        raise InputError(f"a distance needs at least 2 rows for a covariance, got {len(features)}")
    features = features.double()
    mean = features.mean(0)
    centered = features - mean
    covariance = centered.T @ centered / (len(features) - 1)
    order = torch.randperm(len(features), generator=torch.Generator().manual_seed(0))[:MAX_ROWS]
    return {"mean": mean, "covariance": covariance, "rows": features[order]}


def _features(extractor: Extractor, data: Dataset, split: Split) -> Tensor:
    parts = torch.split(torch.arange(split_size(data, split)), extractor.batch_size)
    return torch.cat([extract(extractor, as_events(data.batch(rows, split), data.kind)) for rows in parts])


def split_size(data: Dataset, split: Split) -> int:
    """Number of rows of a split."""
    return len(data.train if split == "train" else data.test)


def as_events(x: Tensor, kind: str) -> Tensor:
    """Events as they are measured: images clamped to [−1, 1], vectors as they are."""
    return x.clamp(-1, 1) if kind == "image" else x
