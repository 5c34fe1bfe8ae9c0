"""torchmetrics on features that are computed already: its formulas, in float64, without its network or its warnings."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from adance.errors import InputError
from adance.evaluation.reference import Reference


class GivenFeatures(nn.Module):
    """Takes the place of torchmetrics' network: its inputs are the features ``(B, d)``."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.num_features = d

    def forward(self, features: Tensor) -> Tensor:
        """The features, unchanged."""
        return features


def check_features(features: Tensor, reference: Reference) -> tuple[int, int]:
    """Numbers of samples and of features in ``features`` ``(n, d)``.

    Raises:
        InputError: There are fewer than two samples, or the reference has another number of features.
    """
    d = len(reference.mean)
    if features.ndim != 2 or features.shape[1] != d:
        raise InputError(f"features have shape {tuple(features.shape)}, but the reference's need (n, {d})")
    if len(features) < 2:
        raise InputError(f"a distance of features needs at least 2 samples, got {len(features)}")
    return len(features), d


@contextmanager
def no_warnings() -> Iterator[None]:
    """Hide torchmetrics' warnings, which are about memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
