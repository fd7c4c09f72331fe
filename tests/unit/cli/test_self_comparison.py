"""A/A noise and the calibration that follows from it; what doctor finds without judging."""

from __future__ import annotations

import math
import random

import pytest

from tests import sample_reports as reports
from tilewright.cli.doctor import noise_item
from tilewright.cli.self_comparison import (
    MIN_SIGMA,
    Sample,
    calibrated,
    samples_of,
    scatter_of,
    self_request,
)
from tilewright.cli.system_checks import LAYERS, layer_items, tool_items
from tilewright.config import Config
from tilewright.evaluator.timing.calibration import DEFAULT, GPU_DEFAULT
from tilewright.wire.names import ISOLATION_LAYERS


def sample(log_ratio: float, time_us: float = 5000.0, within: float = 0.0) -> Sample:
    return Sample("p", "c", time_us, 0, log_ratio, within)


def test_the_reference_is_its_own_candidate():
    request = self_request("softmax", Config(), ("large",))
    assert [case.name for case in request.problem.cases] == ["large"]
    assert request.candidate.entry == "reference"
    assert request.candidate.files == (request.problem.source,)
    assert request.problem.size_ranges == {}
    assert self_request("mlp", Config()).candidate.entry == "Model"


def test_samples_come_from_the_raw_blocks_only():
    (tiny, large) = samples_of(reports.correct())
    assert (tiny.case, large.case) == ("tiny", "large")
    assert large.log_ratio == pytest.approx(0.69, abs=0.1)
    assert 0 < large.within < 0.05
    assert samples_of(reports.incorrect()) == []


def test_calibration_recovers_a_known_sigma():
    normal = random.Random(7).gauss
    samples = [sample(normal(0, 0.03)) for _ in range(2000)]
    sigmas, counts = calibrated(samples)
    assert sigmas[2] == pytest.approx(0.03, rel=0.1)
    assert counts == (0, 0, 2000, 0)
    assert sigmas[:2] == DEFAULT.sigmas[:2]


def test_variation_within_a_process_is_removed_from_sigma():
    normal = random.Random(7).gauss
    samples = [sample(normal(0, 0.05), within=0.04) for _ in range(2000)]
    assert calibrated(samples)[0][2] == pytest.approx(0.03, rel=0.15)
    quiet = [sample(normal(0, 0.001), within=0.01) for _ in range(20)]
    assert calibrated(quiet)[0][2] == MIN_SIGMA


def test_calibration_uses_the_call_classes_of_the_evaluator():
    samples = [sample(0.01, time_us=limit) for limit in (100.0, 1000.0) for _ in range(6)]
    assert calibrated(samples)[1] == (6, 6, 0, 0)


def test_gpu_calibration_recovers_a_known_time_and_share():
    chance = random.Random(7)
    samples = []
    for _ in range(4000):
        for us in (chance.uniform(5, 20), chance.uniform(20.1, 1000)):
            noise = math.hypot(0.4 / us, 0.01 * min(1, 100 / us), 0.001, 0.0005)
            samples.append(sample(chance.gauss(0, noise), time_us=us, within=0.0005))
    (at_10_us, share), counts = calibrated(samples, on_gpu=True)
    assert at_10_us == pytest.approx(0.04, rel=0.1)
    assert share == pytest.approx(0.01, rel=0.1)
    assert counts == (4000, 4000)


def test_gpu_calibration_without_enough_samples_keeps_the_defaults():
    assert calibrated([], on_gpu=True) == (GPU_DEFAULT.sigmas, (0, 0))
    long = [sample(0.05, time_us=500.0)] * 6
    sigmas, counts = calibrated(long, on_gpu=True)
    assert (sigmas[0], counts) == (GPU_DEFAULT.sigmas[0], (0, 6))
    assert sigmas[1] > GPU_DEFAULT.sigmas[1]


def test_doctor_reports_measured_noise():
    assert scatter_of([]) is None
    assert not noise_item(None).ok
    quiet = scatter_of([sample(0.01), sample(-0.02), sample(0.0)])
    assert quiet is not None
    assert (quiet.runs, quiet.median, quiet.worst) == (3, 0.01, 0.02)
    assert noise_item(quiet).ok
    loud = scatter_of([sample(-0.2), sample(0.1)])
    item = noise_item(loud)
    assert not item.ok
    assert "22.1% at most" in item.detail
    assert item.get


def test_every_missing_item_names_its_use_and_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setenv("PATH", "")
    items = {item.name: item for item in tool_items(tmp_path / "home")}
    assert not items["g++"].ok
    assert items["space"].name == "space"
    for item in [*items.values(), *layer_items(reports.correct()), *layer_items(None)]:
        assert item.ok or (item.enables and item.get)


def test_every_isolation_layer_has_a_remedy():
    assert set(LAYERS) == set(ISOLATION_LAYERS)


def test_each_process_replicate_is_its_own_sample():
    report = reports.correct()
    item = report.comparisons[-1]
    whole = len(item.raw_us)
    split = item.model_copy(update={"blocks_per_process": (8, whole - 8)})
    found = samples_of(report.model_copy(update={"comparisons": (split,)}))
    assert [made.case for made in found] == [item.case] * 2
    alone = item.model_copy(update={"raw_us": item.raw_us[:8], "blocks_per_process": (8,)})
    (first,) = samples_of(report.model_copy(update={"comparisons": (alone,)}))
    assert first == found[0]
