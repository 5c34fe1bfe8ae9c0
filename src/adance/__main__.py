"""``python -m adance`` and ``accelerate launch -m adance``."""

import os
import sys

if sys.path[0] == os.getcwd() and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # python -m puts the current folder first: nothing may be imported from it

from adance.cli import main

sys.exit(main())
