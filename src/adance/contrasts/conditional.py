"""Conditional noise-contrastive estimation: which one of a pair is the datum?"""

from torch import Tensor
from torch.nn.functional import softplus

from adance.contrasts.contrast import Contrast, hinge


class Conditional(Contrast):
    """Ordered pairs of a datum x and a noise y drawn from p_n(y|x) (thesis 3.1, 3.2; Ceylan & Gutmann 2018).

    With ``G = r(x) − r(y)`` the posterior of the true order is σ(G), and the loss is the mean of softplus(−G). A
    constant in r cancels, and so does a symmetric p_n(y|x).

    Args:
        noises: Noise samples per datum; each forms a pair with it.
    """

    bounded_weights = True
    ignores_constant = True
    curvature = 0.5  # at r = 0 both orders are equally likely

    def __call__(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The loss from log-ratios on data ``(B,)`` and on the noises of each ``(B, M)``."""
        return softplus(r_noise - r_data[:, None]).mean()

    def zero_temperature_loss(self, d_data: Tensor, d_noise: Tensor) -> Tensor:
        """The hinge on each pair, with slope ½ at 0."""
        return hinge(d_noise - d_data[:, None]).mean()
