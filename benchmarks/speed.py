"""How long a step of a chain and a training step take, compared with other libraries and what the machine can do.

    python benchmarks/speed.py [--threads 2] [--repeats 7] [--device cpu] [--only chains|training|growth] [--write]

The same networks (architectures A and C with spectral normalization, batch 128; an MLP 2-128-128-1, batch 256), the
same steps, in one process, as far as the libraries are installed (``pip install '.[bench]'``). Contestants take
turns and a number is the median of its turns; ratios are of medians. On the CPU everything is measured twice: with the
system's memory as it comes, and kept between steps as adance's training keeps it. Ratios compare what users of each
library get: rivals as they come, adance with memory kept. The limit is the arithmetic of one step, counted in products
of matrices, over the rate of a product of two 2048×2048 matrices that takes turns with the contestants. ``plain`` is
the loop that one writes by hand. bfloat16 takes part where the processor has it. With one thread times are processor
seconds, which other programs on the machine disturb little; with more, and on a GPU, they are the wall's. --write puts
the tables into docs/performance.md.
"""

import argparse
import os
import platform
import resource
import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from speed_contestants import SHAPES, SIDE, Contestants, chains, kernel, net, products, start, training

from adance.commands.process import reuse_freed_memory
from adance.energies import freeze
from adance.energies.fast import fast_copy
from adance.samplers import run_chains
from adance.training.speed import gradient_flops, has_fast_bfloat16

DOC = Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- tables of benchmarks/speed.py: {} -->", "<!-- end of {} -->"
PEERS = ("torchebm", "ebmkit")


@dataclass(frozen=True)
class Seconds:
    """Of one contestant: as it comes, and with memory kept; the same twice on a GPU."""

    plain: float
    kept: float

    def of(self, way: str) -> float:
        """What users of the library get."""
        return self.kept if way.lower().startswith("adance") else self.plain


def measure(ways: Contestants, repeats: int, device: str) -> dict[str, Seconds]:
    plain = take_turns(ways, repeats, device)
    if device != "cpu":
        return {way: Seconds(seconds, seconds) for way, seconds in plain.items()}
    with reuse_freed_memory():
        kept = take_turns(ways, repeats, device)
    return {way: Seconds(plain[way], kept[way]) for way in ways}


def fastest_peer(found: dict[str, Seconds], suffix: str = "") -> float:
    return min((found[f"{p}{suffix}"].plain for p in PEERS if f"{p}{suffix}" in found), default=float("nan"))


def take_turns(ways: Contestants, repeats: int, device: str) -> dict[str, float]:
    """Median seconds of each; a first turn, in which programs are compiled, does not count."""
    clock = time.process_time if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, way in ways.items():
            _wait(device)
            began = clock()
            way()
            _wait(device)
            if turn > 0:
                seconds[name].append(clock() - began)
    return {name: statistics.median(times) for name, times in seconds.items()}


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def chain_table(device: str, repeats: int) -> Iterator[str]:
    yield "| net | way | ms a step | with memory kept | fastest peer's / this | this / limit |"
    yield "|---|---|---|---|---|---|"
    for name, steps in (("A", 4), ("C", 2), ("MLP", 100)):
        ways = chains(name, steps, device)
        found = measure(ways | products(device), repeats, device)
        flops = SHAPES[name][0] * gradient_flops(net(name), start((1, *SHAPES[name][1:]), "cpu"))
        limit = {kind: flops / (2 * SIDE**3 / found[kind].kept) for kind in products(device)}
        yield from (f"| {name} | limit, {kind} | {1e3 * least:.3g} | | | |" for kind, least in limit.items())
        peer = fastest_peer(found)
        for way in ways:
            seconds = found[way]
            of_limit = seconds.of(way) / steps / limit["bfloat16" if "bfloat16" in way else "float32"]
            yield f"| {name} | {way} | {_ms(seconds, steps)} | {peer / seconds.of(way):.2f} | {of_limit:.2f} |"


def training_table(device: str, repeats: int) -> Iterator[str]:
    """With the default's chains of 30 steps, and on architecture A with the thesis's of 100 too."""
    yield "| net | chain | training step | ms | with memory kept | fastest peer's CD / this |"
    yield "|---|---|---|---|---|---|"
    for name, steps in (("A", 30), ("A", 100), ("C", 30), ("MLP", 30)):
        ways, interval = training(name, steps, device)
        found = measure(ways, repeats, device)
        pool, step = found.pop("AdaNCE, its pool"), found["AdaNCE, a step from the pool"]
        share = Seconds(step.plain + pool.plain / interval, step.kept + pool.kept / interval)
        found[f"AdaNCE, K = {interval}: a step and its share of the pool"] = share
        peer = fastest_peer(found, " CD")
        yield from (f"| {name} | {steps} | {way} | {_ms(s)} | {peer / s.of(way):.2f} |" for way, s in found.items())


def _ms(seconds: Seconds, steps: int = 1) -> str:
    return f"{1e3 * seconds.plain / steps:.3g} | {1e3 * seconds.kept / steps:.3g}"


def growth_table(device: str, repeats: int) -> Iterator[str]:
    """Compiled chains of architecture A; the memory peak is read after few steps and after many."""
    dtype = torch.bfloat16 if has_fast_bfloat16(torch.device(device)) else None
    yield f"| architecture A, {'bfloat16' if dtype else 'float32'} | ms a step | memory peak, MiB |"
    yield "|---|---|---|"
    for batch, width, steps in ((128, 1, 2), (128, 1, 20), (128, 1, 80), (64, 1, 4), (256, 1, 4), (128, 0.5, 4)):
        energy = fast_copy(freeze(net("A", width).to(device)), dtype)
        x = start((batch, *SHAPES["A"][1:]), device)
        run_chains(kernel("A", 2), energy, x, compile=True)
        way = {"": partial(run_chains, kernel("A", steps), energy, x, compile=True)}
        ms = 1e3 * take_turns(way, 1 if steps > 4 else repeats, device)[""] / steps
        yield f"| batch {batch}, width {width:g}, {steps} steps | {ms:.3g} | {_peak(device):.0f} |"


def _peak(device: str) -> float:
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def machine(device: str, repeats: int) -> str:
    name = torch.cuda.get_device_name() if device == "cuda" else _processor()
    return (
        f"{name}, {torch.get_num_threads()} of {os.cpu_count()} cores, torch {torch.__version__}; "
        f"{time.strftime('%Y-%m-%d')}, medians of {repeats} turns"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [
        line.split(":")[1].strip()
        for line in info.read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.processor()


def write(part: str, lines: list[str]) -> None:
    text = DOC.read_text(encoding="utf-8")
    begin, end = BEGIN.format(part), END.format(part)
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    DOC.write_text(f"{before}{begin}\n\n" + "\n".join(lines) + f"\n\n{end}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    tables = {"chains": chain_table, "training": training_table, "growth": growth_table}
    parser.add_argument("--only", choices=list(tables))
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    warnings.simplefilter("ignore", DeprecationWarning)
    for part in [args.only] if args.only else tables:
        repeats = max(2, args.repeats // 2) if part == "training" else args.repeats
        lines = [f"{machine(args.device, repeats)}.", ""]
        for line in tables[part](args.device, repeats):
            print(line, flush=True)
            lines.append(line)
        if args.write:
            write(part, lines)


if __name__ == "__main__":
    main()
