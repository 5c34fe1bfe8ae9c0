"""Adam as one fused operation on all weights, with torch's own kernel and little around it.

``torch.optim.Adam`` computes the same numbers, bit for bit, but imports torch's compiler, which takes a second, and
groups the tensors again at every step.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.errors import InputError

EPSILON = 1e-8


class FusedAdam:
    """Adam on ``parameters``; those without a gradient stay as they are.

    Args:
        parameters: The weights, all of one dtype and on one device.
        betas: Decay of the moments.
        maximize: Climb instead of descending.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], betas: tuple[float, float], maximize: bool = False) -> None:
        self.parameters, self.betas, self.maximize = list(parameters), betas, maximize
        self.moments: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, lr: float, masked: Tensor) -> None:
        """One step at learning rate ``lr``; if ``masked`` is 1.0, no weight changes, without waiting for the device."""
        live = [index for index, parameter in enumerate(self.parameters) if parameter.grad is not None]
        if not live:
            return
        weights: list[Tensor] = [self.parameters[index] for index in live]
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        steps, first, second = map(list, zip(*(self._moments(index) for index in live), strict=True))
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            weights,
            gradients,
            first,
            second,
            [],
            steps,
            lr=lr,
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=self.maximize,
            found_inf=masked,
        )
        torch._foreach_sub_(steps, [masked] * len(steps))

    def live(self, count: int) -> int:
        """Count the elements of the first ``count`` parameters that have had a nonzero gradient (second moment > 0)."""
        return sum(int(second.count_nonzero()) for index, (_, _, second) in self.moments.items() if index < count)

    def tensors(self) -> dict[str, Tensor]:
        """The state as named tensors, ``<parameter's number>.<name>``."""
        names = ("step", "exp_avg", "exp_avg_sq")
        return {
            f"{index}.{name}": value
            for index, values in self.moments.items()
            for name, value in zip(names, values, strict=True)
        }

    def load(self, tensors: dict[str, Tensor], source: object) -> None:
        """Continue from :meth:`tensors`, read from ``source``.

        Raises:
            InputError: The tensors do not fit the parameters.
        """
        moments: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        unknown = set(tensors)
        for index, parameter in enumerate(self.parameters):
            names = {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
            found = [tensors.get(f"{index}.{name}") for name in names]
            unknown -= {f"{index}.{name}" for name in names}
            for (name, shape), value in zip(names.items(), found, strict=True):
                if value is not None and value.shape != shape:
                    raise InputError(
                        f"{source} does not fit the energy's weights: {index}.{name} has shape {tuple(value.shape)}"
                    )
            if all(value is None for value in found):
                continue
            step, first, second = found
            if step is None or first is None or second is None:
                raise InputError(f"{source} does not fit the energy's weights: some of Adam's moments are missing")
            moments[index] = step.to(parameter.device), first.to(parameter), second.to(parameter)
        for name in sorted(unknown):
            size = tuple(tensors[name].shape)
            raise InputError(f"{source} does not fit the energy's weights: {name} has shape {size}")
        self.moments = moments

    def _moments(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """The number of steps, and the moments of a parameter; 0 before its first step."""
        if index not in self.moments:
            weight = self.parameters[index]
            step = torch.zeros((), dtype=torch.float32, device=weight.device)
            self.moments[index] = step, torch.zeros_like(weight), torch.zeros_like(weight)
        return self.moments[index]
