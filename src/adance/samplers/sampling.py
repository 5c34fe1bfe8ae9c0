"""How long a chain for sampling is."""

from adance.samplers.kernel import Kernel

MOST_RUNS = 20
"""A chain for sampling is at most so many times as long as one run of a chain in training."""


def sampling_steps(kernel: Kernel, training_runs: float | None = None) -> int:
    """How many steps a chain takes that is for sampling rather than training.

    Adjusted kernels converge to the model's law: they take twenty times as many as a run of a chain in training. Other
    chains are good samplers for as long as training has followed them: they take as many as training's own chains from
    noise, and twice the steps of one run where that is not known.

    Args:
        kernel: The kernel, of as many steps as one run in training.
        training_runs: How many runs most of training's chains had behind them since they began at noise, see
            :func:`~adance.samplers.starts.runs_since_noise`.
    """
    if kernel.exact:
        return MOST_RUNS * kernel.steps
    runs = 2.0 if training_runs is None else min(training_runs, MOST_RUNS)
    return round(runs * kernel.steps)
