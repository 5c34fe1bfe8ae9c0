"""Finds piecewise-linear parts of an energy, whose second derivatives are 0."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from adance.energies.energy import eval_mode
from adance.errors import InputError

LAYERS: tuple[type[nn.Module], ...] = (
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.PReLU,
    nn.RReLU,
    nn.Hardtanh,
    nn.Hardsigmoid,
    nn.Hardshrink,
    nn.Softshrink,
    nn.Threshold,
    nn.MaxPool1d,
    nn.MaxPool2d,
    nn.MaxPool3d,
    nn.AdaptiveMaxPool1d,
    nn.AdaptiveMaxPool2d,
    nn.AdaptiveMaxPool3d,
)
OPERATIONS = {
    "relu",
    "relu6",
    "leaky_relu",
    "_prelu_kernel",
    "hardtanh",
    "hardsigmoid",
    "hardshrink",
    "softshrink",
    "threshold",
    "max_pool1d",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
}
"""The same layers as torch operators, without the underscore of in-place ones."""


def refuse_piecewise_linear(energy: nn.Module, x: Tensor, what: str) -> None:
    """Raise an error for piecewise-linear parts, whose Hessian is zero almost everywhere.

    Layers are found anywhere in the module, functions (``torch.relu``) by one forward of ``x`` ``(B, *event)``.

    Args:
        energy: The energy.
        x: A few events.
        what: Name of the method that needs second derivatives.

    Raises:
        InputError: There is such a part, which the message names.
    """
    for name, layer in energy.named_modules():
        if isinstance(layer, LAYERS):
            raise InputError(_message(f"the energy's layer {name!r} is a {type(layer).__name__}", what))
    with eval_mode(energy), torch.no_grad(), _Recorder() as recorder:
        energy(x)
    for name in sorted(recorder.names & OPERATIONS):
        raise InputError(_message(f"the energy's forward uses the function {name.lstrip('_')}", what))


def _message(part: str, what: str) -> str:
    return (
        f"{part}, piecewise linear: its second derivative is zero almost everywhere, and {what} does not see its "
        "kinks; use SiLU, Softplus, Tanh or GELU, or DenoisingScoreMatching"
    )


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the names of the operations inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.names.add(func.overloadpacket.__name__.rstrip("_"))
        return func(*args, **(kwargs or {}))
