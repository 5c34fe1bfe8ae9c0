"""Networks with a lower bound."""

from torch import Tensor, nn
from torch.nn.functional import softplus

from adance.errors import InputError
from adance.numbers import check_real


class BoundedNet(nn.Module):
    """A network that is never below −b: ``softplus(f(x) + b) − b``.

    Args:
        net: f: a network ``(B, *event) -> (B,)``.
        bound: b > 0.

    Raises:
        InputError: ``bound`` is not above 0, or not finite.
    """

    def __init__(self, net: nn.Module, bound: float) -> None:
        super().__init__()
        check_real("bound", bound)
        if bound <= 0:
            raise InputError(f"bound must be above 0, got {bound}")
        self.net, self.bound = net, bound

    def forward(self, x: Tensor) -> Tensor:
        """Values ``(B,)`` at ``x`` ``(B, *event)``."""
        return softplus(self.net(x) + self.bound) - self.bound
