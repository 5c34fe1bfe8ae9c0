"""The command ``adance``: runs a subcommand, and turns errors into one line and an exit status.

Nothing heavy is imported until a subcommand runs, so that ``adance --help`` answers at once.
"""

import argparse
import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from adance.commands.process import flush_denormals, log_level, log_to_stderr, open_streams, reuse_freed_memory
from adance.signals import EndingSignals, Interrupted, handled_by

COMMANDS = {
    "train": "train an energy-based model into a run folder",
    "doctor": "find likely causes of poor learning in a run's metrics, and say what to change",
    "sample": "draw samples from a run, or inpaint images",
    "evaluate": "evaluate a run: distances of samples from data, likelihood, outlier detection",
    "score": "write each row's energy, and its log-density if the model is normalized",
    "outliers": "find the rows of a table that are unlikely among the rows of another",
    "ratio": "measure how a table differs from an old one, and weight the old rows to match it",
    "sweep": "train at every combination of some settings' values, and compare",
    "report": "write a page about a run or a sweep: samples, chains, curves, energies",
}

DONE, BAD_INPUT, DIVERGED = 0, 2, 3

log = logging.getLogger("adance")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    0: done, 2: bad input or a file that cannot be written, 3: training diverged, 128 + n: ended by signal n (130 after
    Ctrl-C).
    """
    args = list(sys.argv[1:] if argv is None else argv)
    signals = EndingSignals()
    with log_to_stderr(log_level(args)), handled_by(signals):
        if not open_streams():
            return _fail("standard output is closed: redirect it, as in > /dev/null", BAD_INPUT)
        try:
            status = _dispatch(args, signals)
            sys.stdout.flush()
        except BrokenPipeError:
            return _reader_gone()
        except (OSError, KeyboardInterrupt) as error:
            _discard_output()
            return _fail(*_answer(error, signals))
        return status


def _dispatch(args: list[str], signals: EndingSignals) -> int:
    if not args or args[0] in ("-h", "--help"):
        print(_help())
        return DONE if args else BAD_INPUT
    if args[0] == "--version":
        from importlib.metadata import version

        print(f"adance {version('adance')}")
        return DONE
    if args[0] not in COMMANDS:
        return _fail(f"unknown command {args[0]!r}. Available: {', '.join(COMMANDS)}", BAD_INPUT)
    try:
        os.getcwd()
    except FileNotFoundError:
        return _fail("the current folder has been deleted: change to one that exists", BAD_INPUT, args[0])
    with reuse_freed_memory(), flush_denormals():
        return _run(args[0], args[1:], signals)


def _run(name: str, args: list[str], signals: EndingSignals) -> int:
    from adance.registry import trust_restored, trust_typed

    try:
        command = importlib.import_module(f"adance.commands.{name}")
        signals.importing = False
        with trust_restored():
            command.run(trust_typed(args))
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    except BaseException as error:
        if isinstance(error, SystemExit) and signals.received is None:
            raise
        return _fail(*_answer(error, signals), name)
    return DONE


def _answer(error: BaseException, signals: EndingSignals) -> tuple[str, int]:
    """Return the message and exit status for an error; raise it again if it is a bug."""
    from adance.errors import DivergedError, InputError

    number = signals.received or signals.waited_for or signal.SIGINT
    if isinstance(error, Interrupted):
        return str(error), 128 + error.number
    # an interrupted library may have raised an error of its own
    if isinstance(error, KeyboardInterrupt) or signals.received is not None:
        return str(Interrupted(number)), 128 + number
    if isinstance(error, (InputError, argparse.ArgumentError)):
        return str(error), BAD_INPUT
    if isinstance(error, UnicodeDecodeError):
        return f"a file that should be text in UTF-8 is not: {error}", BAD_INPUT
    if isinstance(error, DivergedError):
        return str(error), DIVERGED
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "memory" in str(error)):
        return f"not enough memory: {error}; use smaller batches or fewer samples", BAD_INPUT
    if isinstance(error, OSError):
        where = "cannot write standard output or a file" if error.filename is None else str(error.filename)
        return f"{where}: {error.strerror or error}", BAD_INPUT
    raise error


def _reader_gone() -> int:
    """End successfully after the program that read the output, such as ``head``, has closed it."""
    _discard_output()
    return DONE


def _discard_output() -> None:
    """Send what is left of standard output to the null device, so that Python's final flush succeeds."""
    with suppress(OSError):  # standard output may have no file descriptor, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
        "exit status: 0 done, 2 bad input, 3 training diverged, 130 interrupted, 143 ended by SIGTERM"
    )
