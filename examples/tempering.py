"""
Parallel tempering crosses a barrier
====================================

It finds the mode that a plain chain never reaches, and says whether its ladder of temperatures is dense enough.
"""

import matplotlib.pyplot as plt
import torch

from adance.samplers import MALA, Tempering, run_chains


def energy(x):
    """Two modes of width ½ at −4 and 4, the right one with three quarters of the mass; ``(B, 1)``."""
    squares = ((x - torch.tensor([-4.0, 4.0])) / 0.5).square()
    return -torch.logsumexp(torch.tensor([0.25, 0.75]).log() - 0.5 * squares, 1)


generator = torch.Generator().manual_seed(0)
start = torch.full((500, 1), -4.0)
plain = run_chains(MALA(), energy, start, 400, generator=generator, adapt=200)
kernel = Tempering(MALA(), temperatures=(1.0, 3.0, 9.0, 27.0))
tempered = run_chains(kernel, energy, start, 400, generator=generator, adapt=200)
on_the_right = [float((x > 0).float().mean()) for x in (plain.x, tempered.x)]
print(f"share on the right: MALA {on_the_right[0]:.2f}, tempered {on_the_right[1]:.2f} (exact 0.75)")
print("swap rates", [round(rate, 2) for rate in kernel.swap_rates(tempered.state).tolist()])

# %%
# Plain chains have stayed where they started; tempered ones are distributed like the target.

figure, ax = plt.subplots()
for name, chains in {"MALA": plain, "tempered": tempered}.items():
    ax.hist(chains.x[:, 0], 60, range=(-6, 6), density=True, histtype="step", label=name)
x = torch.linspace(-6, 6, 400)
p = torch.exp(-energy(x[:, None]))
ax.plot(x, p / torch.trapezoid(p, x), "k:", label="distribution")
ax.set(xlabel="x", ylabel="density")
ax.legend()
plt.show()
