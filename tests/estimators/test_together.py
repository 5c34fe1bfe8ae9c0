"""The estimators inside scikit-learn's own tools."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from adance.sklearn import EnergyClassifier, EnergyDensity, EnergyOutlierDetector

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"height": RNG.normal(170, 10, 200), "color": RNG.choice(["red", "blue"], 200), "age": RNG.integers(20, 60, 200)}
)
FRAME.loc[3, "height"] = np.nan

READ = """
import pickle, sys
import numpy as np
detector, x, scores = pickle.load(open(sys.argv[1], "rb"))
np.testing.assert_array_equal(detector.score_samples(x), scores)
"""


def test_a_pipeline_of_categories_and_missing_values() -> None:
    columns = ColumnTransformer(
        [("color", OneHotEncoder(sparse_output=False), ["color"]), ("numbers", SimpleImputer(), ["height", "age"])]
    ).set_output(transform="pandas")
    detector = make_pipeline(columns, EnergyOutlierDetector(random_state=0)).fit(FRAME)
    odd = FRAME.iloc[[0]].assign(height=300.0)
    assert detector.predict(odd)[0] == -1
    assert list(detector[-1].feature_names_in_) == [
        "color__color_blue",
        "color__color_red",
        "numbers__height",
        "numbers__age",
    ]


def test_a_grid_search_chooses_the_noise_by_likelihood() -> None:
    two = np.r_[RNG.normal(-3, 0.1, (150, 1)), RNG.normal(3, 0.1, (150, 1))]
    search = GridSearchCV(EnergyDensity(max_steps=1, random_state=0), {"noise": ["gaussian", "kde"]}, cv=3).fit(two)
    assert search.best_params_ == {"noise": "kde"}


def test_the_seed_determines_everything() -> None:
    x = np.random.default_rng(1).normal(size=(100, 2))
    y = (x[:, 0] > 0).astype(int)
    one = EnergyClassifier(random_state=1)
    np.testing.assert_array_equal(one.fit(x, y).predict_proba(x), clone(one).fit(x, y).predict_proba(x))
    assert (EnergyClassifier(random_state=2).fit(x, y).predict_proba(x) != one.predict_proba(x)).any()


def test_a_pickle_is_opened_in_a_fresh_process(tmp_path: Path) -> None:
    x = RNG.normal(size=(100, 3))
    detector = EnergyOutlierDetector(random_state=0).fit(x)
    path = tmp_path / "detector.pickle"
    path.write_bytes(pickle.dumps((detector, x, detector.score_samples(x))))
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
