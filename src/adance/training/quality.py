"""The quality of samples along training: how it is measured, and when training stops because it no longer improves."""

from collections.abc import Callable

from adance.data.dataset import Dataset
from adance.errors import InputError
from adance.training.run import Run
from adance.training.run_folder import DISTANCE, RunFolder
from adance.training.settings import Settings

Metric = Callable[[Run], float]
"""The distance of a run's samples from data: lower is better. It must depend on the run only."""

MakeMetric = Callable[[Dataset, int, int], Metric]
"""Makes a metric from the data, the number of samples to draw, and a seed."""


class Quality:
    """Measures the distance of samples every ``evaluate_every`` steps.

    All that it knows is in ``metrics.jsonl``, so a resumed run stops at the same step as an uninterrupted one.

    Args:
        folder: The run folder.
        settings: ``evaluate_every``, ``evaluate_samples``, ``patience`` and ``seed`` are used.
        data: The data.
        make_metric: Makes the distance.

    Raises:
        InputError: ``evaluate_every`` is positive, but there is no metric.
    """

    def __init__(self, folder: RunFolder, settings: Settings, data: Dataset, make_metric: MakeMetric | None) -> None:
        self.folder, self.settings = folder, settings
        self.metric: Metric | None = None
        if settings.evaluate_every:
            if make_metric is None:
                raise InputError(
                    f"evaluate_every={settings.evaluate_every} needs a metric: "
                    "Trainer(..., metric=adance.evaluation.SampleDistance)"
                )
            self.metric = make_metric(data, settings.evaluate_samples, settings.seed)

    def is_due(self, step: int) -> bool:
        """Whether samples are measured after ``step``."""
        return self.settings.evaluate_every > 0 and step % self.settings.evaluate_every == 0

    def measure(self, run: Run) -> dict[str, float]:
        """The distance of the samples of ``run``, by its name."""
        return {} if self.metric is None else {DISTANCE: self.metric(run)}

    def has_stalled(self) -> bool:
        """Whether none of the last ``patience`` distances is below all earlier ones."""
        patience = self.settings.patience
        found = self.folder.distances() if patience else {}
        return len(found) > patience and min(list(found.values())[-patience:]) >= min(list(found.values())[:-patience])
