"""
Gibbs sampling of binary units
==============================

By energy differences, by conditionals, in blocks, and with gradients. Eight units on a ring are each pulled towards
their neighbors. All four kernels agree with enumeration on the mean product of neighbors.
"""

import matplotlib.pyplot as plt
import torch

from adance.samplers import BlockGibbs, Gibbs, GibbsWithGradients, run_chains

N, COUPLING = 8, 0.6


class Ring:
    """``E(x) = −J Σ xᵢxᵢ₊₁`` of units −1 and 1, with its conditionals; even and odd units are blocks."""

    low = -1.0

    def __call__(self, x):
        """Energies ``(B,)`` of ``(B, 8)``."""
        return -COUPLING * (x * x.roll(1, 1)).sum(1)

    def conditional_logits(self, x, units):
        """Log-odds ``(B, m)`` that each of ``units`` is 1."""
        return 2 * COUPLING * (x.roll(1, 1) + x.roll(-1, 1))[:, units]

    def blocks(self):
        """Units without a coupling between them."""
        return [torch.arange(0, N, 2), torch.arange(1, N, 2)]


def energy(x):
    """The same energy as a plain function, which knows no conditionals."""
    return Ring()(x)


states = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * N)
p = torch.softmax(-energy(states), 0)
exact, found = float((p * (states[:, 0] * states[:, 1])).sum()), {}
print(f"exact                {exact:.3f}")
generator = torch.Generator().manual_seed(0)
start = torch.where(torch.rand(5000, N, generator=generator) < 0.5, 1.0, -1.0)
for name, kernel, target in (
    ("energy differences", Gibbs(20, values=(-1.0, 1.0)), energy),
    ("conditionals", Gibbs(20, scan="random"), Ring()),
    ("blocks", BlockGibbs(20), Ring()),
    ("with gradients", GibbsWithGradients(100), Ring()),
):
    x = run_chains(kernel, target, start, generator=generator).x
    found[name] = float((x[:, 0] * x[:, 1]).mean())
    print(f"{name:20} {found[name]:.3f}")

# %%
# The mean product of two neighbors, by each kernel and by enumeration.

figure, ax = plt.subplots()
ax.bar(list(found), list(found.values()))
ax.axhline(exact, color="black", linestyle=":", label="enumeration")
ax.set(ylabel="mean product of neighbors")
ax.legend()
plt.show()
