"""Runs on the Hugging Face Hub, as safetensors, JSON and YAML; nothing else is uploaded or downloaded."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adance.atomic import copy_dir, reason
from adance.errors import InputError
from adance.training.checkpoint import WEIGHTS
from adance.training.evaluation_file import read_evaluation
from adance.training.model_card import PICTURE, model_card

if TYPE_CHECKING:
    from adance.training.run import Run

HUB_PREFIX = "hf://"
"""Prefix of the address of a run on the Hub: ``hf://owner/name`` or ``hf://owner/name@revision``."""

CONFIG = "config.yaml"
FILES = ["README.md", CONFIG, "data.json", "metrics.jsonl", "evaluation.json", PICTURE]
FILES += [f"checkpoints/*/{name}" for name in WEIGHTS]
"""The files of a run in a repository."""

ADDRESS = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+?)(@(?P<revision>[^@\s]+))?")


def download(address: str) -> Path:
    """Download the run at ``address`` into the Hub's cache, and return its folder; without a network, the cached copy.

    Raises:
        InputError: The address is malformed, ``huggingface_hub`` is not installed, or the run cannot be downloaded.
    """
    repository, revision = _parse(address)
    patterns = [*FILES, ".gitattributes"]  # every repository has the last one; the library warns if no file matches
    options = {"endpoint": _endpoint(), "library_name": "adance", "library_version": version("adance")}
    with _hub(address) as hub:
        folder = Path(hub.snapshot_download(repository, revision=revision, allow_patterns=patterns, **options))
    if not (folder / CONFIG).exists():
        raise InputError(f"{address} is not an adance run: the repository has no {CONFIG}")
    return folder


def copy_from_hub(address: str, parent: str | Path = "runs") -> Path:
    """Copy a run on the Hub to ``<parent>/hf-<owner>-<name>-<commit>``, unless it is there, and return that folder.

    Raises:
        InputError: As for :func:`download`, or the copy cannot be written.
    """
    source = download(address)
    path = Path(parent, f"hf-{_parse(address)[0].replace('/', '-')}-{source.name[:8]}")
    try:
        copy_dir(source, path)
    except OSError as error:
        raise InputError(f"cannot copy {address} to {path}: {reason(error)}") from None
    return path


def push(run: "Run", repository: str, *, private: bool, license: str) -> str:
    """Upload a run; see :meth:`adance.Run.push_to_hub`.

    Raises:
        InputError: ``huggingface_hub`` is not installed, or the upload fails.
    """
    address = f"{HUB_PREFIX}{repository}"
    if _parse(address)[1] is not None:
        raise InputError(f"{address} has a revision: push to owner/name without one")
    with tempfile.TemporaryDirectory() as folder, _hub(address) as hub:
        _collect(run, Path(folder), repository, license)
        api = hub.HfApi(endpoint=_endpoint(), library_name="adance", library_version=version("adance"))
        api.create_repo(repository, private=private, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            delete_patterns=FILES,  # removes the files of an earlier run, whose steps may differ
            commit_message=f"Upload a run of {run.step} steps",
        )
        return f"{address}@{done.oid}"


def _collect(run: "Run", into: Path, repository: str, license: str) -> None:
    """Copy the files of a run that are uploaded, and write its model card."""
    held = run.folder
    evaluation, metrics = read_evaluation(held.path)
    current = evaluation.get("step") == run.step and evaluation.get("weights") == run.weights
    pictures = sorted(held.samples.glob("[0-9]*.png")) if held.samples.exists() else []
    sources = {name: held.path / name for name in (CONFIG, "data.json", "metrics.jsonl")}
    sources |= {f"checkpoints/{run.step:08d}/{name}": held.checkpoint(run.step) / name for name in WEIGHTS}
    sources |= {"evaluation.json": held.path / "evaluation.json"} if current else {}
    sources |= {PICTURE: pictures[-1]} if pictures else {}
    for name, source in sources.items():
        if source.exists():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, into / name)
    card = model_card(run, repository, license, metrics if current else [], picture=bool(pictures))
    (into / "README.md").write_text(card, encoding="utf-8")


def _parse(address: str) -> tuple[str, str | None]:
    found = ADDRESS.fullmatch(address.removeprefix(HUB_PREFIX))
    if not found:
        raise InputError(f"{address!r} is not a run on the Hub: use hf://owner/name or hf://owner/name@revision")
    return found["repository"], found["revision"]


def _endpoint() -> str | None:
    """The Hub's address if the environment sets one, read at each call; huggingface_hub reads it only on import."""
    return os.environ.get("HF_ENDPOINT") or None


@contextmanager
def _hub(address: str) -> Iterator[Any]:
    """Yield ``huggingface_hub``, and turn its errors into one-line errors."""
    try:
        import huggingface_hub as hub
        from huggingface_hub import errors, utils  # attributes of the library only once they are imported
    except ImportError:
        raise InputError(f"{address} needs huggingface_hub: pip install 'adance[hub]'") from None
    try:
        with _no_bars_in_files(utils):
            yield hub
    except InputError:
        raise
    except errors.RevisionNotFoundError:
        raise InputError(f"{address}: the repository has no such branch, tag or commit") from None
    except errors.RepositoryNotFoundError:
        advice = "if it is private, log in with: hf auth login"
        raise InputError(f"{address}: there is no such repository; {advice}") from None
    except errors.LocalEntryNotFoundError as error:
        raise InputError(f"{address}: the Hub cannot be reached, and its cache has no copy ({_why(error)})") from None
    except Exception as error:  # the library, its HTTP client and the disk fail in many ways
        raise InputError(f"{address}: {_why(error)}") from None


@contextmanager
def _no_bars_in_files(utils: Any) -> Iterator[None]:
    """Show the library's progress bars on a terminal only."""
    hidden = not (sys.stderr.isatty() or utils.are_progress_bars_disabled())
    if hidden:
        utils.disable_progress_bars()
    try:
        yield
    finally:
        if hidden:
            utils.enable_progress_bars()


def _why(error: BaseException) -> str:
    """The cause of a library's error: its class, and the first line that is not empty."""
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[0]}" if lines else type(cause).__name__
