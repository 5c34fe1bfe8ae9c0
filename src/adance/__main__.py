"""``adance``, ``python -m adance`` and ``accelerate launch -m adance``."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # until the command handles the signal: an interrupted import would show a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import sys
from contextlib import suppress

with suppress(FileNotFoundError):  # the current folder may have been deleted
    if __name__ == "__main__" and sys.path[0] == os.getcwd() and not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # python -m puts the current folder first: nothing may be imported from it

from adance.cli import main


def run() -> None:
    """Run the command line, and end the process with its exit status."""
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done
    sys.exit(status)


if __name__ == "__main__":
    run()
