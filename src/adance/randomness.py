"""Explicit randomness for code that knows only torch's global generator."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from adance.errors import InputError


def check_seed(seed: int, what: str = "seed") -> None:
    """Check that a generator takes ``seed``.

    Raises:
        InputError: It is out of range; the message calls it ``what``.
    """
    if not 0 <= seed < 2**63:
        raise InputError(f"{what} must be 0 or more and less than 2**63, got {seed}")


@contextmanager
def fork_rng(seed: int) -> Iterator[None]:
    """Seed torch's global generators inside the block, for code that draws from them, and restore them afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


@contextmanager
def drawing_from(generator: torch.Generator | None) -> Iterator[None]:
    """What is drawn inside from the global generator of the generator's device comes from ``generator`` instead.

    ``generator`` continues where the draws stopped, and the global one is left as it was; nothing waits for the device.
    With ``None`` the global generator itself is used.
    """
    if generator is None:
        yield
        return
    shared = _global_generator(generator.device)
    kept = shared.get_state()
    shared.set_state(generator.get_state())
    try:
        yield
    finally:
        generator.set_state(shared.get_state())
        shared.set_state(kept)


@contextmanager
def weights_drawn_from(generator: torch.Generator | None) -> Iterator[None]:
    """As :func:`drawing_from`, for weights that are drawn on the CPU on any generator's device (it waits for it)."""
    if generator is None or generator.device.type == "cpu":
        with drawing_from(generator):
            yield
        return
    seed = torch.randint(2**62, (), generator=generator, device=generator.device)
    with drawing_from(torch.Generator().manual_seed(int(seed))):
        yield


def _global_generator(device: torch.device) -> torch.Generator:
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "mps":
        return torch.mps._get_default_mps_generator()
    module = torch.get_device_module(device)
    index = module.current_device() if device.index is None else device.index
    return module.default_generators[index]  # type: ignore[no-any-return]
