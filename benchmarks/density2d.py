"""Every objective on known two-dimensional densities: Kullback-Leibler divergence by integration on a grid.

    python benchmarks/density2d.py [--sets 8gaussians,…] [--objectives NCE,…] [--seeds 0,1,2] [--jobs 2] [--table]

One net, one number of optimizer steps, one batch size. One JSON file a run is kept in benchmarks/results/density2d, so
an interrupted study resumes where it stopped. At the end: a table in docs/density2d.md, and a picture of the learned
densities (rows objectives, columns sets) in docs/images/density2d.png.
"""

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import thesis_figures as figures
import torch
from joblib import Parallel, delayed
from PIL import Image
from torch import Tensor

import adance
from adance.data import TOYS
from adance.objectives import Recipe

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "density2d"
DOCS = ROOT.parent / "docs"
SETS = ("8gaussians", "checkerboard", "rings", "2spirals")
HIDDEN = (128, 128, 128)
LOOP = {"lr": 1e-3, "betas": (0.0, 0.999), "schedule": "linear", "ema": 0.99}
SETTINGS = {"steps": 2000, "batch_size": 256, "sample_every": 0, **LOOP}
GRID = 400
BEGIN, END = "<!-- table: written by benchmarks/density2d.py -->", "<!-- end of table -->"

OBJECTIVES: dict[str, Callable[[], Recipe]] = {
    "NCE": lambda: adance.NCE(),
    "NCE-tilted": lambda: adance.NCE(),
    "NCE-mixture": lambda: adance.NCE("mixture"),
    "NCE-flow": lambda: adance.NCE("flow"),
    "RankingNCE": lambda: adance.RankingNCE(),
    "ConditionalNCE": lambda: adance.ConditionalNCE(),
    "BRM-kl": lambda: adance.BRM("kl"),
    "BRM-hellinger": lambda: adance.BRM("hellinger"),
    "AdaNCE": lambda: adance.AdaNCE(),
    "AdaNCE-tilted": lambda: adance.AdaNCE(),
    "AdaNCE-rejuvenated": lambda: adance.AdaNCE(start="rejuvenated"),
    "AdaBRM-kl": lambda: adance.AdaBRM("kl"),
    "FCE": lambda: adance.FCE(),
    "ACE": lambda: adance.ACE(),
    "MaximumLikelihood": lambda: adance.MaximumLikelihood(),
    "ContrastiveDivergence": lambda: adance.ContrastiveDivergence(k=10),
    "PersistentCD": lambda: adance.PersistentCD(chains=2000),
    "ScoreMatching-sliced": lambda: adance.ScoreMatching("sliced_vr"),
    "DenoisingScoreMatching": lambda: adance.DenoisingScoreMatching(sigma=0.1),
}


class CountingMLP(adance.MLP):
    """Counts the rows that go through it."""

    rows = 0

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)``."""
        type(self).rows += len(x)
        return super().forward(x)


def plain_net() -> torch.nn.Module:
    """The net, to which a Gaussian with independent axes is added."""
    return CountingMLP((2,), HIDDEN)


def tilted_net() -> torch.nn.Module:
    """The net, added to a Gaussian with full covariance."""
    return adance.Tilted((2,), CountingMLP((2,), HIDDEN, base=False), "gaussian", bound=5.0)


def measure(run: adance.Run, name: str) -> dict[str, float]:
    """KL(data ‖ model) in nats and the model's log Z, by integration on a grid."""
    toy = TOYS[name]()
    half = 1.5 * toy.extent
    axis = (torch.arange(GRID) + 0.5) / GRID * 2 * half - half
    grid = torch.cartesian_prod(axis, axis)
    log_cell = 2 * math.log(2 * half / GRID)
    log_data = toy.log_prob(grid).double()
    energy = run.score(grid, 40_000).double()
    log_z = float(torch.logsumexp(-energy, 0) + log_cell)
    mass = (log_data + log_cell).exp()
    inside = mass > 0
    kl = float((mass * (log_data + energy + log_z))[inside].sum())
    return {"kl": kl, "log_z": log_z, "mass": float(mass.sum())}


def keep(objective: str, name: str, seed: int) -> None:
    """One run of an objective."""
    make_energy = tilted_net if objective.endswith("-tilted") else plain_net
    train(OBJECTIVES[objective], name, seed, RESULTS / f"{objective}-{name}-{seed}.json", make_energy)


