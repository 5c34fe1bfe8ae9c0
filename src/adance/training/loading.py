"""Opening a run: a folder, or a repository on the Hugging Face Hub."""

from pathlib import Path
from typing import Literal

import torch
from torch import nn

from adance.energies.energy import outside_inference_mode
from adance.energies.frozen import freeze
from adance.errors import InputError
from adance.randomness import fork_rng
from adance.training import checkpoint as ckpt
from adance.training.config import complete_energy, energy_of, in_config, kernel_of
from adance.training.devices import find_device
from adance.training.hub import HUB_PREFIX, download
from adance.training.run import BUFFER, Run
from adance.training.run_folder import RunFolder


@outside_inference_mode()
def load(
    folder: str | Path,
    *,
    weights: Literal["average", "last"] | None = None,
    step: int | Literal["best"] | None = None,
    device: str | torch.device = "cpu",
    energy: nn.Module | None = None,
) -> Run:
    """Open a run.

    Args:
        folder: The run folder, or ``hf://owner/name`` for a run on the Hugging Face Hub (``hf://owner/name@revision``
            for a branch, a tag or a commit), which is downloaded into the Hub's local cache.
        weights: ``average`` for the moving average, ``last`` for the weights themselves; by default the average if
            there is one.
        step: The step of the checkpoint, by default the last; ``best`` for the one whose samples were nearest to data,
            if the run measured that (``evaluate_every``).
        device: The device of the energy.
        energy: An energy of the same architecture, if the config cannot rebuild it.

    Raises:
        InputError: The folder holds no run, or lacks the checkpoint or the weights, or the run cannot be downloaded.
    """
    if isinstance(folder, str) and folder.startswith(HUB_PREFIX):
        folder = download(folder)
    run_folder, placed = RunFolder(folder), find_device(str(device))
    config, description = run_folder.read_config(), run_folder.read_data_description()
    steps = run_folder.checkpoint_steps()
    if step == "best":
        step = run_folder.best_step()
    if not steps or (step is not None and step not in steps):
        there = ", ".join(map(str, steps)) or "none"
        raise InputError(f"{run_folder.path} has no checkpoint{'' if step is None else f' {step}'}. Available: {there}")
    path = run_folder.checkpoint(steps[-1] if step is None else step)
    average = path / "average.safetensors"
    if weights == "average" and not average.exists():
        raise InputError(f"{path} has no averaged weights: the run was trained with ema=0")
    averaged = average.exists() and weights != "last"
    if energy is None:
        with fork_rng(0), in_config(run_folder.path):
            energy = energy_of(config, description["event_shape"])
            complete_energy(energy, config, description["event_shape"])
    if averaged:
        energy = freeze(energy)
    ckpt.load_weights(energy, average if averaged else path / "energy.safetensors")
    tensors = ckpt.load_tensors(path / "objective.safetensors") if ckpt.is_full(path) else {}
    state = ckpt.read_state(path)
    with in_config(run_folder.path):
        kernel = kernel_of(config, description["event_shape"], energy)
    return Run(
        folder=run_folder,
        energy=freeze(energy).to(placed),
        kernel=kernel,
        data=description,
        step=state["step"],
        averaged=averaged,
        log_normalizer=state["log_normalizer"],
        chain_runs=state.get("chain_runs"),
        buffer=next((value for name, value in tensors.items() if name.endswith(BUFFER)), None),
    )
