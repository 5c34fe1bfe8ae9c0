"""``adance score``."""

import csv
import sys
from pathlib import Path
from typing import Literal, TextIO

from torch import Tensor

from adance.atomic import atomic_write
from adance.commands.open_run import open_run
from adance.commands.parser import WEIGHTS_HELP, make_parser
from adance.data import load_for_model
from adance.errors import InputError


def run(argv: list[str]) -> None:
    """Write each row's energy, and its log-density if the model is normalized."""
    parser = make_parser(
        "score", "Write each row's energy (low means likely), and its log-density if the model is normalized."
    )
    parser.option("run", type=str, help="the run folder")
    parser.option("data", type=str, help="a name, a .npz, .npy or .csv file, or a folder of images")
    parser.option("--out", type=str | None, default=None, help="a .csv file; default: standard output")
    parser.option(
        "--weights",
        type=Literal["average", "last"] | None,
        default=None,
        help=WEIGHTS_HELP,
    )
    parser.option("--step", type=int | None, default=None, help="step of the checkpoint; default: the last")
    parser.option("--device", type=str, default="cpu", help="cpu or cuda")
    args = parser.read(argv)

    model = open_run(args)
    energies = model.score(load_for_model(args.data, model.data))
    log_density = model.log_density(energies)
    if args.out is None:
        _write(sys.stdout, energies, log_density)
        return
    try:
        with atomic_write(Path(args.out)) as part, part.open("w", newline="") as file:
            _write(file, energies, log_density)
    except OSError as error:
        raise InputError(f"cannot write {args.out}: {error.strerror}") from None
    print(f"energies: {len(energies)} rows in {args.out}")


def _write(file: TextIO, energies: Tensor, log_density: Tensor | None) -> None:
    writer = csv.writer(file)
    columns = {"energy": energies.tolist()} | ({} if log_density is None else {"log_density": log_density.tolist()})
    writer.writerow(["row", *columns])
    writer.writerows((row, *values) for row, values in enumerate(zip(*columns.values(), strict=True)))
