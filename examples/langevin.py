"""
Five kinds of Langevin chains
=============================

How far is each chain from its target, a normal distribution with variance 1? At this large a step, unadjusted Langevin
has a variance that is too large by the factor 1/(1 − h/2). MALA is exact. BAOAB, which is underdamped, is exact for
normal distributions. Momentum without noise just descends.
"""

import matplotlib.pyplot as plt
import torch

from adance.samplers import MALA, Annealed, Langevin, MomentumLangevin, UnderdampedLangevin, run_chains


def energy(x):
    """½‖x‖² of ``(B, 2)``."""
    return 0.5 * x.square().sum(1)


generator = torch.Generator().manual_seed(0)
start = torch.full((20_000, 2), 3.0)
found = {}
for kernel, right in (
    (Langevin(60, step_size=0.5), 1 / (1 - 0.25)),
    (MALA(60, step_size=0.5), 1.0),
    (UnderdampedLangevin(60, step_size=0.8), 1.0),
    (MomentumLangevin(60, step_size=0.2, momentum=0.5), 0.0),
    (Annealed(Langevin(), 60, step_size=(0.5, 0.01), temperature=(4.0, 1.0)), None),  # on its way from 4 to 1
):
    chains = run_chains(kernel, energy, start, generator=generator)
    expected = "" if right is None else f", expected {right:.3f}"
    print(f"{type(kernel).__name__:20} variance {chains.x.var():.3f}{expected}; {chains.gradients} gradients")
    found[type(kernel).__name__] = chains.x[:, 0]

# %%
# The histograms of the first coordinate. Momentum without noise has left a spike.

figure, ax = plt.subplots()
for name, values in found.items():
    ax.hist(values, 100, range=(-4, 4), density=True, histtype="step", label=name)
x = torch.linspace(-4, 4, 200)
ax.plot(x, torch.exp(-0.5 * x.square()) / (2 * torch.pi) ** 0.5, "k:", label="normal distribution")
ax.set(xlabel="x", ylabel="density", ylim=(0, 0.6))
ax.legend()
plt.show()
