"""The search for devices of a cluster, with a Ray that is not there."""

from __future__ import annotations

import platform
import time
from types import SimpleNamespace

from tilewright._version import __version__
from tilewright.config import load
from tilewright.executors import factory, ray_api, ray_executor
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


def test_the_model_of_a_cluster_comes_from_its_open_executor(monkeypatch):
    joined, free = [], {"device"}
    about = {"trouble": "", "tilewright": __version__, "python": platform.python_version()}
    about |= {"model": "one model", "device": "cpu", "host": "h", "address": "h:1"}

    def answer(*_):
        time.sleep(0.01)
        return about if free and free.pop() else None

    actor = SimpleNamespace(about=SimpleNamespace(remote=lambda *_: None))
    monkeypatch.setattr(ray_api, "connect", lambda address: joined.append(address) or False)
    monkeypatch.setattr(ray_api, "ask", lambda *_: actor)
    monkeypatch.setattr(ray_api, "answer", answer)
    monkeypatch.setattr(ray_api, "kill", lambda _: free.add("device"))
    monkeypatch.setattr(ray_executor, "DEVICE_WAIT_S", 5.0)
    settings = load(overrides=["executor=ray:one-device:1"], environ={})
    leased = dict[str, RayExecutor]()
    monkeypatch.setattr(factory, "_leased", leased)
    try:
        for count in (1, 2):
            assert factory.device_model(settings, "cpu") == "one model"
            with factory.open_executor(settings):
                assert factory.device_model(settings, "cpu") == "one model"
            assert joined == ["one-device:1"] * count
    finally:
        # Its thread would start a real Ray once the test is over.
        for executor in leased.values():
            executor.close()
