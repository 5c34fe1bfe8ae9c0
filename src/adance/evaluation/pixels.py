"""Features that are the event itself."""

from torch import Tensor

from adance.evaluation.extractor import Extractor


class Pixels(Extractor):
    """The values of an event, flattened: ``(B, *event) -> (B, D)``."""

    name = "pixels"
    batch_size = 10_000
    kept = False

    def features(self, x: Tensor) -> Tensor:
        """The values ``(B, D)``."""
        return x.flatten(1)

    def identity(self) -> str:
        """Nothing can change."""
        return "pixels"
