"""Which values a type hint accepts."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import pytest
from torch import Tensor

from adance.samplers import MALA, Kernel
from adance.signatures import accepts


class Named(Protocol):
    name: str


@pytest.mark.parametrize(
    ("hint", "accepted", "refused"),
    [
        (int, [3, np.int64(3)], [2.5, True, "3", None, [3]]),
        (float, [3, 2.5, np.float32(2.5)], [True, "3", None, [3]]),
        (bool, [True], [1, "true", None]),
        (str, ["a", ""], [1, None]),
        (float | None, [None, 1], ["1"]),
        (Literal["a", "b"] | None, ["a", None], ["c", 1]),
        (tuple[float, float], [(0, 1), [0.5, 1.5]], [[0], [0, 1, 2], ["a", "b"], 1, "01"]),
        (tuple[int, ...] | None, [(), [1, 2], None], [[0.5], 3]),
        (list[str], [["a"], []], [[1], "a"]),
        (Kernel | Mapping[str, Any], [MALA(), {"steps": 3}], []),
        (Kernel, [MALA()], [3, "MALA"]),
        (Tensor | None, [None], [[1, 2], 1.0]),
        (Any, [1, None, []], []),
        (Named, [1, None], []),
        (Sequence[int], [[1], "unchecked"], []),
    ],
)
def test_values(hint, accepted, refused):
    assert [value for value in accepted if not accepts(hint, value)] == []
    assert [value for value in refused if accepts(hint, value)] == []
