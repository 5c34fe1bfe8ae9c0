"""Whether to compile the chains of a run, and in which type they compute."""

import logging
import timeit
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
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

log = logging.getLogger("adance")

MIN_SECONDS_SAVED = 60.0
"""``auto`` compiles if that saves more seconds than this; compiling takes about half as long."""

SAVINGS = {"cpu": (3e-4, 2e11), "cuda": (2e-3, 2e13)}
"""What compiling saves: seconds per step of a chain, plus its arithmetic at this many operations per second."""

MIN_SPEEDUP = 1.2
"""``auto`` uses bfloat16 if its products are this many times as fast as those of float32."""

PRODUCT, PRODUCTS = 512, 10
"""Size of the matrices, and number of products, in that measurement."""


def chain_options(
    plan: ChainPlan | None,
    energy: nn.Module,
    x: Tensor,
    settings: Settings,
    timer: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> ChainOptions:
    """How to compute the chains of ``plan``.

    Args:
        plan: The chains of the objective; ``None`` if it runs none.
        energy: The energy.
        x: Data ``(B, *event)``.
        settings: The choice of ``compile`` and ``chain_dtype``.
        timer: Makes a context in which each chain runs.

    Raises:
        InputError: ``chain_dtype`` is bfloat16, but the kernel accepts or rejects by energies.
    """
    if plan is None:
        if settings.compile in ("on", True) or settings.chain_dtype != "auto":
            warnings.warn("the objective runs no chains: compile and chain_dtype have no effect", stacklevel=4)
        return ChainOptions()
    steps = settings.steps * plan.kernel.steps / plan.interval
    compiled = plan.alike and decide_compile(settings.compile, plan.kernel, energy, x, steps, plan.rows)
    if settings.compile in ("on", True) and not plan.alike:
        warnings.warn(
            "reweighted chains are not compiled: how many move, and how far, differs from one refresh to the next",
            stacklevel=4,
        )
    dtype = _dtype(settings.chain_dtype, plan.kernel, compiled, x)
    log.debug(
        "chains of %s: %s, in %s", type(plan.kernel).__name__, "compiled" if compiled else "eager", dtype or x.dtype
    )
    return ChainOptions(compiled, dtype, timer)


def decide_compile(choice: Compile, kernel: Kernel, energy: nn.Module, x: Tensor, steps: float, rows: int) -> bool:
    """Whether to compile chains of ``rows`` rows that take ``steps`` steps in total; ``auto`` if it saves a minute.

    The saving is estimated from the arithmetic of the energy at ``x`` ``(B, *event)``, not measured, so the decision is
    reproducible.

    Raises:
        InputError: ``choice`` is not auto, on or off.
    """
    if choice not in COMPILE:
        raise InputError(f"compile must be auto, on or off, got {choice!r}")
    if choice != "auto":
        return choice in ("on", True)
    if not isinstance(kernel, SplitKernel):
        return False
    seconds, rate = SAVINGS["cuda" if x.is_cuda else "cpu"]
    return steps * (seconds + rows * gradient_flops(energy, x) / rate) > MIN_SECONDS_SAVED


@torch.no_grad()
def gradient_flops(energy: nn.Module, x: Tensor) -> float:
    """Floating-point operations in the matrix products of the energy gradient for one row of ``x`` ``(B, *event)``.

    The backward pass to the input costs as much as the forward pass.
    """
    with FlopCounterMode(display=False) as counter:
        freeze(energy)(x[:1])
    return 2.0 * float(counter.get_total_flops())


def _dtype(choice: str, kernel: Kernel, compiled: bool, x: Tensor) -> torch.dtype | None:
    if choice == "bfloat16" and kernel.exact:
        name = type(kernel).__name__
        raise InputError(f"{name} needs exact energies: bfloat16 is too coarse; use chain_dtype float32 or auto")
    if choice == "bfloat16" and not has_fast_bfloat16(x.device):
        warnings.warn(
            "this device only emulates bfloat16, which can be far slower; chain_dtype=auto avoids that", stacklevel=5
        )
    if choice == "auto" and not (kernel.exact or is_vector(x.shape[1:])):
        choice = "bfloat16" if compiled and has_fast_bfloat16(x.device) else choice
    return torch.bfloat16 if choice == "bfloat16" else None


@cache
def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies matrices of bfloat16 faster than of float32.

    On a CPU this is measured, since some processors that have the instructions are slower with them.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type != "cpu" or not (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()):
        return False
    return MIN_SPEEDUP * _product_seconds(torch.bfloat16) < _product_seconds(torch.float32)


def _product_seconds(dtype: torch.dtype) -> float:
    """Seconds that a matrix product takes: the shortest of several measurements."""
    a = torch.ones(PRODUCT, PRODUCT, dtype=dtype)
    a @ a  # the first product prepares the kernel
    return min(timeit.repeat(lambda: a @ a, number=1, repeat=PRODUCTS))
