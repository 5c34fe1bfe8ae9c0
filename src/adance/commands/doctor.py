"""``adance doctor``."""

from adance.commands.open_run import RUN_HELP, refuse_sweep, run_path
from adance.commands.parser import make_parser
from adance.training.doctor import diagnose
from adance.training.run_folder import RunFolder


def run(argv: list[str]) -> None:
    """Print the likely causes of poor learning, the likeliest first."""
    parser = make_parser(
        "doctor",
        "Find likely causes of poor learning in a run's metrics, and print each with the setting to change. The run "
        "may still be training.",
    )
    parser.option("run", type=str, help=RUN_HELP)
    args = parser.read(argv)

    path = run_path(args.run)
    refuse_sweep(path)
    folder = RunFolder(path)
    print(diagnose(folder.read_metrics(), folder.read_config()))
