"""
Hamiltonian Monte Carlo and its mass
====================================

The target is normal with scales from 0.1 to 10. A first run estimates the mass matrix; a second uses it and takes steps
seven times as large.
"""

import matplotlib.pyplot as plt
import torch

from adance.samplers import HMC, diagonal_mass, run_chains

scales = torch.logspace(-1, 1, 5)


def energy(x):
    """½Σ(xᵢ/sᵢ)² of ``(B, 5)``."""
    return 0.5 * (x / scales).square().sum(1)


generator = torch.Generator().manual_seed(0)
start = torch.randn(200, 5, generator=generator)
first = run_chains(HMC(300), energy, start, generator=generator, adapt=200)
mass = diagonal_mass(first.x)
warm = run_chains(HMC(100, mass=mass), energy, first.x, generator=generator, adapt=100)
final = run_chains(HMC(50, mass=mass), energy, warm.x, generator=generator, step_size=warm.step_size)
print(f"step size without mass {first.step_size:.3f}, with it {final.step_size:.3f}")
print(f"acceptance {final.acceptance.mean():.2f}")
print(
    "standard deviations",
    [round(s, 2) for s in final.x.std(0).tolist()],
    "exact",
    [round(s, 2) for s in scales.tolist()],
)

# %%
# The standard deviations span two orders of magnitude, and all of them are right.

figure, ax = plt.subplots()
ax.loglog(scales, scales, label="exact")
ax.loglog(scales, final.x.std(0), "o", label="HMC with a mass")
ax.set(xlabel="scale of the distribution", ylabel="standard deviation of the chains")
ax.legend()
plt.show()
