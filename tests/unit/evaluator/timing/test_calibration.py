"""A calibration is read for its own device; other devices get wide defaults."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tilewright.evaluator.timing.calibration import (
    DEFAULT,
    GPU_DEFAULT,
    Calibration,
    read_calibration,
    write_calibration,
)

SIGMAS = (0.03, 0.02, 0.01, 0.04)


def test_a_calibration_is_read_for_its_own_device_only(tmp_path):
    home = tmp_path / "home"
    write_calibration(home, "this", SIGMAS)
    write_calibration(home, "that", (0.0,) * 4)

    assert read_calibration(home, "this") == Calibration(SIGMAS, measured=True)
    assert read_calibration(home, "that").sigmas == (0.0,) * 4
    assert read_calibration(home, "other") == DEFAULT
    assert not DEFAULT.measured


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b"3"]
    + [
        json.dumps({"this": value}).encode()
        for value in (
            None,
            1,
            "x",
            [],
            [0.1, 0.1],
            [0.1] * 5,
            [0.1, 0.1, 0.1, -0.1],
            [0.1, 0.1, 0.1, 1.0],
        )
    ]
    + [b'{"this": [0.1, 0.1, 0.1, NaN]}', b'{"this": [0.1, 0.1, 0.1, {}]}'],
)
def test_a_damaged_file_counts_as_no_calibration(tmp_path, content):
    (tmp_path / "calibration.json").write_bytes(content)

    assert read_calibration(tmp_path, "this") == DEFAULT


@pytest.mark.parametrize("content", [b"{", b"[1]", b"null", b"\xff"])
def test_a_damaged_file_is_written_anew(tmp_path, content):
    (tmp_path / "calibration.json").write_bytes(content)
    write_calibration(tmp_path, "this", SIGMAS)

    assert read_calibration(tmp_path, "this").sigmas == SIGMAS


@pytest.mark.parametrize(
    ("call_us", "moved", "sigma"),
    [
        (1.0, 0, 0.03),
        (100.0, 0, 0.03),
        (100.1, 0, 0.02),
        (1000.0, 0, 0.02),
        (5e6, 0, 0.01),
        (2e12, 1 << 30, 0.01),
        (10.0, 1 << 20, 0.03),
        (10.0, 4 << 20, 0.04),
        (1000.0, 8 << 20, 0.04),
        (1100.0, 8 << 20, 0.01),
    ],
)
def test_each_call_class_has_its_own_sigma(call_us, moved, sigma):
    given: Any = Calibration(SIGMAS, measured=True)

    assert given.sigma(call_us, moved) == sigma


def test_a_gpu_calibration_has_exactly_two_numbers(tmp_path):
    write_calibration(tmp_path, "this", (0.04, 0.02))
    write_calibration(tmp_path, "that", (0.06, 0.03, 0.015))
    assert read_calibration(tmp_path, "this", on_gpu=True).sigmas == (0.04, 0.02)
    assert read_calibration(tmp_path, "this") == DEFAULT
    assert read_calibration(tmp_path, "that", on_gpu=True) == GPU_DEFAULT
