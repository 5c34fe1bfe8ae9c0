"""Maximum likelihood as a contrast: the difference of mean energies."""

from torch import Tensor

from adance.contrasts.contrast import Contrast


class Linear(Contrast):
    """``mean r(noise) − mean r(data)``, whose gradient is that of the likelihood if the noise is the model itself.

    That gradient does not depend on the noise's energy, so r is −E: the loss is ``mean E(data) − mean E(noise)``.
    """

    ignores_constant = True
    ignores_noise_energy = True
    curvature = 1.0

    def __init__(self) -> None:
        super().__init__()

    def __call__(self, r_data: Tensor, r_noise: Tensor) -> Tensor:
        """The loss from log-ratios on data ``(B,)`` and on noise ``(B, M)``."""
        return r_noise.mean() - r_data.mean()
