"""Tilted energies: what a network adds to a density that is known."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from torch import Tensor, nn

from adance.configurable import Configurable
from adance.energies.analytic import Density
from adance.energies.bounded import BoundedNet
from adance.energies.conditional import takes_condition
from adance.energies.mlp import MLP
from adance.errors import InputError

BaseName = Literal["gaussian", "mixture", "student", "kde", "cover", "flow"]


class Tilted(Configurable, nn.Module):
    """The energy ``E(x) = −log p_base(x) + f(x)``: a known density, corrected by a network f that starts at 0.

    The network learns only what the base misses, and far from the data the model is the base. If the base is the noise
    of the objective, the log-ratio is −f(x) − log Z, so the base is not evaluated in training, and log Z starts at 0.
    Chains for training and for sampling start from samples of the base.

    Args:
        event_shape: Shape of one event.
        net: f: a network ``(B, *event) -> (B,)``, arguments of the default :class:`MLP`, or ``None`` for that MLP. The
            weights of its last linear layer are set to 0.
        base: Any density with ``sample`` and ``log_prob``, or the name of a distribution that is fitted to the data
            before training. By default the objective's noise, if that is a density fitted to the data, else a Gaussian.
        bound: A number b, above 0 and at most 1,000: f becomes ``softplus(net(x) + b) − b``, which is at least −b and
            starts at 0.007 for b = 5. The density is then at most e^b/Z times the base, so it is integrable regardless
            of the network. By default f is the network itself, and far from the data exp(−f) can grow faster than the
            base decays.

    Raises:
        InputError: The network is conditional, its last layer is not a plain linear one, or ``bound`` is not above 0 or
            above 1,000.
    """

    base: Density | None

    def __init__(
        self,
        event_shape: Sequence[int],
        net: nn.Module | Mapping[str, Any] | None = None,
        base: BaseName | Density | None = None,
        bound: float | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(net, nn.Module):
            net = MLP(event_shape, **{"base": False, **(net or {})})
        if takes_condition(net):
            raise InputError(f"the network of a tilted energy must not be conditional, and {type(net).__name__} is")
        _start_at_zero(net)
        self.net = net if bound is None else BoundedNet(net, bound)
        self.base_name = base if isinstance(base, str) else None
        self.base = None if isinstance(base, str) else base
        self.fitted_by: Configurable | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Energies ``(B,)`` of ``x`` ``(B, *event)``.

        Raises:
            InputError: The base has not been fitted yet.
        """
        f: Tensor = self.net(x)
        return f - self.fitted_base.log_prob(x)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Load a state; the base takes the shapes of its tensors there, which depend on the data it was fitted to."""
        for path, module in self.named_modules():
            if path.partition(".")[0] == "base":
                for name, own in module.named_buffers(recurse=False):
                    stored = state_dict.get(f"{prefix}{path}.{name}", own)
                    if stored.shape != own.shape:
                        setattr(module, name, own.new_empty(stored.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @property
    def fitted_base(self) -> Density:
        """The base.

        Raises:
            InputError: It has not been fitted yet.
        """
        if self.base is None:
            raise InputError(
                "the base of the tilted energy is not fitted yet: train it with adance.Trainer, build the objective "
                "first, or pass a density as base"
            )
        return self.base


def _start_at_zero(net: nn.Module) -> None:
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear)]
    if not layers or hasattr(layers[-1], "parametrizations"):
        raise InputError(
            f"the network of a tilted energy starts at 0, for which its last layer must be a torch.nn.Linear without "
            f"spectral normalization; {type(net).__name__} has none"
        )
    for parameter in layers[-1].parameters():
        nn.init.zeros_(cast(Tensor, parameter))
