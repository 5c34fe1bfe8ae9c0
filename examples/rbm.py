"""
A restricted Boltzmann machine learns digits
============================================

By persistent contrastive divergence; the chains go from visible to hidden units and back (block Gibbs). The exact
log-likelihood, by a sum over all 2¹⁶ hidden states, says how well it learns. The picture shows samples.
"""

import tempfile

import matplotlib.pyplot as plt
import torch

import adance
from adance.energies import RBM, fit_visible_bias
from adance.plot import samples_grid
from adance.samplers import BlockGibbs

digits = adance.load_data("digits")
data = adance.Dataset.from_arrays(digits.train >= 8, digits.test >= 8, name="binary-digits")
train, test = (data.transform.to_model(x) for x in (data.train, data.test))  # (N, 1, 8, 8), booleans become -1 and 1


def report(name, energy):
    """Print mean log-likelihoods of training and held-out rows."""
    with torch.no_grad():
        train_score, test_score = (energy.log_prob(x).mean() for x in (train, test))
    print(f"{name}: train {train_score:.2f}, test {test_score:.2f} nats")


rbm = RBM(data.event_shape, hidden=16, units="spin", generator=torch.Generator().manual_seed(0))
fit_visible_bias(rbm, train)
report("independent pixels", rbm)

objective = adance.PersistentCD(k=5, sampler=BlockGibbs(steps=200))
settings = adance.Settings(steps=2000, batch_size=100, lr=0.01)
with tempfile.TemporaryDirectory() as folder:
    run = adance.Trainer(rbm, objective, data, settings, f"{folder}/run", show_progress=False).fit()
report("after 2,000 steps", run.energy)  # the moving average of the weights

figure, ax = plt.subplots()
samples_grid(run.sample(64), ax=ax)
plt.show()
