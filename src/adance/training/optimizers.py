"""The optimizers of a run: one that minimizes, and one that maximizes for an adversary."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from adance.distributed import mean_over_ranks, world_size
from adance.objectives.objective import Objective
from adance.training.adam import FusedAdam
from adance.training.schedule import learning_rate
from adance.training.settings import Settings


class Optimizers:
    """Adam on the energy and the objective's own parameters, and a second Adam that maximizes over the adversary's.

    Args:
        energy: The energy, not wrapped by accelerate.
        objective: The objective.
        settings: Learning rates and betas.
    """

    def __init__(self, energy: nn.Module, objective: Objective, settings: Settings) -> None:
        self.settings = settings
        self.of_energy = [parameter for parameter in energy.parameters() if parameter.requires_grad]
        groups = {"optimizer": [*self.of_energy, *objective.own_parameters()]}
        self.of_objective = [*objective.own_parameters(), *objective.adversary_parameters()]
        if objective.adversary_parameters():
            groups["adversary"] = objective.adversary_parameters()
        self.by_name = {
            name: FusedAdam(parameters, settings.betas, maximize=name == "adversary")
            for name, parameters in groups.items()
        }

    def zero_grad(self) -> None:
        """Clear the gradients of both."""
        for optimizer in self.by_name.values():
            optimizer.zero_grad()

    def average_gradients(self) -> None:
        """Average all gradients over the processes, in one message."""
        if world_size() == 1:
            return
        gradients = _gradients([*self.of_energy, *self.of_objective])
        joined = mean_over_ranks(torch.cat([gradient.flatten() for gradient in gradients]))
        parts = torch.split(joined, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def clip_gradients(self) -> Tensor:
        """Scale the gradient of the energy's weights to the bound, and return the norm of all gradients before that.

        A learned log Z and an adversary are not clipped: a log Z that is far off would dominate the norm, so that
        neither the weights nor log Z itself would move.
        """
        norm = _total_norm(_gradients(self.of_energy))
        if self.settings.grad_clip is not None:
            nn.utils.clip_grads_with_norm_(self.of_energy, self.settings.grad_clip, norm)
        others = _gradients(self.of_objective)
        return _total_norm([norm, *others]) if others else norm

    def step(self, step: int, masked: Tensor, lr_factor: float = 1.0) -> None:
        """Do optimizer step ``step``, counted from 1; if ``masked`` is 1.0, no weight changes.

        ``lr_factor`` multiplies every learning rate but the adversary's.
        """
        adversary_lr = self.settings.adversary_lr or self.settings.lr
        for name, optimizer in self.by_name.items():
            ratio = adversary_lr / self.settings.lr if name == "adversary" else lr_factor
            optimizer.step(ratio * learning_rate(self.settings, step), masked)

    @torch.no_grad()
    def metrics(self) -> dict[str, float]:
        """The root mean square of the energy's weights, and the share of them that have had a nonzero gradient."""
        count = sum(weight.numel() for weight in self.of_energy)
        if count == 0:
            return {}
        size = float(nn.utils.get_total_norm(self.of_energy)) / math.sqrt(count)
        return {"weight_rms": size, "live_weights": self.by_name["optimizer"].live(len(self.of_energy)) / count}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """The state of each optimizer, by the name of its checkpoint file."""
        return {name: optimizer.tensors() for name, optimizer in self.by_name.items()}


@torch.no_grad()
def _total_norm(tensors: list[Tensor]) -> Tensor:
    """The joint norm of all tensors, which are on one device; cheaper than torch's ``get_total_norm``."""
    return torch.linalg.vector_norm(torch.stack(torch._foreach_norm(tensors))) if tensors else torch.zeros(())


def _gradients(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]
