"""Features by a TorchScript file: the user's own, or the network of FID."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adance.errors import InputError
from adance.evaluation.cache import file_key
from adance.evaluation.extractor import Extractor

INCEPTION_URL = "https://nvlabs-fi-cdn.nvidia.com/stylegan2-ada-pytorch/pretrained/metrics/inception-2015-12-05.pt"
CLASSES_FLOOR = 1e-30


def _load(path: Path, device: torch.device) -> Any:
    try:
        return torch.jit.load(str(path), map_location=device).eval()  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{path} is not a TorchScript file that can be read ({reason})") from None


class Scripted(Extractor):
    """Any TorchScript module ``(B, C, H, W)`` in [−1, 1] ``-> (B, d)``.

    Grey images are repeated to three channels where the module refuses one.

    Args:
        path: The file.
        event_shape: Shape of the events, on which the module is tried at once.
        name: What figures call its features; by default the file's name without its ending.
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
        self.module = _load(self.path, self.device)
        self.repeats = 1
        self.repeats = self._find_repeats(event_shape)

    def features(self, x: Tensor) -> Tensor:
        """Features ``(B, d)``."""
        x = x.to(self.device)
        out = self.module(x if self.repeats == 1 else x.repeat(1, self.repeats, 1, 1))
        if not isinstance(out, Tensor) or out.ndim != 2:
            found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise InputError(f"{self.path} returned {found}, but features must be one tensor (B, d)")
        return out

    def identity(self) -> str:
        """The file's hash and how it is called."""
        return f"scripted {file_key(self.path)} {self.repeats}"

    @torch.no_grad()
    def _find_repeats(self, event_shape: tuple[int, ...]) -> int:
        grey = len(event_shape) == 3 and event_shape[0] == 1
        complaint = ""
        for self.repeats in (1, 3) if grey else (1,):
            complaint = self._complaint(event_shape)
            if not complaint:
                return self.repeats
        raise InputError(f"{self.path} does not take events of shape {event_shape}: {complaint}")

    def _complaint(self, event_shape: tuple[int, ...]) -> str:
        """What the module says against two events; nothing where it takes them."""
        try:
            self.features(torch.zeros(2, *event_shape))
        except RuntimeError as error:
            return (str(error).strip().splitlines() or ["an error without words"])[-1]
        return ""


class Inception(Extractor):
    """The network of FID and of the Inception score: 2015-12-05 weights, 2048 features of the last pooling layer.

    It is the TorchScript translation that StyleGAN2-ADA and clean-fid use, called as they call it: bytes 0..255 of
    three channels, which it resizes to 299×299 itself; class probabilities without the output layer's bias. The file is
    fetched once into torch's hub cache (``torch.hub.get_dir()/checkpoints``).

    Args:
        device: Where it runs.

    Raises:
        InputError: The file is not in the cache and cannot be fetched, or cannot be read.
    """

    name = "inception"

    def __init__(self, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self.path = fetch_inception()
        self.module = _load(self.path, self.device)

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
        return probabilities.double().log().clamp(min=math.log(CLASSES_FLOOR))

    def identity(self) -> str:
        """The file's hash."""
        return f"inception {file_key(self.path)}"

    def _bytes(self, x: Tensor) -> Tensor:
        x = x.to(self.device).expand(-1, 3, -1, -1) if x.shape[1] == 1 else x.to(self.device)
        return ((x + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)


def fetch_inception() -> Path:
    """The file in torch's hub cache, fetched where it is not there yet; a download that breaks off leaves nothing.

    Raises:
        InputError: It cannot be fetched.
    """
    path = Path(torch.hub.get_dir()) / "checkpoints" / "inception-2015-12-05.pt"
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(INCEPTION_URL, str(path))
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            raise InputError(
                f"--features inception: cannot fetch {INCEPTION_URL} ({reason}); bring the file to {path}, "
                "or choose classifier, pixels or a TorchScript file"
            ) from None
    return path
