"""Where the time of a training run goes, and how near its arithmetic comes to what the device can do."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from adance.objectives.objective import LossOutput
from adance.training.speed import gradient_flops

SIDE = 1024


class Profile:
    """Takes the time of the parts of a run; the parts of one inside another are its own time no longer.

    Args:
        device: Where training happens; with ``on`` each part waits for it.
        on: Without it nothing is measured and nothing waits.
    """

    def __init__(self, device: torch.device, on: bool = True) -> None:
        self.device, self.on = device, on
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.rows = self.chains = 0
        self.first_chain = 0.0
        self._open: list[str] = ["the rest"]
        self._since = time.perf_counter()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What happens inside belongs to ``name``."""
        if not self.on:
            yield
            return
        self._account()
        self._open.append(name)
        try:
            yield
        finally:
            self._account()
            self._open.pop()
            self.chains += name == "chain"
            if self.chains == 1 and name == "chain":
                self.first_chain = self.seconds["chain"]

    @contextmanager
    def chain(self) -> Iterator[None]:
        """Chains run inside."""
        with self.part("chain"):
            yield

    def saw(self, out: LossOutput) -> None:
        """A step had these energies."""
        self.rows += len(out.energy_data) + len(out.energy_noise)

    def report(self, energy: nn.Module, x: Tensor, gradients: int, dtype: torch.dtype | None) -> str:
        """A table of the parts.

        Args:
            energy: The energy.
            x: Data ``(B, *event)``, of which one row is enough.
            gradients: Energy gradients spent on chains meanwhile.
            dtype: Type in which chains multiply; ``None`` for that of ``x``.
        """
        self._account()
        total, flops = sum(self.seconds.values()), gradient_flops(energy, x)
        lines = [f"{'part':<18} {'seconds':>8} {'share':>6}"]
        lines += [
            f"{name:<18} {s:8.2f} {s / total:6.1%}"
            for name, s in sorted(self.seconds.items(), key=lambda part: -part[1])
        ]
        if self.chains:
            lines.append(f"first chain, with compilation where there is any: {self.first_chain:.2f} s")
        if self.chains > 1:
            later, seconds = gradients * (self.chains - 1) / self.chains, self.seconds["chain"] - self.first_chain
            lines.append(self._share("later chains", later * flops, seconds, dtype or x.dtype))
        # forward, and backward to activations and to weights
        spent, name = self.rows * 1.5 * flops, "forward/backward"
        lines.append(self._share(name, spent, self.seconds[name], x.dtype))
        return "\n".join(lines)

    def _share(self, name: str, flops: float, seconds: float, dtype: torch.dtype) -> str:
        reached, limit = flops / max(seconds, 1e-9), product_rate(self.device, dtype)
        kind = str(dtype).removeprefix("torch.")
        return f"{name}: {reached / 1e9:.3g} GFLOP/s, {reached / limit:.0%} of the {limit / 1e9:.3g} of {kind} products"

    def _account(self) -> None:
        if self.on and self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = time.perf_counter()
        self.seconds[self._open[-1]] += now - self._since
        self._since = now


def product_rate(device: torch.device, dtype: torch.dtype, repeats: int = 5) -> float:
    """Floating-point operations a second of a product of two matrices: the best of some."""
    a = torch.ones(SIDE, SIDE, dtype=dtype, device=device)
    seconds = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        (a @ a)[0, 0].item()
        seconds.append(time.perf_counter() - began)
    return float(2 * SIDE**3 / min(seconds))
