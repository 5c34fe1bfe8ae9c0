"""Densities known exactly, and how well HMC finds their means: a check of any sampler of your own.

python examples/densities.py
"""

import torch

from adance.energies import Banana, DoubleWell, Funnel, GaussianMixture, Rings
from adance.samplers import HMC, run_chains

generator = torch.Generator().manual_seed(0)
for density in (GaussianMixture.on_circle(8, 2.0, 0.5), Rings((1.0, 2.0), 0.3), Banana(), Funnel(3, 1.0), DoubleWell()):
    exact = density.sample(4000, generator)
    start = density.sample(1000, generator)
    x = run_chains(HMC(100, leapfrog_steps=8), density, start, generator=generator, adapt=50).x
    error = (x.mean(0) - exact.mean(0)).abs() / exact.std(0)
    print(
        f"{type(density).__name__:16} mean log p: exact samples {density.log_prob(exact).mean():.2f}, "
        f"HMC {density.log_prob(x).mean():.2f}; largest error of a mean {error.max():.3f} standard deviations"
    )
