"""
A Hopfield network recalls digits
=================================

One digit of each class is stored. The network is then given the upper half of each and finds the rest. The picture has
three rows: what was stored, what was given (gray: missing), and what was recalled.
"""

import matplotlib.pyplot as plt
import torch

from adance.data import load_data
from adance.energies import Hopfield
from adance.plot import samples_grid

data = load_data("digits")
digits = torch.stack([data.train[data.train_labels == label][0, 0] for label in range(10)])
stored = torch.where(digits >= 8, 1.0, -1.0)  # (10, 8, 8), ±1

# Digits resemble one another, which Hebb's rule cannot keep apart; the projection rule can.
network = Hopfield((8, 8)).store(stored, rule="projection")

known = torch.zeros(8, 8, dtype=torch.bool)
known[:4] = True
recalled = network.complete(stored, known)

rows = torch.cat([stored, torch.where(known, stored, 0.0), recalled]).unsqueeze(1)  # (30, 1, 8, 8)
figure, ax = plt.subplots(figsize=(8, 3))
samples_grid(rows, columns=10, ax=ax)

right = (recalled == stored).flatten(1)[:, 32:].float().mean(1)
print(f"missing pixels recalled: {right.mean():.1%}; digits recalled whole: {int((right == 1).sum())} of 10")
plt.show()
