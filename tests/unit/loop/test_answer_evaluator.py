"""The condition of a trial: equal where speed-ups may be pooled, and different elsewhere."""

from __future__ import annotations

from tests import sample_reports as reports
from tilewright.loop.answer_evaluator import condition_of


def test_another_device_version_or_protocol_is_another_condition():
    report = reports.correct()
    same = condition_of(reports.correct())
    other_device = report.environment.model_copy(update={"device_name": "another"})
    changed = [
        report.model_copy(update={"environment": other_device}),
        report.model_copy(update={"evaluator": "0.0.0"}),
        report.model_copy(
            update={"request": report.request.model_copy(update={"protocol": "official"})}
        ),
        report.model_copy(update={"request": report.request.model_copy(update={"baselines": ()})}),
    ]
    assert condition_of(report) == same
    assert len({condition_of(item) for item in changed} | {same}) == 5
