"""Who takes part in benchmarks/speed.py: other libraries, the loop that one writes by hand, and adance."""

import importlib.util
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from adance.energies import MLP, ConvNet, freeze
from adance.energies.fast import fast_copy
from adance.energies.spectral import normalize_layers
from adance.objectives import AdaNCE, Contrastive, ContrastiveDivergence, Recipe
from adance.samplers import ChainOptions, Langevin, run_chains
from adance.training.speed import has_fast_bfloat16

SHAPES = {"A": (128, 1, 28, 28), "C": (128, 3, 32, 32), "MLP": (256, 2)}
SIDE = 2048
"""Of the square matrices whose product measures the limit."""

Contestants = dict[str, Callable[[], object]]


def net(name: str, width: float = 1.0) -> nn.Module:
    torch.manual_seed(0)
    if name == "MLP":
        return MLP((2,), [128, 128], base=False)
    return ConvNet(SHAPES[name][1:], name, width)


def peers_net(name: str) -> nn.Module:
    """The same of torch's own layers."""
    if name == "MLP":
        return net(name)
    torch.manual_seed(0)
    energy = ConvNet(SHAPES[name][1:], name, spectral_norm=False)
    for layer in energy.modules():
        if isinstance(layer, nn.Conv2d):
            layer.__class__ = nn.Conv2d
    normalize_layers(energy)
    return energy


def kernel(name: str, steps: int) -> Langevin:
    return Langevin(steps, 0.01) if name == "MLP" else Langevin(steps, 1.0, 0.005)


def start(shape: tuple[int, ...], device: str) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(1)).to(device) * 2 - 1


def plain_chain(energy: nn.Module, x: Tensor, k: Langevin) -> Tensor:
    for _ in range(k.steps):
        x = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(energy(x).sum(), x)
        x = x - k.step_size * gradient + k.noise_std * torch.randn_like(x)
    return x.detach()


def torchebm_model(energy: nn.Module) -> Any:
    from torchebm.core import BaseModel

    class Model(BaseModel):
        def __init__(self) -> None:
            super().__init__()
            self.net = energy

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

    return Model().to(next(energy.parameters()).device)


def torchebm_sampler(energy: nn.Module, k: Langevin) -> Any:
    from torchebm.samplers import LangevinDynamics

    device = next(energy.parameters()).device
    return LangevinDynamics(torchebm_model(energy), k.step_size, k.noise_std / (2 * k.step_size) ** 0.5, device=device)


def ebmkit_sampler(k: Langevin) -> Any:
    import ebm

    return ebm.LangevinDynamics(k.step_size, steps=k.steps, noise_scale=k.noise_std)


def chains(name: str, steps: int, device: str) -> Contestants:
    """One chain of each contestant."""
    energy, x, k = peers_net(name).to(device), start(SHAPES[name], device), kernel(name, steps)
    plain = freeze(net(name).to(device))
    ways: Contestants = {"plain": lambda: plain_chain(energy, x, k)}
    if importlib.util.find_spec("torchebm"):
        torchebm = torchebm_sampler(energy, k)
        ways["torchebm"] = lambda: torchebm.sample(x, n_steps=steps)
    if importlib.util.find_spec("ebm"):
        ebmkit = ebmkit_sampler(k)
        ways["ebmkit"] = lambda: ebmkit.sample(energy, x)
    ways["adance, not compiled"] = lambda: run_chains(k, fast_copy(plain), x)
    fast = fast_copy(plain)
    ways["adance, float32"] = lambda: run_chains(k, fast, x, compile=True)
    if name != "MLP" and has_fast_bfloat16(torch.device(device)):
        narrow = fast_copy(plain, torch.bfloat16)
        ways["adance, bfloat16"] = lambda: run_chains(k, narrow, x, compile=True)
    return ways


def adance_objective(recipe: Recipe, energy: nn.Module, x: Tensor, dtype: torch.dtype | None) -> Contrastive:
    """The objective, whose chains are compiled."""
    return recipe.build(energy, x, chains=ChainOptions(compile=True, dtype=dtype)).to(x.device)


def adance_step(objective: Contrastive, energy: nn.Module, x: Tensor) -> Callable[[], None]:
    """A step of training."""
    optimizer = torch.optim.Adam(energy.parameters(), 1e-4, (0.0, 0.999), fused=True)

    def step() -> None:
        out = objective.loss(energy, x)
        optimizer.zero_grad()
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, 1, out)

    return step


def peer_step(loss: Callable[[], Tensor], energy: nn.Module) -> Callable[[], None]:
    optimizer = torch.optim.Adam(energy.parameters(), 1e-4, (0.0, 0.999), fused=True)

    def step() -> None:
        value = loss()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()

    return step


def training(name: str, steps: int, device: str) -> tuple[Contestants, int]:
    """A training step of each contestant; AdaNCE's pool and its steps apart, and K."""
    x, k = start(SHAPES[name], device), kernel(name, steps)
    dtype = torch.bfloat16 if name != "MLP" and has_fast_bfloat16(torch.device(device)) else None
    ways: Contestants = {}
    if importlib.util.find_spec("torchebm"):
        from torchebm.losses import ContrastiveDivergence as TorchebmCD

        energy = peers_net(name).to(device)
        sampler = torchebm_sampler(energy, k)
        cd = TorchebmCD(sampler.model, sampler, k_steps=steps, device=device)
        ways["torchebm CD"] = peer_step(lambda: cd(x)[0], energy)
    if importlib.util.find_spec("ebm"):
        import ebm

        other = peers_net(name).to(device)
        ebmkit = ebm.ContrastiveDivergence(ebmkit_sampler(k))
        ways["ebmkit CD"] = peer_step(lambda: ebmkit(other, x).loss, other)
    energy = net(name).to(device)
    ways["adance CD"] = adance_step(adance_objective(ContrastiveDivergence(steps, k), energy, x, dtype), energy, x)
    model = net(name).to(device)
    objective = adance_objective(AdaNCE(k), model, x, dtype)
    noise = objective.noise

    def draw_pool() -> None:
        noise._refreshed = True
        noise.sample(len(x), x)

    ways["AdaNCE, its pool"], ways["AdaNCE, a step from the pool"] = draw_pool, adance_step(objective, model, x)
    return ways, noise.rule.interval


def products(device: str) -> Contestants:
    a = torch.randn(SIDE, SIDE, device=device)
    b = a.bfloat16()
    both: Contestants = {"float32": lambda: a @ a, "bfloat16": lambda: b @ b}
    return both if has_fast_bfloat16(torch.device(device)) else {"float32": both["float32"]}
