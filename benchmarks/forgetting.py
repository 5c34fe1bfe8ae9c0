"""Does a model forget at long intervals what earlier noise has taught it, and do mixtures of snapshots mend that?

    python benchmarks/forgetting.py [--data digits] [--seeds 0,1,2]

Models of digits are trained for 4,000 steps at K = 10, and at K = 50 with noise from the last one, two, three or five
snapshots. The energies of a snapshot's noise, less those of data, are looked at in the snapshot itself and in the
models that come 1 to 8 refreshes later: means over the later half of training, in units of the ratio's temperature. The
table goes into docs/long-intervals-appendix.md. Twelve minutes.
"""

import argparse
import statistics
from collections import defaultdict

import torch
from intervals import DOCS, RECIPES, settings_of
from thesis_figures import put_between_markers
from torch import Tensor, nn

import adance

BEGIN, END = "<!-- table of forgetting: written by benchmarks/forgetting.py -->", "<!-- end of table -->"
STEPS, BATCH = 4000, 128
WAYS = ((10, 1), (50, 1), (50, 2), (50, 3), (50, 5))
"""K and m."""
LATER = (0, 1, 2, 3, 4, 8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--seeds", default="0,1,2")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = adance.load_data(args.data)
    x = data.batch(torch.arange(len(data.train)))
    lines = ["| K | snapshots | " + " | ".join("itself" if n == 0 else f"{n} later" for n in LATER) + " |"]
    lines.append("|---:|---:|" + "---:|" * len(LATER))
    for interval, snapshots in WAYS:
        seeds = [gaps(x, interval, snapshots, int(seed)) for seed in args.seeds.split(",")]
        means = [statistics.mean(of_seed[later] for of_seed in seeds) for later in LATER]
        lines.append(f"| {interval} | {snapshots} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |")
        print(lines[-1], flush=True)
    put_between_markers(DOCS / "long-intervals-appendix.md", "\n".join(lines), BEGIN, END)


def gaps(x: Tensor, interval: int, snapshots: int, seed: int) -> dict[int, float]:
    """How far noise is above data, by the number of refreshes since it was drawn."""
    torch.manual_seed(seed)
    energy, generator = adance.MLP(x.shape[1:]), torch.Generator().manual_seed(seed)
    recipe = adance.AdaNCE(interval=interval, snapshots=snapshots)
    objective = recipe.build(energy, x, batch_size=BATCH, generator=generator)
    settings = settings_of(RECIPES["pinned-K50"])
    optimizer = torch.optim.Adam(energy.parameters(), settings.lr, settings.betas)
    pools: list[Tensor] = []
    found = defaultdict(list)
    for step in range(STEPS):
        refreshed = step % interval == 0 and step >= STEPS // 2
        if refreshed:
            for age, pool in enumerate(reversed(pools), start=1):
                found[age].append(gap(energy, pool, x) / objective.temperature)
        batch = x[torch.randint(len(x), (BATCH,), generator=generator)]
        optimizer.zero_grad()
        out = objective.loss(energy, batch, generator)
        out.value.backward()
        if refreshed:
            pools = [*pools[1 - max(LATER) :], objective.noise.pool.samples[: objective.noise.pool_size].clone()]
            found[0].append(gap(energy, pools[-1], x) / objective.temperature)
        optimizer.step()
        objective.after_step(energy, step + 1, out)
    return {age: statistics.mean(seen) for age, seen in found.items()}


@torch.no_grad()
def gap(energy: nn.Module, noise: Tensor, data: Tensor) -> float:
    return float(energy(noise).mean() - energy(data).mean())


if __name__ == "__main__":
    main()
