import math

import pytest
import torch

from adance import AdaNCE
from adance.energies import RBM, Boltzmann, Ising, enumerate_distribution, fit_visible_bias
from adance.samplers import gibbs, run_chains


@pytest.mark.parametrize("units", ["bit", "spin"])
@pytest.mark.parametrize("make", ["rbm", "boltzmann", "ising"])
@pytest.mark.parametrize("kernel", ["Gibbs", "BlockGibbs"])
def test_kernels_keep_the_enumerated_law(units, make, kernel, generator):
    model = {
        "rbm": lambda: RBM((2, 2), 3, units, std=1.0, generator=generator),
        "boltzmann": lambda: Boltzmann((2, 2), 2, units, std=1.0, generator=generator),
        "ising": lambda: Ising((2, 2), "torus", 0.4, 0.2, units),
    }[make]()
    law = enumerate_distribution(model, (2, 2), units)
    n = 5000
    ends = run_chains(getattr(gibbs, kernel)(3), model, law.sample(n, generator), generator=generator).x
    seen = torch.bincount(law.index(ends), minlength=16)
    # Pearson's χ² of 16 states has mean 15 and standard deviation √30.
    assert ((seen - n * law.probs).square() / (n * law.probs)).sum() < 15 + 5 * math.sqrt(30)


@pytest.mark.parametrize("start", ["data", "rejuvenated"])
def test_block_gibbs_drives_an_rbm_inside_an_objective(start, generator):
    target = RBM((6,), 3, "spin", std=1.0, generator=generator)
    spins = enumerate_distribution(target, (6,), "spin").sample(2000, generator)
    data = (spins + 1) / 2
    model = RBM((6,), 4, generator=generator)
    fit_visible_bias(model, data)
    independent = model.log_prob(data).mean()
    recipe = AdaNCE(gibbs.BlockGibbs(5), interval=10, ratio_temperature=1.0, start=start, buffer=500)
    objective = recipe.build(model, data, batch_size=64, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for step in range(1, 401):
        optimizer.zero_grad()
        out = objective.loss(model, data[torch.randint(2000, (64,), generator=generator)], generator)
        out.value.backward()
        optimizer.step()
        objective.after_step(model, step, out)
    reached = (model.log_prob(data).mean() - independent) / (target.log_prob(spins).mean() - independent)
    assert reached > 0.6
