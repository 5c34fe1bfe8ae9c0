"""The quality of samples during training: measures it, and says when training stops because it no longer improves."""

from collections.abc import Callable

from adance.data.dataset import Dataset
from adance.distributed import any_over_ranks
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

    Its only state is ``metrics.jsonl``, so a resumed run stops at the same step as an uninterrupted one.

    Args:
        folder: The run folder.
        settings: ``evaluate_every``, ``evaluate_samples``, ``patience`` and ``seed`` are used.
        data: The data.
        make_metric: Makes the metric; needed if ``evaluate_every`` is positive.
        main: Whether this process is the one that measures.

    Raises:
        InputError: ``evaluate_every`` is positive, but there is no metric.
    """

    def __init__(
        self, folder: RunFolder, settings: Settings, data: Dataset, make_metric: MakeMetric | None, main: bool
    ) -> None:
        self.folder, self.settings, self.main = folder, settings, main
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

    def measure(self, make_run: Callable[[], Run]) -> dict[str, float]:
        """The distance of samples by its name in ``metrics.jsonl``; empty in processes that do not measure."""
        return {DISTANCE: self.metric(make_run())} if self.metric is not None and self.main else {}

    def has_stalled(self, step: int, say: Callable[[str], None]) -> bool:
        """Whether none of the last ``patience`` distances, the last one at ``step``, is below all earlier ones.

        Args:
            step: The number of steps done.
            say: Called with a message if so.
        """
        patience = self.settings.patience
        if not (patience and self.is_due(step)):
            return False
        found = list(self.folder.distances().values()) if self.main else []
        stalled = any_over_ranks(len(found) > patience and min(found[-patience:]) >= min(found[:-patience]))
        if stalled and self.main:
            say(f"stopped: no improvement in {patience} evaluations; the best is step {self.folder.best_step()}")
        return stalled
