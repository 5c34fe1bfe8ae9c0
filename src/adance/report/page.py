"""Fills the templates and writes the page."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from adance.atomic import check_writable, output_file
from adance.errors import InputError
from adance.report.run_page import run_context
from adance.report.sweep_page import sweep_context
from adance.sweeps.folder import SweepFolder


def write_report(folder: str | Path, out: str | Path | None = None, *, seed: int = 0, device: str = "cpu") -> Path:
    """Write the page of a run or a sweep.

    Args:
        folder: The folder of the run or sweep.
        out: The file to write; by default ``report.html`` in the folder.
        seed: Seed of the chains that are shown.
        device: Device that runs the chains.

    Returns:
        The path of the file.

    Raises:
        InputError: The folder holds neither a run nor a sweep, or the file cannot be written.
    """
    folder = Path(folder)
    out = folder / "report.html" if out is None else Path(out)
    if SweepFolder(folder).exists():
        page = render("sweep.html", sweep_context(folder))
    elif not (folder / "config.yaml").exists():
        raise InputError(f"{folder} is neither a run nor a sweep: it has no config.yaml and no sweep.json")
    else:
        check_writable(out)
        page = render("run.html", run_context(folder, seed=seed, device=device))
    with output_file(out) as part:
        part.write_text(page, encoding="utf-8")
    return out


def render(template: str, context: dict[str, Any]) -> str:
    """Fill the template with the context."""
    loader = PackageLoader("adance.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(version=version("adance"), **context)
