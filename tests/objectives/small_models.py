"""A small energy and its data, chains and gradients, for tests of AdaNCE."""

import copy

import torch

from adance.energies import MLP
from adance.objectives import AdaNCE
from adance.samplers import Langevin

SHAPE = (1, 3, 3)
DATA = torch.rand(32, *SHAPE, generator=torch.Generator().manual_seed(3)) * 2 - 1


def net(dtype=torch.float64):
    return MLP(SHAPE, (16, 16)).to(dtype)


def chain():
    return Langevin(3, 1.0, noise_std=0.05)


def seed(number=7):
    return torch.Generator().manual_seed(number)


def built(energy, data, batch=8, steps=None, **settings):
    recipe = AdaNCE(settings.pop("sampler", chain()), **({"buffer": 200} | settings))
    return recipe.build(energy, data, batch_size=batch, steps=steps, generator=seed(1))


def gradients(value, energy):
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, list(energy.parameters()))])


def likelihood_gradient(energy, x, noise):
    """Of mean E(data) − mean E(noise): the negative log-likelihood's, in units of T."""
    with torch.no_grad():
        energy.eval()
    value = energy(x).mean() - energy(noise).mean()
    energy.train()
    return gradients(value, energy)


def loss_and_noise(objective, energy, x):
    """The loss, and the noise samples that it drew."""
    noise = copy.deepcopy(objective).noise.sample(len(x) * objective.contrast.noises, x, seed(5)).x
    return objective.loss(energy, x, seed(5)), noise


def close(found, right):
    torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12 * float(right.abs().max()))


def move(energy):
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=seed(), dtype=parameter.dtype)


def gaps(objective, energy, x, noise):
    """E_m − E_θ on data and noise."""
    with torch.no_grad():
        frozen, energy = objective.noise.frozen, copy.deepcopy(energy).eval()
        return frozen(x) - energy(x), frozen(noise) - energy(noise)
