"""``adance report``."""

from adance.commands.open_run import run_path
from adance.commands.parser import make_parser
from adance.report import write_report


def run(argv: list[str]) -> None:
    """Write the page, and print its path."""
    parser = make_parser("report", "Write a page about a run or a sweep: samples, chains, curves, energies.")
    parser.option("folder", type=str, help="a run folder, a sweep folder, pretrained:NAME, or hf://OWNER/NAME")
    parser.option("--out", type=str | None, default=None, help="the file; default: report.html in the folder")
    parser.option("--seed", type=int, default=0, help="seed of the chains on the page")
    parser.option("--device", type=str, default="cpu", help="cpu or cuda")
    args = parser.read(argv)
    print(f"report: {write_report(run_path(args.folder), args.out, seed=args.seed, device=args.device)}")
