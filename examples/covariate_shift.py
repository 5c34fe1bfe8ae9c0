"""
Weights for covariate shift
===========================

Training rows come from one distribution, test rows from another. The ratio of their densities, learned without knowing
either, weights the training rows so that a straight line fits where the test rows are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from adance.sklearn import DensityRatio

rng = np.random.default_rng(0)
train, test = rng.normal(1, 0.5, (400, 1)), rng.normal(2, 0.25, (400, 1))
target = lambda x: np.sinc(x[:, 0]) + 0.1 * rng.normal(size=len(x))  # noqa: E731
y_train, y_test = target(train), target(test)

ratio = DensityRatio(random_state=0).fit(np.concatenate([train, test]), np.repeat([0, 1], 400))
weights = ratio.weights(train)
exact = 0.5 * ((train[:, 0] - 1) / 0.5) ** 2 - 0.5 * ((train[:, 0] - 2) / 0.25) ** 2 + np.log(2)
print(f"correlation of the log-ratio with the exact one {np.corrcoef(ratio.log_ratio(train), exact)[0, 1]:.3f}")

plain = LinearRegression().fit(train, y_train)
weighted = LinearRegression().fit(train, y_train, sample_weight=weights)
errors = [np.mean((line.predict(test) - y_test) ** 2) for line in (plain, weighted)]
print(f"squared error on test rows: plain {errors[0]:.3f}, weighted {errors[1]:.3f}")

# %%
# The weighted line follows the test rows.

figure, ax = plt.subplots()
ax.scatter(train, y_train, 60 * weights / weights.max() + 2, label="training rows, sized by weight")
ax.scatter(test, y_test, 4, label="test rows")
x = np.linspace(-0.5, 3, 50)[:, None]
ax.plot(x, plain.predict(x), label="plain")
ax.plot(x, weighted.predict(x), label="weighted")
ax.set(ylim=(-0.6, 1.4), xlabel="x", ylabel="y")
ax.legend()
plt.show()
