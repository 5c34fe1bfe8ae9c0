"""``adance sample``."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from adance.atomic import check_writable, output_file
from adance.commands.given import split_arguments
from adance.commands.open_run import RUN_HELP, add_run_options, open_run
from adance.commands.parser import add_part, make_parser
from adance.commands.parts import choose
from adance.data import rows_for_model
from adance.data.cells import is_header
from adance.errors import InputError
from adance.samplers import Kernel
from adance.signatures import Parameter
from adance.training import Run
from adance.training.run import check_number
from adance.training.run_picture import has_picture, save_array, save_picture
from adance.training.settings import Compile

SAMPLER = Parameter("sampler", Kernel | Mapping[str, Any] | None, None)
MASK_HELP = "inpainting mask: left, right, top, bottom, or a 0/1 array"
HALVES = ("left", "right", "top", "bottom")
OUT_HELP = (
    "a .png, a .npz (array x) or, for vectors, a .csv with the columns of the data; vectors are in the units of the "
    "data, images in [-1, 1]; default: samples/sample-<seed> in the run folder, as .png and .npz, or as .csv if there "
    "is no picture"
)

COMPILE_HELP = "compile the chains: auto (if that saves more than a minute), on or off"


def run(argv: list[str]) -> None:
    """Draw samples and write them to a file."""
    parser = make_parser("sample", "Draw samples from a run.")
    parser.option("run", type=str, help=RUN_HELP)
    parser.option("--n", type=int, default=64, help="number of samples")
    parser.option(
        "--steps", type=int | None, default=None, help="steps of a chain; by default based on the chains in training"
    )
    found = split_arguments(argv, ["sampler"])
    sampler = choose("sampler", SAMPLER, found.given)
    add_part(parser, sampler)
    parser.option("--label", type=int | None, default=None, help="class label (class-conditional models only)")
    parser.option("--start", type=Literal["noise", "buffer", "data"], default="noise", help="where chains start")
    parser.option("--seed", type=int, default=0, help="seed of the chains")
    parser.option("--mask", type=str | None, default=None, help=MASK_HELP)
    parser.option(
        "--given", type=str | None, default=None, help="data to inpaint, a name or a path; default: held-out data"
    )
    parser.option("--out", type=str | None, default=None, help=OUT_HELP)
    add_run_options(parser)
    parser.option("--compile", type=Compile, default="auto", help=COMPILE_HELP)
    args = parser.read([*found.rest, *sampler.tokens()])

    model = open_run(args)
    kind = "png" if has_picture(model.data, model.energy) else "csv"
    out = Path(args.out) if args.out else model.folder.samples / f"sample-{args.seed}.{kind}"
    _check_output(model, out)
    if args.label is not None:
        model = model.of_class(args.label)
    kernel = sampler.make(args)
    if kernel is not None:
        named = isinstance(kernel, Kernel)
        model = replace(model, kernel=kernel if named else model.sampler.with_changes(kernel))
        args.steps = model.sampler.steps if args.steps is None else args.steps
    check_number(args.n)
    if args.given is not None and args.mask is None:
        raise InputError("--given needs --mask, which selects the values that stay fixed")
    kept = None if args.mask is None else _mask(args.mask, model.event_shape)
    given = None if kept is None else _given(model, args.given, args.n)
    chains = {"steps": args.steps, "start": args.start, "seed": args.seed, "compile": args.compile}
    check_writable(out)
    samples = model.sample(args.n, given=given, kept=kept, **chains)
    if args.out is None and kind == "png":
        _write(model, samples.cpu(), out.with_suffix(".npz"))
    _write(model, samples.cpu(), out)
    print(f"weights: {'moving average' if model.averaged else 'last'}, step {model.step}")
    print(f"samples: {out}")


def _check_output(model: Run, out: Path) -> None:
    if out.suffix not in (".png", ".npz", ".csv"):
        raise InputError(f"--out {out}: samples are written as .png, .npz or .csv")
    if out.suffix == ".png" and not has_picture(model.data, model.energy):
        raise InputError(f"events of shape {model.event_shape} have no picture; use --out FILE.csv or FILE.npz")
    if out.suffix == ".csv" and model.data["kind"] == "image":
        raise InputError(f"--out {out}: images are written as .png or .npz; only vectors as .csv")


def _mask(name: str, event_shape: tuple[int, ...]) -> Tensor:
    kept = torch.zeros(event_shape, dtype=torch.bool)
    if name in HALVES:
        if len(event_shape) != 3:
            raise InputError(f"--mask {name} is for images; for vectors give an array of shape {event_shape}")
        _, height, width = event_shape
        halves = {"top": kept[:, : height // 2], "bottom": kept[:, height // 2 :]}
        halves |= {"left": kept[:, :, : width // 2], "right": kept[:, :, width // 2 :]}
        halves[name][:] = True
        return kept
    try:
        array = np.load(name, allow_pickle=False)
        array = array[array.files[0]] if isinstance(array, np.lib.npyio.NpzFile) else array
        if not (isinstance(array, np.ndarray) and array.dtype.kind in "biuf"):
            raise InputError("not an array of numbers")
        return torch.tensor(array != 0).expand(event_shape)
    except Exception as error:  # broken files raise errors of NumPy, zipfile, zlib or struct
        reason = (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())
        raise InputError(
            f"--mask {name}: give left, right, top, bottom, or an .npy or .npz array of 0 and 1 that fits events of "
            f"shape {event_shape} ({reason})"
        ) from None


def _given(model: Run, path: str | None, n: int) -> Tensor:
    if path is None:
        data = model.reload_data()
        return data.batch(torch.arange(n) % len(data.test), "test")
    rows = rows_for_model(path, model.data)
    return rows[torch.arange(n) % len(rows)]


def _write(model: Run, samples: Tensor, out: Path) -> None:
    writers: dict[str, Callable[[Run, Tensor, Path], None]]
    writers = {".png": save_picture, ".npz": save_array, ".csv": _write_table}
    with output_file(out) as part:
        writers[out.suffix](model, samples, part)


def _write_table(model: Run, samples: Tensor, path: Path) -> None:
    """Write a table that ``--data`` reads: in full precision, with a header if the columns have names."""
    columns = model.data.get("columns")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([columns] if columns and is_header(columns) else [])
        writer.writerows(model.transform.to_data(samples).tolist())
