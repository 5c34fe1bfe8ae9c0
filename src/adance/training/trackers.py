"""Experiment trackers: accelerate starts them and passes metrics on; settings and pictures are added here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import Accelerator
from PIL import Image

from adance.errors import InputError
from adance.yaml_text import as_text

PROJECT = "adance"
SAMPLES = "samples"


def track_into(accelerator: Accelerator, folder: Path) -> None:
    """Let trackers write to ``folder``."""
    accelerator.project_configuration.project_dir = str(folder)
    accelerator.project_configuration.logging_dir = str(folder)


def start_trackers(accelerator: Accelerator, folder: Path, config: Mapping[str, Any]) -> None:
    """Start all trackers, named after the run folder, with the settings of its config.

    Raises:
        InputError: A tracker cannot start, for example because you are not logged in.
    """
    named = {"wandb": {"name": folder.name, "dir": str(folder)}, "mlflow": {"run_name": folder.name}}
    try:
        accelerator.init_trackers(PROJECT, config=hyperparameters(config), init_kwargs=named)
    except Exception as error:  # every tracker has its own errors
        names = ", ".join(map(str, accelerator.log_with))
        raise InputError(f"cannot start the tracker {names}: {' '.join(str(error).split())}") from None


def hyperparameters(config: Mapping[str, Any], prefix: str = "") -> dict[str, bool | int | float | str]:
    """The settings of a config as flat names and plain values.

    As on the command line, ``objective.sampler`` is a sampler's class, and ``objective.sampler.steps`` an argument.
    """
    found: dict[str, bool | int | float | str] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and "class_path" in value:
            found[prefix + name] = value["class_path"]
            found |= hyperparameters(value.get("init_args") or {}, f"{prefix}{name}.")
        elif isinstance(value, Mapping):
            found |= hyperparameters(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value if isinstance(value, (bool, int, float, str)) else as_text(value)
    return found


def track_picture(accelerator: Accelerator, path: Path, step: int) -> None:
    """Pass a picture to the trackers that accept one: TensorBoard, Weights & Biases and MLflow."""
    for tracker in accelerator.trackers:
        if tracker.name == "tensorboard":
            tracker.writer.add_image(SAMPLES, _pixels(path), step, dataformats="HWC")
            tracker.writer.flush()
        elif tracker.name == "wandb":
            import wandb

            tracker.log({SAMPLES: wandb.Image(str(path))}, step=step)
        elif tracker.name == "mlflow":
            import mlflow

            mlflow.log_image(_pixels(path), key=SAMPLES, step=step)


def _pixels(path: Path) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """A picture ``(H, W, 3)``."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))
