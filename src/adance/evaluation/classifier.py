"""Features by a small classifier of the data set's labels: what distinguishes its classes, without a download."""

import logging
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adance.data.dataset import Dataset
from adance.errors import InputError
from adance.evaluation.cache import cached_tensors, content_key
from adance.evaluation.extractor import Extractor
from adance.randomness import fork_rng

log = logging.getLogger("adance")

VERSION = "classifier 1"
MAX_DENSE = 256
STEPS, BATCH_SIZE, LEARNING_RATE, NOISE_STD = 1500, 128, 1e-3, 0.1


def make_network(event_shape: Sequence[int], classes: int) -> nn.Sequential:
    """A body ``(B, *event) -> (B, d)`` and a head ``(B, d) -> (B, classes)``.

    Events of up to 256 values: layers of 128 and d = 32. Larger images: four convolutions and d = 64.
    """
    size = math.prod(event_shape)
    if len(event_shape) == 1 or size <= MAX_DENSE:
        body = nn.Sequential(nn.Flatten(), nn.Linear(size, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU())
        return nn.Sequential(body, nn.Linear(32, classes))
    layers: list[nn.Module] = []
    for n_in, n_out, stride in ((event_shape[0], 32, 1), (32, 64, 2), (64, 64, 2), (64, 64, 2)):
        layers += [nn.Conv2d(n_in, n_out, 3, stride, padding=1), nn.ReLU()]
    body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64 * 16, 64), nn.ReLU())
    return nn.Sequential(body, nn.Linear(64, classes))


class Classifier(Extractor):
    """The last hidden layer of a classifier of the training rows, and its class probabilities.

    1,500 steps of Adam at 1e-3 on batches of 128 with Gaussian noise of 0.1, all from one seed. The weights are cached
    by the content of rows, labels and units.

    Args:
        data: A data set with labels.
        seed: Seed of weights, batches and noise.

    Attributes:
        classes: The labels, in the order of the probabilities.
        accuracy: Share of held-out rows that are classified correctly; ``nan`` without held-out labels.

    Raises:
        InputError: The data have no labels, or fewer than two classes.
    """

    name = "classifier"

    def __init__(self, data: Dataset, seed: int = 0) -> None:
        if data.train_labels is None:
            raise InputError(f"--features classifier: {data.name} has no labels; choose pixels or a TorchScript file")
        self.classes = torch.unique(data.train_labels).tolist()
        if len(self.classes) < 2:
            raise InputError(f"--features classifier: {data.name} has one class only; choose pixels")
        self.key = content_key(VERSION, data.train, data.train_labels, data.transform.state(), seed)
        weights = cached_tensors("classifiers", self.key, lambda: _train(data, len(self.classes), seed).state_dict())
        with fork_rng(seed):  # the initial weights are replaced, but drawing them would move torch's generator
            self.network = make_network(data.event_shape, len(self.classes))
        self.network.load_state_dict(weights)
        self.network.eval().requires_grad_(False)
        self.accuracy = self._accuracy(data)

    def features(self, x: Tensor) -> Tensor:
        """Features ``(B, d)``."""
        return self.network[0](x.cpu())  # type: ignore[no-any-return]

    def log_probabilities(self, x: Tensor) -> Tensor:
        """Log-probabilities ``(B, classes)``."""
        return self.network(x.cpu()).double().log_softmax(1)  # type: ignore[no-any-return]

    def identity(self) -> str:
        """The key of the cached weights."""
        return f"classifier {self.key}"

    def _accuracy(self, data: Dataset) -> float:
        if data.test_labels is None:
            return math.nan
        rows = torch.arange(len(data.test))
        guesses = torch.cat([self.network(data.batch(part, "test")).argmax(1) for part in torch.split(rows, 1000)])
        return float((torch.tensor(self.classes)[guesses] == data.test_labels).double().mean())


def _train(data: Dataset, classes: int, seed: int) -> nn.Sequential:
    assert data.train_labels is not None
    log.info(f"training a classifier on {data.name} to compute evaluation features; it is cached for later runs")
    labels = torch.searchsorted(torch.unique(data.train_labels), data.train_labels)
    with fork_rng(seed):
        network = make_network(data.event_shape, classes)
        generator = torch.Generator()
        generator.set_state(torch.get_rng_state())  # batches continue the stream of the initial weights
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    for _ in range(STEPS):
        rows = torch.randint(len(data.train), (BATCH_SIZE,), generator=generator)
        x = data.batch(rows)
        loss = F.cross_entropy(network(x + NOISE_STD * torch.randn(x.shape, generator=generator)), labels[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return network
