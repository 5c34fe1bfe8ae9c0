"""``adance doctor``."""

from adance.commands.open_run import refuse_sweep, run_path
from adance.commands.parser import make_parser
from adance.training.doctor import diagnose
from adance.training.run_folder import RunFolder


def run(argv: list[str]) -> None:
    """Print the likely causes for which a run does not learn as it could, most likely first."""
    parser = make_parser(
        "doctor",
        "Look for signs in a run's metrics that it does not learn as it could, and print likely causes with the "
        "setting to change. The run may still be training.",
    )
    parser.option("run", type=str, help="the run folder, or pretrained:NAME")
    args = parser.read(argv)

    path = run_path(args.run)
    refuse_sweep(path)
    folder = RunFolder(path)
    print(diagnose(folder.read_metrics(), folder.read_config()))
