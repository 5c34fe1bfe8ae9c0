"""``adance score``."""

import csv
import sys
from pathlib import Path
from typing import TextIO

from torch import Tensor

from adance.atomic import check_writable, output_file
from adance.commands.open_run import RUN_HELP, add_run_options, open_run
from adance.commands.parser import make_parser
from adance.data import rows_for_model


def run(argv: list[str]) -> None:
    """Write each row's energy, and its log-density if the model is normalized."""
    parser = make_parser(
        "score", "Write each row's energy (low means likely), and its log-density if the model is normalized."
    )
    parser.option("run", type=str, help=RUN_HELP)
    parser.option("data", type=str, help="a name, a .npz, .npy or .csv file, or a folder of images")
    parser.option("--out", type=str | None, default=None, help="a .csv file; default: standard output")
    add_run_options(parser)
    args = parser.read(argv)

    model = open_run(args)
    rows = rows_for_model(args.data, model.data)
    if args.out is not None:
        check_writable(Path(args.out))
    energies = model.score(rows)
    log_density = model.log_density(energies)
    if args.out is None:
        _write(sys.stdout, energies, log_density)
        return
    with output_file(Path(args.out)) as part, part.open("w", newline="", encoding="utf-8") as file:
        _write(file, energies, log_density)
    print(f"energies: {len(energies)} rows in {args.out}")


def _write(file: TextIO, energies: Tensor, log_density: Tensor | None) -> None:
    writer = csv.writer(file)
    columns = {"energy": energies.tolist()} | ({} if log_density is None else {"log_density": log_density.tolist()})
    writer.writerow(["row", *columns])
    writer.writerows((row, *values) for row, values in enumerate(zip(*columns.values(), strict=True)))
