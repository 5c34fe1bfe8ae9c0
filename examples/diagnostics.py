"""
Has the chain converged?
========================

Effective sample size and split R̂, and the same chains in ArviZ (``pip install adance[diagnostics]``).
"""

import matplotlib.pyplot as plt
import torch

from adance.samplers import MALA, run_chains, summary, to_arviz


def energy(x):
    """A normal distribution with standard deviations 1 and 5; ``(B, 2)``."""
    return 0.5 * (x / torch.tensor([1.0, 5.0])).square().sum(1)


generator = torch.Generator().manual_seed(0)
start = 20 * torch.randn(8, 2, generator=generator)
for steps in (50, 3000):
    warm = run_chains(MALA(), energy, start, steps, generator=generator, adapt=steps)
    chains = run_chains(
        MALA(), energy, warm.x, steps, generator=generator, step_size=warm.step_size, record=True, thin=2
    )
    print(f"{steps} steps:", {name: round(value, 2) for name, value in summary(chains).items()})
print(to_arviz(chains, energy))

# %%
# The wide coordinate of the eight chains in the long run: they cross the distribution many times.

figure, ax = plt.subplots(figsize=(8, 3))
ax.plot(2 * torch.arange(len(chains.positions)), chains.positions[:, :, 1], linewidth=0.5)
ax.set(xlabel="step", ylabel="x₂")
plt.show()
