"""The command ``adance``: runs a subcommand, and turns errors into one line and an exit status.

Nothing heavy is imported until a subcommand runs, so that ``adance --help`` answers at once.
"""

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from adance.commands.process import log_level, log_to_stderr, process_settings

COMMANDS = {
    "train": "train an energy-based model into a run folder",
    "sample": "draw samples from a run, or inpaint images",
    "evaluate": "evaluate a run: distances of samples from data, likelihood, outlier detection",
    "score": "write each row's energy, and its log-density if the model is normalized",
    "sweep": "train at every combination of some settings' values, and compare",
    "report": "write a page about a run or a sweep: samples, chains, curves, energies",
}

DONE, BAD_INPUT, DIVERGED, INTERRUPTED = 0, 2, 3, 130

log = logging.getLogger("adance")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 done, 2 bad input, 3 training diverged, 130 interrupted."""
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help"):
        print(_help())
        return DONE if args else BAD_INPUT
    if args[0] == "--version":
        print(f"adance {version('adance')}")
        return DONE
    if args[0] not in COMMANDS:
        with log_to_stderr(log_level(args)):
            return _fail(f"unknown command {args[0]!r}. Available: {', '.join(COMMANDS)}", BAD_INPUT)
    with process_settings(log_level(args)):
        return _run(args[0], args[1:])


def _run(name: str, args: list[str]) -> int:
    from adance.errors import DivergedError, InputError
    from adance.registry import trust_restored, trust_typed

    try:
        with trust_restored():
            importlib.import_module(f"adance.commands.{name}").run(trust_typed(args))
    except (InputError, argparse.ArgumentError) as error:
        return _fail(str(error), BAD_INPUT, name)
    except UnicodeDecodeError as error:
        return _fail(f"a file that should be text in UTF-8 is not: {error}", BAD_INPUT, name)
    except DivergedError as error:
        return _fail(str(error), DIVERGED, name)
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or "memory" in str(error)):
            raise
        return _fail(f"not enough memory: {error}; use smaller batches or fewer samples", BAD_INPUT, name)
    except KeyboardInterrupt as error:
        return _fail(str(error) or "interrupted", INTERRUPTED, name)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


def _fail(message: str, status: int, command: str = "") -> int:
    log.debug("where the error was raised:", exc_info=True)
    log.error(f"adance{' ' + command if command else ''}: error: {' '.join(message.split())}")
    return status


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name.ljust(width)}  {what}" for name, what in COMMANDS.items())
    return (
        "usage: adance COMMAND [options]\n\n"
        "Energy-based models, trained by distinguishing data from noise.\n\n"
        f"commands:\n{lines}\n\n"
        "options:\n  -h, --help  show this help; for the options of a command: adance COMMAND --help\n"
        "  --version   show the version\n\n"
        "exit status: 0 done, 2 bad input, 3 training diverged, 130 interrupted"
    )
