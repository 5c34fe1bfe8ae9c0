"""Check that a change of structure moves no result, to the bit.

``run`` trains the default run on three data sets and every named objective on one, briefly, on one thread, without
compiled chains, and draws samples from each run. ``compare`` says which tensors, metrics and samples differ between two
such folders; names of metrics that changed between the two are translated first.

    $ python benchmarks/same_results.py run before    # at the one commit
    $ python benchmarks/same_results.py run after     # at the other
    $ python benchmarks/same_results.py compare before after
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

OBJECTIVES = [
    "AdaNCE",
    "NCE",
    "BRM",
    "RankingNCE",
    "ConditionalNCE",
    "AdaBRM",
    "ACE",
    "FCE",
    "MaximumLikelihood",
    "ContrastiveDivergence",
    "PersistentCD",
    "ScoreMatching",
    "DenoisingScoreMatching",
]
NOISES = {"RankingNCE", "ConditionalNCE"}
"""Objectives whose number of noises is given, since the command line once took another default for it."""
RUNS = {f"default-{data}": ["--data", data] for data in ("digits", "8gaussians", "moons")} | {
    f"8gaussians-{name}": [
        *("--data", "8gaussians", "--objective", name),
        *(("--objective.noises", "1") if name in NOISES else ()),
    ]
    for name in OBJECTIVES
}
SETTINGS = [
    "--steps",
    "200",
    "--compile",
    "off",
    "--device",
    "cpu",
    "--log_every",
    "20",
    "--sample_every",
    "0",
    "--seed",
    "0",
    "--quiet",
]
RENAMED: dict[str, str] = {}
"""Metrics that were renamed between the two commits: the old name to the new."""
TIMES = {"seconds", "steps_per_second"}


def run(out: Path) -> None:
    """Train every run that ``out`` does not hold yet, and draw samples from it."""
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    out.mkdir(parents=True, exist_ok=True)
    for name, args in RUNS.items():
        folder, samples = out / name, out / f"{name}.npz"
        adance = [sys.executable, "-m", "adance"]
        if not samples.exists():
            subprocess.run([*adance, "train", *args, *SETTINGS, "--out", folder], env=environment, check=True)
            draw = ["sample", folder, "--n", "16", "--compile", "off", "--device", "cpu", "--out", samples]
            subprocess.run([*adance, *draw], env=environment, check=True, stdout=subprocess.DEVNULL)


def differences(old: Path, new: Path) -> list[str]:
    """What differs between a run in ``old`` and one in ``new``: tensors of the last checkpoint, metrics, samples."""
    found = []
    checkpoint = sorted((old / "checkpoints").iterdir())[-1].name
    for file in ("energy.safetensors", "average.safetensors", "random.safetensors"):
        before, after = (load_file(folder / "checkpoints" / checkpoint / file) for folder in (old, new))
        if before.keys() != after.keys():
            found.append(f"{file}: names of tensors")
        found += [f"{file}: {k}" for k in before.keys() & after.keys() if before[k].tobytes() != after[k].tobytes()]
    for before, after in zip(_metrics(old), _metrics(new), strict=True):
        before = {RENAMED.get(name, name): value for name, value in before.items()}
        names = sorted(before.keys() | after.keys())
        found += [f"step {after['step']}: {k}" for k in names if before.get(k) != after.get(k)]
    if not np.array_equal(_samples(old), _samples(new), equal_nan=True):
        found.append("samples")
    return found


def _samples(run: Path) -> np.ndarray:
    return np.load(run.with_name(f"{run.name}.npz"))["x"]


def _metrics(folder: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in row.items() if name not in (*TIMES, "crc32")} for row in rows]


def compare(old: Path, new: Path) -> int:
    """Print a line a run; 1 if any differs."""
    worst = 0
    for name in RUNS:
        found = differences(old / name, new / name)
        print(f"{name:<40} {'equal' if not found else ', '.join(found[:6])}")
        worst |= bool(found)
    return worst


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", out]:
            run(Path(out))
        case ["compare", old, new]:
            sys.exit(compare(Path(old), Path(new)))
        case _:
            sys.exit(__doc__)
