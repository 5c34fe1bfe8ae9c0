"""What docs/tables.md shows runs."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def test_what_the_page_shows_runs() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=60), "color": rng.choice(["red", "blue"], 60)})
    frame.loc[0, "size"] = np.nan
    names = {"train": rng.normal(size=(60, 2)), "new": rng.normal(0.5, 1, (60, 2)), "frame": frame}
    names["labels"] = rng.integers(0, 2, 60)
    for text in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(text, str(PAGE), "exec"), names)
    assert len(names["reasons"]) == 5
    assert names["rows"].shape == (100, 2)
    assert 1 <= names["size"] <= 60
    assert names["chances"].shape == (60, 2)
