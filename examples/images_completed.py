"""
Digits completed from their left halves
=======================================

The package comes with a model of MNIST. Langevin chains find the right halves of digits whose left halves are given.
"""

import matplotlib.pyplot as plt
import torch

import adance
from adance.plot import samples_grid

run = adance.load_pretrained("mnist")
digits = run.sample(8, seed=1)  # drawn from noise

known = torch.zeros(1, 28, 28, dtype=torch.bool)
known[:, :, :14] = True
completed = run.sample(8, given=digits, kept=known, seed=2)
assert torch.equal(completed[:, :, :, :14], digits[:, :, :, :14])

# %%
# First row: digits drawn by the model. Second: what was given. Third: what the chains made of it.

given = torch.where(known, digits, torch.zeros(()))
figure, ax = plt.subplots(figsize=(8, 3.2))
samples_grid(torch.cat([digits, given, completed]), columns=8, ax=ax)
plt.show()
