"""
Densities known exactly
=======================

How well HMC finds the means of five densities with exact samples: use it to check your own sampler.
"""

import matplotlib.pyplot as plt
import torch

from adance.energies import Banana, DoubleWell, Funnel, GaussianMixture, Rings
from adance.plot import density as draw
from adance.samplers import HMC, run_chains

generator = torch.Generator().manual_seed(0)
in_the_plane = []
for density in (GaussianMixture.on_circle(8, 2.0, 0.5), Rings((1.0, 2.0), 0.3), Banana(), Funnel(3, 1.0), DoubleWell()):
    exact = density.sample(4000, generator)
    start = density.sample(1000, generator)
    x = run_chains(HMC(100, leapfrog_steps=8), density, start, generator=generator, adapt=50).x
    error = (x.mean(0) - exact.mean(0)).abs() / exact.std(0)
    print(
        f"{type(density).__name__:16} mean log p: exact samples {density.log_prob(exact).mean():.2f}, "
        f"HMC {density.log_prob(x).mean():.2f}; largest error of a mean {error.max():.3f} standard deviations"
    )
    if x.shape[1] == 2:
        in_the_plane.append((density, x))

# %%
# The four in the plane, with the chains of HMC.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
for ax, (density, x) in zip(axes, in_the_plane, strict=True):
    draw(density, samples=x, ax=ax).set_title(type(density).__name__)
plt.show()
