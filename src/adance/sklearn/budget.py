"""How large a network and how long a fit, by the number of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from adance.training.settings import Settings

FEW_ROWS = 300
FEW_STEPS, MOST_STEPS = 80, 4000
BETAS = (0.9, 0.99)
MEASUREMENTS = 20
"""How often the held-out loss is measured at most."""

PATIENCE = 5


@dataclass(frozen=True)
class Budget:
    """The size of a fit.

    Attributes:
        hidden: Widths of the hidden layers.
        settings: The settings of training.
    """

    hidden: tuple[int, ...]
    settings: Settings

    @classmethod
    def of(
        cls,
        n: int,
        hidden: Sequence[int] | None = None,
        max_steps: int | None = None,
        largest_default: int = MOST_STEPS,
    ) -> "Budget":
        """The budget for ``n`` rows; ``hidden`` and ``max_steps`` are chosen if they are ``None``.

        Args:
            n: Number of rows.
            hidden: Widths of the hidden layers.
            max_steps: Most steps.
            largest_default: Upper bound on the default of ``max_steps``.
        """
        few = n <= FEW_ROWS
        steps = max_steps if max_steps is not None else FEW_STEPS if few else min(2 * n, largest_default)
        settings = Settings(
            steps=steps,
            batch_size=min(n, 256),
            lr=1e-2 if few else 2e-3,
            betas=BETAS,
            schedule="cosine",
            evaluate_every=max(1, steps // MEASUREMENTS),
            patience=PATIENCE,
        )
        return cls(tuple(hidden) if hidden is not None else (32, 32) if few else (128, 128), settings)
