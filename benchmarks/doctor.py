"""Does ``adance doctor`` name the right cause first, and is it silent on good runs?

    python benchmarks/doctor.py [--out runs/doctor]

Trains nine runs that are broken in nine ways and nine good ones, looks at the metrics of each, and writes two tables
into docs/reading-a-run.md: what is found first in each run, and for each check how far the broken run and the good runs
are from the bound; and the picture of that page. Runs that are there already are not trained again. Six minutes on one
core.
"""

import argparse
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from intervals import DOCS
from matplotlib.figure import Figure
from thesis_figures import put_between_markers
from torch import nn

import adance
from adance.data import Dataset
from adance.energies import Gaussian
from adance.plot.axes import COLORS
from adance.training.doctor import CHECKS, Check, Diagnosis, History, diagnose
from adance.training.run_folder import RunFolder

RUNS_BEGIN, CHECKS_BEGIN = (
    f"<!-- table of {what}: written by benchmarks/doctor.py -->" for what in ("diagnosed runs", "margins")
)
END = "<!-- end of table -->"


@dataclass(frozen=True)
class Case:
    """A run.

    Attributes:
        name: What is trained, or how it is broken.
        data: The name of the data.
        objective: The recipe of the objective.
        cause: The cause that must be found first; empty for a good run.
        settings: Settings that are not the default ones of this benchmark.
        energy: Arguments of the network.
        rows: Training rows that are kept; all by default.
        zero: Whether all weights start at 0.
    """

    name: str
    data: str
    objective: Any
    cause: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    energy: dict[str, Any] = field(default_factory=dict)
    rows: int | None = None
    zero: bool = False


FAR = Gaussian(torch.tensor([8.0, 8.0]), torch.tensor([0.5, 0.5]))
BROKEN = (
    Case("digits, AdaNCE, lr 1", "digits", adance.AdaNCE(), "learning rate too large", {"lr": 1.0}),
    Case("rings, NCE, lr 1e-7", "rings", adance.NCE(), "learning rate too small", {"lr": 1e-7}),
    Case("digits, AdaNCE, T_r 1e-6", "digits", adance.AdaNCE(ratio_temperature=1e-6), "ratio temperature too small"),
    Case("digits, AdaNCE, T_r 1000", "digits", adance.AdaNCE(ratio_temperature=1e3), "ratio temperature too large"),
    Case(
        "digits, AdaNCE, chains of step size 1e-6",
        "digits",
        adance.AdaNCE({"step_size": 1e-6}),
        "chains never reach the data",
    ),
    Case("moons, NCE, noise 8 deviations away", "moons", adance.NCE(FAR), "noise does not cover the data"),
    Case("rings, NCE, all weights 0", "rings", adance.NCE(), "dead network", zero=True),
    Case("20 points of moons, NCE", "moons", adance.NCE(), "overfitted energy", {"batch_size": 20}, rows=20),
    Case(
        "digits, AdaNCE, margin 10, unbounded energy",
        "digits",
        adance.AdaNCE(margin=10.0),
        "energies drift",
        energy={"spectral_norm": False},
    ),
)
GOOD = (
    Case("digits, AdaNCE", "digits", adance.AdaNCE()),
    Case("digits, AdaNCE, K = 50", "digits", adance.AdaNCE(interval=50)),
    Case("moons, AdaNCE", "moons", adance.AdaNCE(), settings={"steps": 400}),
    Case("digits, maximum likelihood", "digits", adance.MaximumLikelihood(), settings={"steps": 400}),
    Case("moons, contrastive divergence, k = 10", "moons", adance.ContrastiveDivergence(k=10)),
    Case("rings, NCE, noise from a flow", "rings", adance.NCE("flow")),
    Case("rings, NCE", "rings", adance.NCE()),
    Case("moons, score matching", "moons", adance.ScoreMatching()),
    Case("digits, denoising score matching", "digits", adance.DenoisingScoreMatching(0.3)),
)


