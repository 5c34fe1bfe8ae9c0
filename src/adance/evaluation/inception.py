"""Inception: the network of FID, whose features are one choice among others, and the Inception score."""

import math
from pathlib import Path

import torch
from torch import Tensor

from adance.errors import InputError
from adance.evaluation.cache import file_key
from adance.evaluation.extractor import Extractor, load_torchscript
from adance.evaluation.measurement import Measurement
from adance.evaluation.reference import Reference
from adance.evaluation.sample_set import SampleSet, for_features
from adance.evaluation.torchmetrics_features import GivenFeatures, no_warnings
from adance.randomness import fork_rng

INCEPTION_URL = "https://nvlabs-fi-cdn.nvidia.com/stylegan2-ada-pytorch/pretrained/metrics/inception-2015-12-05.pt"
SMALLEST_PROBABILITY = 1e-30
SPLITS = 10
SMALLEST_LOG_P = -600.0
"""Smallest log-probability in the score: still a number in float64 once it is exponentiated."""


class Inception(Extractor):
    """The network of FID and of the Inception score: 2015-12-05 weights, 2048 features of the last pooling layer.

    It is the TorchScript translation that StyleGAN2-ADA and clean-fid use, called as they call it: bytes 0..255 of
    three channels, which it resizes to 299×299 itself; class probabilities without the output layer's bias. The file is
    downloaded once into torch's hub cache (``torch.hub.get_dir()/checkpoints``).

    Args:
        device: Where it runs.

    Raises:
        InputError: The file is not in the cache and cannot be downloaded, or it cannot be read.
    """

    name = "inception"

    def __init__(self, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self.path = fetch_inception()
        self.module = load_torchscript(self.path, self.device)

    @property
    def distance_name(self) -> str:
        """FID."""
        return "FID"

    def features(self, x: Tensor) -> Tensor:
        """Features ``(B, 2048)`` of images ``(B, C, H, W)`` in [−1, 1], C of 1 or 3."""
        return self.module(self._bytes(x), return_features=True)  # type: ignore[no-any-return]

    def log_probabilities(self, x: Tensor) -> Tensor:
        """Log of the class probabilities ``(B, 1008)``, at least log 1e-30."""
        probabilities: Tensor = self.module(self._bytes(x), no_output_bias=True)
        return probabilities.double().log().clamp(min=math.log(SMALLEST_PROBABILITY))

    def identity(self) -> str:
        """The file's hash."""
        return f"inception {file_key(self.path)}"

    def _bytes(self, x: Tensor) -> Tensor:
        x = x.to(self.device).expand(-1, 3, -1, -1) if x.shape[1] == 1 else x.to(self.device)
        return ((x + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)


def fetch_inception() -> Path:
    """The file in torch's hub cache, downloaded if it is not there yet; an interrupted download leaves nothing.

    Raises:
        InputError: The download failed.
    """
    path = Path(torch.hub.get_dir()) / "checkpoints" / "inception-2015-12-05.pt"
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(INCEPTION_URL, str(path))
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            raise InputError(
                f"--features inception: cannot download {INCEPTION_URL} ({reason}); copy the file to {path}, "
                "or choose classifier, pixels or a TorchScript file"
            ) from None
    return path


def inception_score(log_probabilities: Tensor, *, splits: int = SPLITS, seed: int = 0) -> tuple[float, float]:
    """``exp E_x KL(p(y|x) ‖ p(y))`` (thesis 5.2; Salimans et al. 2016), from 1 to the number of classes.

    Its mean and standard deviation over ``splits`` equal parts of the samples, in random order; samples beyond the
    last whole part are left out.

    Args:
        log_probabilities: log p(y|x) ``(n, classes)``; a constant in a row makes no difference.
        splits: Number of parts.
        seed: Seed of the order.

    Raises:
        InputError: There are fewer samples than parts, or less than one part.
    """
    from torchmetrics.image.inception import InceptionScore

    n, classes = log_probabilities.shape
    if splits < 1 or n < splits:
        raise InputError(
            f"the Inception score cannot split {n} images into {splits} parts; use at least {splits} images"
        )
    with no_warnings(), fork_rng(seed):
        metric = InceptionScore(feature=GivenFeatures(classes), splits=splits).set_dtype(torch.float64)
        # A probability that underflows to 0 would make 0·∞ of its term.
        log_p = log_probabilities.double().log_softmax(1).clamp(min=SMALLEST_LOG_P)
        metric.update(log_p[torch.randperm(n)[: n - n % splits]])
        mean, spread = metric.compute()
    return float(mean), float(spread) if splits > 1 else 0.0


@for_features
def measure_inception_score(samples: SampleSet, extractor: Extractor, reference: Reference) -> list[Measurement]:
    """The score of the extractor's class probabilities, if any; only Inception's is called the Inception score."""
    if samples.log_probabilities is None:
        return []
    score, spread = inception_score(samples.log_probabilities, seed=samples.seed)
    name = "Inception score" if extractor.name == "inception" else f"{extractor.name} score (Inception's formula)"
    about = {"extractor": extractor.name, "better": "higher", "note": f"{SPLITS} splits"}
    return [samples.measurement("inception_score", name, score, spread=spread, **about)]
