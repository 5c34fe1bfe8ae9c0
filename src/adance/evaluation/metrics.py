"""Every metric of samples, in the order in which ``adance evaluate`` shows them."""

from adance.evaluation.feature_metrics import measure_frechet, measure_kid, measure_precision_recall
from adance.evaluation.inception import measure_inception_score
from adance.evaluation.sample_set import SampleMetric
from adance.evaluation.vector_metrics import measure_mmd, measure_modes, measure_stein, measure_wasserstein

BUILT_IN: tuple[SampleMetric, ...] = (
    measure_mmd,
    measure_wasserstein,
    measure_stein,
    measure_modes,
    measure_frechet,
    measure_kid,
    measure_precision_recall,
    measure_inception_score,
)
SAMPLE_METRICS: dict[str, SampleMetric] = {metric.__name__: metric for metric in BUILT_IN}


def register_metric(metric: SampleMetric) -> SampleMetric:
    """Add a metric, which ``evaluate_run`` then measures of every set of samples.

    It can decorate a function of a :class:`~adance.evaluation.sample_set.SampleSet` that returns measurements, and none
    of a set to which it does not apply. A metric of the same name is replaced.
    """
    SAMPLE_METRICS[metric.__name__] = metric
    return metric
