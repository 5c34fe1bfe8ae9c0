"""``python -m adance`` and ``accelerate launch -m adance``."""

import sys

from adance.cli import main

sys.exit(main())
