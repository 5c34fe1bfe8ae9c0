"""
The Ising model
===============

On a periodic lattice, sampled by block Gibbs below and above the critical coupling. All black squares of the board are
drawn at once, then all white ones. Onsager's exact mean energy of one bond of the infinite lattice is printed next to
what 32 chains find; above J = 0.4407 the spins align.
"""

import math

import matplotlib.pyplot as plt
import torch
from scipy.special import ellipk

from adance.energies import Ising


def onsager(J: float) -> float:
    """Exact mean of ``xᵢxⱼ`` over neighbors, on the infinite square lattice."""
    k = 2 * math.sinh(2 * J) / math.cosh(2 * J) ** 2
    factor = 1 + 2 / math.pi * (2 * math.tanh(2 * J) ** 2 - 1) * ellipk(k**2)
    return 0.5 * factor / math.tanh(2 * J)


generator = torch.Generator().manual_seed(0)
print("    J   neighbors agree   Onsager   |magnetization|")
boards = {}
for J in (0.2, 0.3, 0.4, 0.5):
    model = Ising((20, 20), graph="torus", coupling=J)
    x = torch.ones(32, 20, 20)  # 32 chains, all spins up
    agree, magnetization = [], []
    for sweep in range(400):
        x = model.block_gibbs(x, generator)
        if sweep < 200 or sweep % 10:
            continue
        agree.append(-model(x).detach().mean() / (J * 2 * 20**2))
        magnetization.append(x.mean((1, 2)).abs().mean())
    means = [float(torch.stack(values).mean()) for values in (agree, magnetization)]
    print(f"{J:5.2f}   {means[0]:16.3f}   {onsager(J):7.3f}   {means[1]:15.3f}")
    boards[J] = x[0]

# %%
# One board of each coupling: the spins order as J grows.

figure, axes = plt.subplots(1, 4, figsize=(10, 2.8))
for ax, (J, board) in zip(axes, boards.items(), strict=True):
    ax.imshow(board, "gray")
    ax.set(title=f"J = {J}", xticks=[], yticks=[])
plt.show()
