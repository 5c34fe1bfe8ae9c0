"""How training spends its time, and the arithmetic rate of its chains."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from adance.training.speed import gradient_flops


class Profile:
    """Measures the time of parts of a run. The time of a part that runs inside another counts only for the inner one.

    Args:
        device: Where training happens; each part waits for it.
        on: If false, nothing is measured and nothing waits.
    """

    def __init__(self, device: torch.device, on: bool = True) -> None:
        self.device, self.on = device, on
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.chain_calls, self.first_chain = 0, 0.0
        self._began = time.perf_counter()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time inside the block for ``name``."""
        if not self.on:
            yield
            return
        began, inner = self._now(), sum(self.seconds.values())
        try:
            yield
        finally:
            self.seconds[name] += self._now() - began - (sum(self.seconds.values()) - inner)

    @contextmanager
    def chain(self) -> Iterator[None]:
        """Count the time inside the block for chains; the first call includes compilation."""
        with self.part("chain"):
            yield
        self.chain_calls += 1
        if self.chain_calls == 1:
            self.first_chain = self.seconds["chain"]

    def table(self, energy: nn.Module, x: Tensor, gradients: int) -> str:
        """Seconds and share of each part, and the GFLOP/s of chains.

        Args:
            energy: The energy.
            x: Data ``(B, *event)``, of which one row is enough.
            gradients: Energy gradients that chains computed in this time.
        """
        total = self._now() - self._began
        seconds = {**self.seconds, "the rest": total - sum(self.seconds.values())}
        lines = [f"{'part':<18} {'seconds':>8} {'share':>6}"]
        lines += [f"{name:<18} {s:8.2f} {s / total:6.1%}" for name, s in sorted(seconds.items(), key=lambda p: -p[1])]
        if self.chain_calls:
            lines.append(f"first chain, including any compilation: {self.first_chain:.2f} s")
        if self.chain_calls > 1:
            later = gradients * (self.chain_calls - 1) / self.chain_calls * gradient_flops(energy, x)
            rate = later / max(seconds["chain"] - self.first_chain, 1e-9)
            lines.append(f"later chains: {rate / 1e9:.3g} GFLOP/s")
        return "\n".join(lines)

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()
