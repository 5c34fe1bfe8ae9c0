"""Feature extractors: images or vectors in, features out, under a name that measurements carry."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.errors import InputError
from adance.evaluation.cache import file_key


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


def load_torchscript(path: Path, device: torch.device) -> Any:
    """The module in a file, in evaluation mode.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        return torch.jit.load(str(path), map_location=device).eval()  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path} is not a readable TorchScript file ({reason})") from None


class TorchScriptExtractor(Extractor):
    """Any TorchScript module ``(B, C, H, W)`` in [−1, 1] ``-> (B, d)``.

    Grayscale images are repeated to three channels if the module refuses one.

    Args:
        path: The file.
        event_shape: Shape of the events, on which the module is tried immediately.
        name: What measurements call its features; by default the file's name without its extension.
        device: Where it runs.

    Raises:
        InputError: There is no such file, or it does not give features of these events.
    """

    def __init__(
        self, path: str | Path, event_shape: tuple[int, ...], name: str | None = None, device: str = "cpu"
    ) -> None:
        self.path, self.device = Path(path), torch.device(device)
        if not self.path.is_file():
            raise InputError(
                f"--features {path}: no such file; give inception, classifier, pixels or a TorchScript file"
            )
        self.name = name or self.path.stem
        self.module = load_torchscript(self.path, self.device)
        self._find_repeats(event_shape)

    def features(self, x: Tensor) -> Tensor:
        """Features ``(B, d)``."""
        x = x.to(self.device)
        out = self.module(x if self.repeats == 1 else x.repeat(1, self.repeats, 1, 1))
        if not isinstance(out, Tensor) or out.ndim != 2:
            found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise InputError(f"{self.path} returned {found}, but features must be one tensor (B, d)")
        return out

    def identity(self) -> str:
        """The file's hash, and how many channels it gets."""
        return f"scripted {file_key(self.path)} {self.repeats}"

    @torch.no_grad()
    def _find_repeats(self, event_shape: tuple[int, ...]) -> None:
        """Set how often the module needs the channels of an event: 1, or 3 for grayscale."""
        message = ""
        for self.repeats in (1, 3) if len(event_shape) == 3 and event_shape[0] == 1 else (1,):
            try:
                self.features(torch.zeros(2, *event_shape))
                return
            except RuntimeError as error:  # noqa: PERF203
                message = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        raise InputError(f"{self.path} does not take events of shape {event_shape}: {message}")
