"""The length of a chain for sampling."""

from adance.samplers.kernel import Kernel

MAX_RUNS = 20
"""A chain for sampling is at most this many times as long as one run of a chain in training."""


def sampling_steps(kernel: Kernel, training_runs: float | None = None) -> int:
    """Number of steps of a chain for sampling after training.

    Adjusted kernels converge to the model's distribution: they take twenty times as many steps as a run of a chain in
    training. Other chains are good samplers for as long as training has followed them: they take as many steps as
    training's own chains took on average since they started at noise, or twice the steps of one run if that is not
    known.

    Args:
        kernel: The kernel, whose number of steps is that of one run in training.
        training_runs: Mean number of runs that training's chains have taken since they started at noise, see
            :func:`~adance.samplers.persistent_chains.runs_since_noise`.
    """
    if kernel.exact:
        return MAX_RUNS * kernel.steps
    runs = 2.0 if training_runs is None else min(training_runs, MAX_RUNS)
    return round(runs * kernel.steps)
