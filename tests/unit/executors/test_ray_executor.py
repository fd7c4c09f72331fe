"""The search for devices of a cluster outlives errors of Ray."""

from __future__ import annotations

import time

from tilewright.executors import ray_api
from tilewright.executors.ray_executor import RayExecutor


def test_an_error_at_a_request_for_a_device_is_kept_and_the_search_goes_on(monkeypatch):
    asked = []

    def ask(*_):
        asked.append(time.monotonic())
        raise ValueError("Ray knows no such resource")

    monkeypatch.setattr(ray_api, "connect", lambda _: False)
    monkeypatch.setattr(ray_api, "ask", ask)
    executor = RayExecutor("auto")
    until = time.monotonic() + 10
    while len(asked) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    executor.close()
    assert len(asked) >= 2
    assert executor.placement_error == "Ray knows no such resource"
