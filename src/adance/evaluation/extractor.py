"""What a feature extractor is: images or vectors in, features out, under a name that measurements carry."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from adance.errors import InputError


class Extractor(ABC):
    """Features of events in the model's units; images are clamped to [−1, 1] before they come here.

    Attributes:
        name: What measurements call it: ``inception``, ``classifier``, ``pixels``, or a file's.
        batch_size: Events in one pass.
        cached: Whether features of real data are kept in the cache.
    """

    name: str
    batch_size: int = 250
    cached: bool = True

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """Features ``(B, d)`` of events ``(B, *event)``."""

    @abstractmethod
    def identity(self) -> str:
        """Changes whenever the features could; part of the key of cached statistics."""

    def log_probabilities(self, x: Tensor) -> Tensor | None:
        """Log of the class probabilities ``(B, classes)`` of events ``(B, *event)``; ``None`` without classes."""
        return None

    @property
    def distance_name(self) -> str:
        """What a Fréchet distance of these features is called; only Inception's is FID."""
        return f"FD-{self.name} (Fréchet distance, {self.name} features)"

    def label(self, metric: str) -> str:
        """What a metric of these features is called."""
        return f"{metric}, {self.name} features"


class Pixels(Extractor):
    """The values of an event, flattened: ``(B, *event) -> (B, D)``."""

    name = "pixels"
    batch_size = 10_000
    cached = False

    def features(self, x: Tensor) -> Tensor:
        """The values ``(B, D)``."""
        return x.flatten(1)

    def identity(self) -> str:
        """Constant, since nothing can change."""
        return "pixels"


@torch.no_grad()
def extract(extractor: Extractor, x: Tensor) -> Tensor:
    """Features ``(N, d)`` of ``x`` ``(N, *event)``, float64 on the CPU, batch by batch.

    Raises:
        InputError: The features are not one finite row for each event.
    """
    features = torch.cat([extractor.features(part).double().cpu() for part in torch.split(x, extractor.batch_size)])
    if features.ndim != 2 or len(features) != len(x):
        raise InputError(
            f"the extractor {extractor.name} returned features of shape {tuple(features.shape)} for {len(x)} events; "
            f"they must be ({len(x)}, d)"
        )
    if not features.isfinite().all():
        row = int((~features.isfinite().all(1)).nonzero()[0])
        raise InputError(f"the features of event {row} (from 0) by {extractor.name} are not finite")
    return features


@torch.no_grad()
def classify(extractor: Extractor, x: Tensor) -> Tensor | None:
    """Log-probabilities ``(N, classes)``, float64 on the CPU, batch by batch; ``None`` without classes."""
    parts = [extractor.log_probabilities(part) for part in torch.split(x, extractor.batch_size)]
    known = [part.double().cpu() for part in parts if part is not None]
    return torch.cat(known) if known else None
