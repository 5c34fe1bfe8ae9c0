"""Copy a finished run into the package, for ``adance.load_pretrained``.

    python benchmarks/make_pretrained.py RUN NAME [--step best] [--data NAME]

Keeps the config, the description of the data, the metrics, and of the checkpoint only the weights for sampling, with
16 bits. ``--data`` replaces the path of the data.
"""

import argparse
import json
import shutil
from pathlib import Path

import torch

import adance
from adance.training.checkpoint import read_state, save_checkpoint
from adance.training.run_folder import RunFolder

PRETRAINED = Path(__file__).parent.parent / "src" / "adance" / "pretrained"
MAX_BYTES = 8 * 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("name")
    parser.add_argument("--step", default=None, help="a step, or best; by default the last")
    parser.add_argument("--data", help="the name of the data")
    args = parser.parse_args()
    run = adance.load(args.run, step=int(args.step) if args.step not in (None, "best") else args.step)
    into = RunFolder(PRETRAINED / args.name)
    shutil.rmtree(into.path, ignore_errors=True)
    config, about = run.config, run.folder.read_data_description()
    if args.data:
        config, about = config | {"data": args.data}, about | {"name": args.data}
    into.create(config, about)
    rows = [row for row in run.folder.read_metrics() if row["step"] <= run.step]
    into.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    numbers = read_state(run.folder.checkpoint(run.step))
    del numbers["checksums"]
    weights = run.energy.state_dict()
    narrow = {name: x.half().contiguous() if x.is_floating_point() else x for name, x in weights.items()}
    save_checkpoint(into.checkpoint(run.step), {"average": narrow}, numbers)
    for file in into.checkpoint(run.step).iterdir():
        file.chmod(0o644)
    worst = max(float((x - narrow[name].float()).abs().max()) for name, x in weights.items())
    size = sum(file.stat().st_size for file in PRETRAINED.rglob("*") if file.is_file())
    print(f"{into.path}: largest change of a weight {worst:.1e}; all pretrained runs have {size / 2**20:.2f} MiB")
    if size > MAX_BYTES:
        raise SystemExit(
            f"pretrained runs must have at most {MAX_BYTES / 2**20:.0f} MiB: remove one, or train a smaller model"
        )


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    main()