LOOKS = [(COLORS["ink"], "-"), (COLORS["accent"], "-"), (COLORS["accent"], "--")]
PANELS = (
    (
        "AUC",
        "linear",
        lambda row: row["auc"],
        {"digits, AdaNCE": "digits, AdaNCE", "digits, AdaNCE, chains of step size 1e-6": "chains of step size 1e-6"},
    ),
    (
        "standard deviation of the log-ratio",
        "log",
        lambda row: row["ratio_std"],
        {
            "digits, AdaNCE": "digits, AdaNCE",
            "digits, AdaNCE, T_r 1e-6": "ratio temperature 1e-6",
            "digits, AdaNCE, T_r 1000": "ratio temperature 1000",
        },
    ),
    (
        "held-out − training energy (deviations)",
        "linear",
        lambda row: (row["energy_held_out"] - row["energy_train"]) / row["energy_std"],
        {"rings, NCE": "rings, NCE", "20 points of moons, NCE": "20 points of moons, NCE"},
    ),
)
"""Title, scale, metric, and the runs that are drawn with their labels."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/doctor"))
    out = parser.parse_args().out
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    lines = ["| run | training warned at step | found first by `adance doctor` |", "|---|---:|---|"]
    histories = {}
    for case in (*BROKEN, *GOOD):
        folder = out / f"{'broken' if case.cause else 'good'}-{(*BROKEN, *GOOD).index(case)}"
        train(case, folder)
        rows, config = RunFolder(folder).read_metrics(), RunFolder(folder).read_config()
        histories[case.name] = History(rows, config)
        found = diagnose(rows, config)
        check_answer(case, found)
        said = (folder / "warned.txt").read_text(encoding="utf-8").strip()
        lines.append(f"| {case.name} | {said or '–'} | {found.findings[0].cause if found.findings else '–'} |")
        print(lines[-1], flush=True)
    put_between_markers(DOCS / "reading-a-run.md", "\n".join(lines), RUNS_BEGIN, END)
    put_between_markers(DOCS / "reading-a-run.md", "\n".join(margins(histories)), CHECKS_BEGIN, END)
    draw(histories, DOCS / "images" / "doctor.png")


def train(case: Case, folder: Path) -> None:
    """Train into ``folder``, unless that is done, and write the step of the first warning of the right cause."""
    if (folder / "warned.txt").exists():
        return
    data = adance.load_data(case.data)
    if case.rows is not None:
        data = Dataset(data.name, data.kind, data.train[: case.rows], data.test, data.transform)
    torch.manual_seed(0)
    energy = adance.MLP(data.event_shape, **case.energy)
    if case.zero:
        nn.utils.vector_to_parameters(torch.zeros(sum(w.numel() for w in energy.parameters())), energy.parameters())
    settings = adance.Settings(**{"steps": 600, "log_every": 50, "sample_every": 0, **case.settings})
    said = Listener()
    log = logging.getLogger("adance")
    log.addHandler(said)
    with suppress(adance.DivergedError):
        adance.Trainer(energy, case.objective, data, settings, folder, show_progress=False).fit()
    log.removeHandler(said)
    steps = [text.split()[1].rstrip(":") for text in said.texts if case.cause in text]
    (folder / "warned.txt").write_text(steps[0] if steps else "", encoding="utf-8")


class Listener(logging.Handler):
    """Keeps the warnings about steps.

    Attributes:
        texts: The warnings.
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning about a step."""
        if record.getMessage().startswith("step "):
            self.texts.append(record.getMessage())


def check_answer(case: Case, found: Diagnosis) -> None:
    first = found.findings[0].cause if found.findings else ""
    if first != case.cause:
        raise SystemExit(f"{case.name}: found {first or 'nothing'}, not {case.cause or 'nothing'}")


def margins(histories: dict[str, History]) -> list[str]:
    """The table of how far runs are from the bound of each check."""
    lines = ["| cause | bound | broken run | nearest good run |", "|---|---:|---:|---:|"]
    causes = {check: case for case in BROKEN for check in CHECKS if finds(check, histories[case.name]) == case.cause}
    for check, case in causes.items():
        good = [found for good in GOOD if (found := measured(check, histories[good.name])) is not None]
        nearest = (max if check.sick == "above" else min)(good, default=None)
        cells = [
            case.cause,
            f"{'over' if check.sick == 'above' else 'under'} {check.bound:g}",
            f"{measured(check, histories[case.name]):.3g}",
            "–" if nearest is None else f"{nearest:.3g}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def finds(check: Check, run: History) -> str | None:
    """The cause that a check finds in a run."""
    rows = check.rows(run)
    found = check.finding(run, rows) if rows else None
    return None if found is None else found.cause


def draw(histories: dict[str, History], path: Path) -> None:
    """Draw metrics of good and broken runs next to each other."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    panels = zip(figure.subplots(1, 3), PANELS, strict=True)
    for ax, (title, scale, metric, names) in panels:
        for (name, label), (color, dashes) in zip(names.items(), LOOKS, strict=False):
            rows = histories[name].rows
            ax.plot([row["step"] for row in rows], [metric(row) for row in rows], dashes, color=color, label=label)
        ax.set(yscale=scale, xlabel="step")
        if scale == "log":
            ax.set_ylim(top=1e9)  # room for the legend
        ax.set_title(title, fontsize=11, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color=COLORS["line"])
        ax.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)


def measured(check: Check, run: History) -> float | None:
    """The number of a check; ``None`` if it does not apply to the run."""
    rows = check.rows(run)
    return check.measure(rows) if rows else None


if __name__ == "__main__":
    main()
