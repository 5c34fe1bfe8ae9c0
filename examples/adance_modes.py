"""
AdaNCE learns a density in the plane
====================================

A network learns eight normal distributions on a circle from samples. Its noise is an earlier copy of itself, drawn with
Markov chains.
"""

import tempfile

import matplotlib.pyplot as plt
import torch

import adance
from adance import plot

data = adance.load_data("8gaussians")
torch.manual_seed(0)
energy = adance.MLP(data.event_shape)
settings = adance.Settings(steps=300, seed=0)
with tempfile.TemporaryDirectory() as folder:
    run = adance.Trainer(energy, adance.AdaNCE(), data, settings, f"{folder}/run", show_progress=False).fit()
    rows = run.folder.read_metrics()
print({name: round(value, 3) for name, value in rows[-1].items() if name in ("loss", "auc")})

# %%
# The learned density under data, and samples of the model.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
points = data.batch(torch.arange(1000))
plot.density(run.score, points, ax=axes[0])
plot.density(run.score, samples=run.sample(500), ax=axes[1])
plt.show()
