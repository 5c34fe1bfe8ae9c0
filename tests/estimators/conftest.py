import numpy as np
import pytest


@pytest.fixture(autouse=True)
def fresh_numbers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the random numbers of the module again, so that a test does not depend on the tests before it."""
    if hasattr(request.module, "RNG"):
        monkeypatch.setattr(request.module, "RNG", np.random.default_rng(1))
