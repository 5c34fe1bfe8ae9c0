"""A restricted Boltzmann machine learns binary digits by persistent contrastive divergence, in a loop of one's own.

    python examples/rbm.py [PICTURE]

The loss is the gap of free energies between data and persistent chains, which any torch optimiser minimises; the exact
log-likelihood, by a sum over all 2¹⁶ hidden states, says how well it learns. ``train_rbm`` does the same many times
faster. The picture shows the chains after the last step.
"""

import sys
from pathlib import Path

import torch

from adance.data import load_data
from adance.energies import RBM, fit_visible_bias
from adance.pictures.grid import save_grid

generator = torch.Generator().manual_seed(0)
data = load_data("digits")
train, test = ((images >= 8).float() for images in (data.train, data.test))  # (N, 1, 8, 8), 0 or 1

rbm = RBM((1, 8, 8), hidden=16, generator=generator)
fit_visible_bias(rbm, train)
optimizer = torch.optim.SGD(rbm.parameters(), lr=0.05)
chains = torch.randint(0, 2, (64, 1, 8, 8), generator=generator).float()

for epoch in range(1, 31):
    for batch in train[torch.randperm(len(train), generator=generator)].split(20):
        chains = rbm.block_gibbs(chains, generator)
        optimizer.zero_grad()
        (rbm(batch).mean() - rbm(chains).mean()).backward()  # rbm.set_gradients(batch, chains) is the same by formula
        optimizer.step()
    if epoch % 10 == 0:
        with torch.no_grad():
            log_z = rbm.log_partition()
            train_score, test_score = (-rbm(x).mean() - log_z for x in (train, test))
            print(f"epoch {epoch}: train {train_score:.2f}, test {test_score:.2f} nats")

path = Path(sys.argv[1] if len(sys.argv) > 1 else "rbm.png")
save_grid(1 - 2 * chains, path)
print(f"picture: {path}")