def train(
    make: Callable[[], Recipe],
    name: str,
    seed: int,
    kept: Path,
    make_energy: Callable[[], torch.nn.Module] = plain_net,
) -> None:
    """One run on the set ``name``, kept in its own file."""
    if kept.exists():
        return
    torch.set_num_threads(1)
    data = adance.load_data(name)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        energy, made = make_energy(), make()
    CountingMLP.rows = 0
    with tempfile.TemporaryDirectory() as folder:
        settings = adance.Settings(seed=seed, **SETTINGS)  # type: ignore[arg-type]
        began = time.process_time()
        try:
            run = adance.Trainer(energy, made, data, settings, folder + "/run", device="cpu", show_progress=False).fit()
        except adance.DivergedError as error:
            kept.write_text(json.dumps({"diverged": str(error)}) + "\n", encoding="utf-8")
            return
        seconds, rows = time.process_time() - began, CountingMLP.rows
    result = measure(run, name) | {"seconds": seconds, "rows": rows, "learned_log_z": run.log_normalizer}
    if seed == 0:
        learned = torch.softmax(-run.score(shown_grid(name), 40_000), 0)
        keep_picture(
            kept.with_suffix(".png"), learned / torch.softmax(TOYS[name]().log_prob(shown_grid(name)), 0).max()
        )
    kept.write_text(json.dumps(result) + "\n", encoding="utf-8")
    print(f"{kept.stem}: KL {result['kl']:.4f} in {seconds:.0f} s", flush=True)


def shown_grid(name: str) -> Tensor:
    """Points ``(160², 2)`` of the pictures of a set."""
    axis = torch.linspace(-1.2, 1.2, 160) * TOYS[name]().extent
    return torch.cartesian_prod(axis, axis)


def keep_picture(path: Path, density: Tensor) -> None:
    """A density over :func:`shown_grid`, 1 its truth's greatest value, as a gray picture with the y axis upwards."""
    pixels = (density.view(160, 160).T.flip(0).clamp(0, 1) * 255).round().to(torch.uint8)
    Image.fromarray(pixels.numpy()).save(path, optimize=True)


def results(objective: str, name: str, folder: Path = RESULTS) -> list[dict[str, float]]:
    """What has been kept for an objective on a set."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(f"{objective}-{name}-*.json"))]


def cell(rows: list[dict[str, float]]) -> str:
    """Mean and spread of the runs that ended, and how many there are where not three, or where some diverged."""
    kls = [row["kl"] for row in rows if "kl" in row]
    if not kls:
        return "diverged" if rows else "–"
    spread = f" ± {statistics.stdev(kls):.3f}" if len(kls) > 1 else ""
    seeds = "" if len(rows) == 3 else f" ({len(rows)} seed{'s' * (len(rows) > 1)})"
    seeds += f" ({len(rows) - len(kls)} diverged)" if len(kls) < len(rows) else ""
    return f"{statistics.mean(kls):.3f}{spread}{seeds}"


def table() -> str:
    """The table in Markdown."""
    note = "Means and standard deviations of three seeds, but where a cell says how many."
    lines = [note, "", f"| objective | {' | '.join(SETS)} | seconds | rows through the net | log Z off by |"]
    lines.append("|---" * (len(SETS) + 4) + "|")
    for objective in OBJECTIVES:
        done = [row for name in SETS for row in results(objective, name) if "kl" in row]
        if not done:
            continue
        off = [abs(row["learned_log_z"] - row["log_z"]) for row in done if row["learned_log_z"] is not None]
        columns = [cell(results(objective, name)) for name in SETS]
        columns += [
            f"{statistics.mean(r['seconds'] for r in done):.0f}",
            f"{statistics.mean(r['rows'] for r in done):.2e}",
        ]
        columns.append(f"{statistics.mean(off):.3f}" if off else "not claimed")
        lines.append(f"| {objective} | {' | '.join(columns)} |")
    return "\n".join(lines)


def draw(path: Path) -> None:
    """Learned densities of the first seed, rows objectives, columns sets, the truth on top."""
    from matplotlib.figure import Figure

    shown = [objective for objective in OBJECTIVES if any(results(objective, name) for name in SETS)]
    figure = Figure(figsize=(1.6 * len(SETS), 1.6 * (len(shown) + 1)), layout="constrained")
    axes = figure.subplots(len(shown) + 1, len(SETS), squeeze=False)
    for column, name in enumerate(SETS):
        truth = RESULTS / f"truth-{name}.png"
        density = torch.softmax(TOYS[name]().log_prob(shown_grid(name)), 0)
        keep_picture(truth, density / density.max())
        axes[0, column].set_title(name, fontsize=9)
        for row, objective in enumerate(["truth", *shown]):
            place = axes[row, column]
            file = RESULTS / f"{objective}-{name}-0.png" if row else truth
            if not file.exists():
                place.set_axis_off()
                continue
            place.imshow(Image.open(file), vmin=0, vmax=255)
            place.set(xticks=[], yticks=[])
            if column == 0:
                place.set_ylabel(objective, fontsize=6)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--objectives", default=",".join(OBJECTIVES))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--table", action="store_true", help="only the table and picture of what is there")
    args = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if not args.table:
        runs = [
            (objective, name, int(seed))
            for seed in args.seeds.split(",")
            for name in args.sets.split(",")
            for objective in args.objectives.split(",")
        ]
        Parallel(args.jobs)(delayed(keep)(*run) for run in runs)
    text = table()
    print(text)
    figures.put_between_markers(DOCS / "density2d.md", text, BEGIN, END)
    draw(DOCS / "images" / "density2d.png")


if __name__ == "__main__":
    main()
