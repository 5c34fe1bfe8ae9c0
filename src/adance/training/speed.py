"""How the chains of a run are computed: compiled or not, and in which type."""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from adance.energies.energy import is_vector
from adance.energies.frozen import freeze
from adance.errors import InputError
from adance.objectives.objective import ChainPlan
from adance.samplers.kernel import Kernel, SplitKernel
from adance.samplers.model_chains import ChainOptions
from adance.training.settings import COMPILE, Compile, Settings

WORTH = 60.0
"""Seconds that compiling must save; it costs about half as much."""

SAVED = {"cpu": (3e-4, 2e11), "cuda": (2e-3, 2e13)}
"""What it saves: seconds a step of a chain, and floating-point operations a second."""


def chain_options(
    plan: ChainPlan | None,
    energy: nn.Module,
    x: Tensor,
    settings: Settings,
    timer: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> ChainOptions:
    """How the chains of ``plan`` are computed on the energy; ``x`` ``(B, *event)`` are data.

    Raises:
        InputError: bfloat16 is asked for with an adjusted kernel.
    """
    if plan is None:
        if settings.compile in ("on", True) or settings.chain_dtype != "auto":
            warnings.warn("the objective runs no chains, so compile and chain_dtype change nothing", stacklevel=4)
        return ChainOptions()
    steps = settings.steps * plan.kernel.steps / plan.interval
    compiled = decide_compile(settings.compile, plan.kernel, energy, x, steps, plan.rows)
    return ChainOptions(compiled, _dtype(settings.chain_dtype, plan.kernel, compiled, x), timer)


def decide_compile(choice: Compile, kernel: Kernel, energy: nn.Module, x: Tensor, steps: float, rows: int) -> bool:
    """Whether to compile chains of ``rows`` rows that take ``steps`` steps in all; ``auto``: where it saves a minute.

    That is reckoned from the arithmetic of the energy at ``x`` ``(B, *event)``, so it is the same on every run.

    Raises:
        InputError: There is no such choice.
    """
    if choice not in COMPILE:
        raise InputError(f"compile must be auto, on or off, got {choice!r}")
    if choice != "auto":
        return choice in ("on", True)
    if not isinstance(kernel, SplitKernel):
        return False
    seconds, rate = SAVED["cuda" if x.is_cuda else "cpu"]
    return steps * (seconds + rows * gradient_flops(energy, x) / rate) > WORTH


@torch.no_grad()
def gradient_flops(energy: nn.Module, x: Tensor) -> float:
    """Floating-point operations of the energy gradient of one row of ``x`` ``(B, *event)``, in products of matrices.

    The way back costs what the way forth does.
    """
    with FlopCounterMode(display=False) as counter:
        freeze(energy)(x[:1])
    return 2.0 * float(counter.get_total_flops())


def _dtype(choice: str, kernel: Kernel, compiled: bool, x: Tensor) -> torch.dtype | None:
    if choice == "bfloat16" and kernel.exact:
        name = type(kernel).__name__
        raise InputError(f"{name} accepts by energies, which bfloat16 is too coarse for; chain_dtype float32 or auto")
    if choice == "bfloat16" and not has_fast_bfloat16(x.device):
        warnings.warn(
            "this device only emulates bfloat16, which can be far slower; chain_dtype auto knows", stacklevel=5
        )
    if choice == "auto" and not (kernel.exact or is_vector(x.shape[1:])):
        choice = "bfloat16" if compiled and has_fast_bfloat16(x.device) else choice
    return torch.bfloat16 if choice == "bfloat16" else None


def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies matrices of bfloat16 faster than of float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
