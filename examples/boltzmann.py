"""
A Boltzmann machine learns bars and stripes
===========================================

With hidden units it learns which pixels of a small picture go together, by exact gradients. The data are all bars and
stripes of 3×3 pixels: 14 pictures among 512. With so few units everything can be enumerated: log Z, the likelihood, and
how much of the machine's mass is on the data.
"""

import matplotlib.pyplot as plt
import torch

from adance.energies import Boltzmann, enumerate_distribution, log_likelihood
from adance.plot import samples_grid
from adance.samplers import Gibbs, run_chains

lines = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 3)  # (8, 3)
data = torch.cat([lines[:, :, None].expand(8, 3, 3), lines[:, None].expand(8, 3, 3)]).flatten(1).unique(dim=0)

generator = torch.Generator().manual_seed(0)
machine = Boltzmann((9,), hidden=6, units="bit", generator=generator)
optimizer = torch.optim.Adam(machine.parameters(), lr=0.05)
for step in range(601):
    value = log_likelihood(machine, data, "bit")
    optimizer.zero_grad()
    (-value).backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step}: log-likelihood {value:.3f} nats, best {-torch.tensor(float(len(data))).log():.3f}")

exact = enumerate_distribution(machine, (9,), "bit")
on_data = (-machine(data).detach() - exact.log_z).exp().sum()
print(f"{len(data)} pictures; mass on them {on_data:.3f}")

start = torch.randint(0, 2, (2000, 9), generator=generator).float()
x = run_chains(Gibbs(200), machine, start, generator=generator).x
share = (x[:, None] == data).all(2).any(1).float().mean()
print(f"Gibbs chains that are one of them {share:.3f}")

# %%
# What the chains draw.

figure, ax = plt.subplots()
samples_grid(2 * x[:64].unflatten(1, (1, 3, 3)) - 1, ax=ax)
plt.show()
