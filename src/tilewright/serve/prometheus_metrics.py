"""Metrics of the server in the Prometheus text format, kept by `prometheus_client`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, Summary
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PREFIX = "tilewright"
BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Upper limits of the buckets of a histogram, in seconds."""
STAGES_ON_DEVICE = {
    *("start_judge", "load", "correctness", "launch_suppression"),
    *("profile", "trace", "timing", "shutdown", "cleanup"),
}
"""Stages of an evaluation in which it has its device for itself."""
# The time at which a metric began would be one more series for each metric.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(Collector):
    """Metrics of one server, and those that `live` computes when they are read. Thread-safe."""

    def __init__(self, live: Callable[[], Iterable[Metric]]) -> None:
        self._live = live
        self._registry = registry = CollectorRegistry()
        registry.register(self)
        counter = partial(Counter, namespace=PREFIX, registry=registry)
        histogram = partial(Histogram, namespace=PREFIX, buckets=BUCKETS_S, registry=registry)
        self.accepted = counter("accepted", "Accepted submissions, also of known work.")
        self.cache_hits = counter(
            "cache_hits", "Submissions of work that was already done or running.", ["how"]
        )
        self.requests = counter("requests", "Requests by method and status.", ["method", "status"])
        self.internal_errors = counter(
            "internal_errors", "Attempts that ended with an internal error."
        )
        self.expired_tasks = counter("expired_tasks", "Ended tasks that retention has deleted.")
        self.wait_seconds = histogram(
            "wait_seconds", "Seconds from acceptance to the beginning of an attempt."
        )
        self.answer_seconds = histogram(
            "answer_seconds", "Seconds until a request was answered, except streams."
        )
        summary = partial(Summary, namespace=PREFIX, registry=registry)
        self._stage_seconds = summary(
            "stage_seconds", "Seconds of evaluations by stage.", ["stage"]
        )
        self._device_busy_seconds = counter(
            "device_busy_seconds", "Seconds in which evaluations held a device.", ["device"]
        )

    def judged(self, stages: Iterable[tuple[str, float]], device: str) -> None:
        """Add the stages of one evaluation."""
        for name, seconds in stages:
            self._stage_seconds.labels(name).observe(seconds)
            if name in STAGES_ON_DEVICE:
                self._device_busy_seconds.labels(device).inc(seconds)

    def collect(self) -> Iterable[Metric]:
        return self._live()

    def text(self) -> bytes:
        """Return all metrics as text."""
        return prometheus_client.generate_latest(self._registry)


def family(
    name: str, meaning: str, values: Mapping[str, float] | float, label: str = ""
) -> GaugeMetricFamily | CounterMetricFamily:
    """Return a gauge, or a counter `*_total`, with its value, or one for each value of a label."""
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    if not isinstance(values, Mapping):
        return kind(f"{PREFIX}_{name}", meaning, value=float(values))
    found = kind(f"{PREFIX}_{name}", meaning, labels=[label])
    for value, count in values.items():
        found.add_metric([value], count)
    return found
