"""
Which rows are unlikely, and why
================================

An outlier detector learns the density of wines. Ten wines get a wrong value in one column; the detector finds them,
and names the column.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score

from adance.sklearn import EnergyOutlierDetector

wines = load_wine().data
rng = np.random.default_rng(0)
train, new = np.split(rng.permutation(wines), [120])
spoiled, columns = new.copy(), rng.integers(new.shape[1], size=10)
spoiled[np.arange(10), columns] += 6 * wines.std(0)[columns]

detector = EnergyOutlierDetector(random_state=0).fit(train)
scores = detector.score_samples(spoiled)
print(f"AUROC {roc_auc_score(np.arange(len(spoiled)) >= 10, scores):.3f}")

found = detector.explain(spoiled[:10]).contributions.argmin(1)
print(f"right column named for {(found == columns).sum()} of 10")

# %%
# Scores of spoiled wines and of the others.

figure, ax = plt.subplots()
bins = np.linspace(scores.min(), scores.max(), 30)
ax.hist(scores[10:], bins, label="as they were")
ax.hist(scores[:10], bins, label="spoiled")
ax.set(xlabel="log-density (nats)", ylabel="wines")
ax.legend()
plt.show()
