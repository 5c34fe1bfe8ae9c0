import subprocess
import sys

HIDDEN = """
import importlib, pkgutil, sys
sys.modules["fcntl"] = sys.modules["resource"] = None
import adance
for module in pkgutil.walk_packages(adance.__path__, "adance."):
    if module.name != "adance.__main__":
        importlib.import_module(module.name)
"""


def test_every_module_is_imported_where_there_is_no_unix():
    done = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
