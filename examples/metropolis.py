"""
Metropolis without gradients
============================

A random walk that adapts its step size, and a proposal of your own. The distribution is banana-shaped:
x₁ ~ N(0, 1), x₂ | x₁ ~ N(x₁², ½²), so that E[x₂] = 1.
"""

import matplotlib.pyplot as plt
import torch

from adance.plot import density
from adance.samplers import MetropolisHastings, RandomWalkMetropolis, run_chains


def energy(x):
    """Energies ``(B,)`` of ``(B, 2)``."""
    return 0.5 * x[:, 0].square() + 2 * (x[:, 1] - x[:, 0].square()).square()


class Mirror:
    """Half the time the mirror image of x₁, else a step along the banana; symmetric, so it needs no ``log_prob``."""

    def sample(self, x, generator=None):
        """One proposal for each row."""
        coin = torch.rand(len(x), 1, generator=generator) < 0.5
        step = x + 0.5 * torch.randn(x.shape, generator=generator)
        return torch.where(coin, x * torch.tensor([-1.0, 1.0]), step)


generator = torch.Generator().manual_seed(0)
start = torch.zeros(2000, 2)
warm = run_chains(RandomWalkMetropolis(300), energy, start, generator=generator, adapt=300)
walk = run_chains(RandomWalkMetropolis(300), energy, warm.x, generator=generator, step_size=warm.step_size)
print(
    f"random walk: step {warm.step_size:.2f}, acceptance {walk.acceptance.mean():.2f}, E[x2] {walk.x[:, 1].mean():.2f}"
)
own = run_chains(MetropolisHastings(Mirror(), 1000), energy, start, generator=generator)
print(f"mirror:      acceptance {own.acceptance.mean():.2f}, E[x2] {own.x[:, 1].mean():.2f} (exact 1)")

# %%
# The distribution, and where the chains with the mirror ended.

figure, ax = plt.subplots()
density(energy, samples=own.x, ax=ax)
plt.show()
