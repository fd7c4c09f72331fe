"""Which request goes to which supervisor, and who may use a device."""

import os
import socket
import sys
import threading
from dataclasses import replace
from typing import Any

import pytest

from tests import sample_reports as reports
from tilewright.cli import options
from tilewright.config import load
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.evaluator.devices.devices import CPU
from tilewright.evaluator.processes.prefork import PreforkPool, open_lock, turn
from tilewright.executors import factory
from tilewright.executors.local import LocalExecutor, Supervisor, share_cores
from tilewright.records import Limits
from tilewright.records.file_lock import try_lock
from tilewright.wire.frames import Channel


def test_no_supervisor_gets_the_turn_while_another_holds_the_lease():
    name = f"test-{threading.get_native_id()}"
    give_up, got = threading.Event(), list[bool]()

    def ask() -> None:
        with turn(name, give_up) as mine:
            got.append(mine)

    with open_lock(name) as lease:
        assert try_lock(lease)
        waiting = threading.Thread(target=ask)
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        give_up.set()
        waiting.join()
    assert got == [False]
    give_up.clear()
    ask()
    assert got == [False, True]
    with open_lock(name) as lease:
        assert try_lock(lease)


def test_preforked_children_open_a_device_only_while_its_lease_is_free():
    name = f"test-{threading.get_native_id()}"
    begun = threading.Event()

    class Waiting:
        begun = closed = False

        def wait_ready(self) -> None:
            pass

        def alive(self) -> bool:
            return True

        def begin(self) -> None:
            with open_lock(name) as lease:
                assert not try_lock(lease)
            self.begun = True
            begun.set()

    made: list[Any] = []

    def fork(*_: object) -> Any:
        made.append(Waiting())
        return made[-1]

    pool = PreforkPool(fork, name)
    with open_lock(name) as lease:
        assert try_lock(lease)
        pool.fill(Limits(), {"runner": 1})
        assert not begun.wait(0.1)
        pool.wait_opening()
        assert not made[0].begun
    pool.fill(Limits(), {"runner": 1}, opened=False)
    assert not begun.wait(0.1)
    pool.fill(Limits(), {"runner": 1})
    assert begun.wait(5)
    pool.wait_opening()
    assert pool.take("runner", Limits()) is made[0]
    assert len(made) == 1


def test_the_lease_holder_lets_all_preforked_children_open_together():
    steps: list[str] = []

    class Waiting:
        begun = closed = False

        def wait_ready(self) -> None:
            pass

        def alive(self) -> bool:
            return True

        def ask_to_begin(self) -> None:
            steps.append("requested")

        def begin(self) -> None:
            steps.append("opened")
            self.begun = True

    def fork(*_: object) -> Any:
        return Waiting()

    pool = PreforkPool(fork, None)
    pool.fill(Limits(), {"runner": 2}, opened=False)
    pool.open_now()
    assert steps == ["requested", "requested", "opened", "opened"]
    first = pool.take("runner", Limits())
    assert first is not None
    assert first.begun
    pool.fill(Limits(), {"runner": 2}, opened=False)
    pool.open_now()
    assert steps[4:] == ["requested", "opened"]


@pytest.mark.parametrize(
    ("cores", "devices", "wanted"),
    [
        (8, ("cuda:0", "cuda:1"), [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (9, ("cuda:0", "cuda:1"), [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (8, ("cuda:0",), [()]),
        (3, ("cuda:0", "cuda:1"), [(), ()]),
        (8, (), []),
    ],
)
def test_devices_share_the_cores_without_overlap(cores, devices, wanted, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert share_cores(devices) == wanted


def test_times_of_several_models_are_not_mixed(monkeypatch):
    monkeypatch.setattr(factory, "find_device", lambda name: replace(CPU, model=f"model of {name}"))
    settings = load(overrides=["eval.devices=[cuda:0, cuda:1]"], environ={})
    with pytest.raises(ConfigError, match="cuda:1 is model of cuda:1"):
        options.one_model(settings)
    monkeypatch.setattr(factory, "find_device", lambda _: replace(CPU, model="one"))
    assert options.one_model(settings) == "one"


def test_an_idle_device_is_preferred_to_one_that_knows_the_problem(tmp_path, monkeypatch):
    devices = []
    both = threading.Barrier(2, timeout=10)

    def judged(self, _kind, _fields, request, *_):
        devices.append(self.device)
        if len(devices) > 1:
            both.wait()
        return reports.correct().model_copy(update={"request": request}).to_json().encode()

    monkeypatch.setattr(Supervisor, "call", judged)
    with LocalExecutor(tmp_path, devices=("cuda:0", "cuda:1")) as local:
        local.evaluate(reports.request())
        threads = [threading.Thread(target=local.evaluate, args=(reports.request(),))
                   for _ in range(2)]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(15)
    assert set(devices[1:]) == {"cuda:0", "cuda:1"}


def test_an_executor_killed_while_a_supervisor_starts_judges_nothing(tmp_path):
    ours, theirs = socket.socketpair()
    supervisor = Channel(theirs)
    supervisor.send("up", {"pid": 1})
    supervisor.send("report", body=reports.correct().to_json().encode())

    def attach(_plan: object) -> Channel:
        made.kill()
        return Channel(ours)

    with (
        LocalExecutor(tmp_path, attach=attach) as made,
        pytest.raises(InfrastructureError, match="the executor was closed"),
    ):
        made.evaluate(reports.request())
    supervisor.close()


def test_a_supervisor_that_cannot_be_started_is_a_failure_of_tilewright(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with (
        LocalExecutor(tmp_path) as made,
        pytest.raises(InfrastructureError, match="no supervisor can be started"),
    ):
        made.evaluate(reports.request())
