"""Networks bounded from below."""

from torch import Tensor, nn
from torch.nn.functional import softplus

from adance.errors import InputError
from adance.numbers import check_real

LARGEST_BOUND = 1000.0


class BoundedNet(nn.Module):
    """A network that is never below −b: ``softplus(f(x) + b) − b``.

    Args:
        net: The network f, ``(B, *event) -> (B,)``.
        bound: b, above 0 and at most 1,000: a larger b would lose digits of f to rounding.

    Raises:
        InputError: ``bound`` is not in this range.
    """

    def __init__(self, net: nn.Module, bound: float) -> None:
        super().__init__()
        check_real("bound", bound)
        if not 0 < bound <= LARGEST_BOUND:
            raise InputError(f"bound must be above 0 and at most {LARGEST_BOUND:g}, got {bound}")
        self.net, self.bound = net, bound

    def forward(self, x: Tensor) -> Tensor:
        """Values ``(B,)`` at ``x`` ``(B, *event)``."""
        return softplus(self.net(x) + self.bound) - self.bound
