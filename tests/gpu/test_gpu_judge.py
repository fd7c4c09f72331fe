"""The judge on a GPU: one candidate of each kind gets the verdict that it deserves."""

from __future__ import annotations

import pytest

from benchmarks.gpu_smoke import EXPECTED, cases, settings_of
from tilewright.api import build_request
from tilewright.executors.local import LocalExecutor

pytestmark = pytest.mark.gpu
CASES = {name: (problem, candidate) for name, problem, candidate in cases()}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with LocalExecutor(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_each_kind_gets_its_verdict(local, name):
    problem, candidate = CASES[name]
    report = local.evaluate(build_request(candidate, problem, settings_of(name)))
    assert report.verdict == EXPECTED.get(name, "correct"), report.outcome
    assert report.environment.device == "cuda:0"


def test_a_delay_on_the_device_is_seen_in_full(local):
    problem, candidate = CASES["delayed 20 us"]
    report = local.evaluate(build_request(candidate, problem, settings_of("delayed 20 us")))
    for item in report.comparisons:
        assert 15 < item.candidate.median_us - item.reference.median_us < 25


def test_coverage_is_between_nothing_and_all(local):
    problem, candidate = CASES["half its own"]
    report = local.evaluate(build_request(candidate, problem, settings_of("half its own")))
    assert report.profile is not None
    assert 0.2 < report.profile.coverage < 0.8
