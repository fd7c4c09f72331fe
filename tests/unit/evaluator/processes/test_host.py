"""The device host: core split, device lease, and what children may see."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.devices import CPU, Cores, Device, plan_cores
from tilewright.evaluator.devices.recorded_environment import device_key, environment
from tilewright.evaluator.processes import host as host_module
from tilewright.evaluator.processes import sandbox_policy as conf
from tilewright.evaluator.processes.forkserver_client import Forkserver
from tilewright.evaluator.processes.host import DeviceHost, forkserver_plan
from tilewright.evaluator.runners.sync_page import SyncPage, page_round, sealed_memory
from tilewright.records import Limits
from tilewright.wire import sync_page
from tilewright.wire.names import PRELOAD


@pytest.fixture
def host(tmp_path: Path) -> Iterator[DeviceHost]:
    """Yield a host whose forkserver is never started."""
    cores = os.sched_getaffinity(0)
    made = DeviceHost(tmp_path)
    yield made
    made.close()
    os.sched_setaffinity(0, cores)


def test_the_forkserver_learns_what_the_user_wants_imported(monkeypatch, host):
    assert PRELOAD not in forkserver_plan(CPU, host.cores).environment
    monkeypatch.setenv(PRELOAD, "torch._dynamo")
    assert forkserver_plan(CPU, host.cores).environment[PRELOAD] == "torch._dynamo"


def test_a_host_takes_the_forkserver_that_was_begun_for_its_device(tmp_path, host):
    plan = forkserver_plan(CPU, host.cores)
    fitting, other = Forkserver(plan.environment, plan.roles), Forkserver({}, plan.roles)
    other.begin()
    pid = other.pid
    available = [*host.cores.runners, *host.cores.judge]
    taken = DeviceHost(tmp_path, available=available, begun=fitting)
    own = DeviceHost(tmp_path, available=available, begun=other)

    assert taken.forkserver is fitting
    assert own.forkserver is not other
    assert not os.path.exists(f"/proc/{pid}")
    for made in (taken, own):
        made.close()


@pytest.mark.parametrize(
    ("available", "runners", "judge"),
    [
        ([0], (0,), (0,)),
        ([5, 3], (3,), (5,)),
        ([0, 1, 2], (0,), (1, 2)),
        ([3, 2, 1, 0], (0,), (1, 2, 3)),
        ([0, 1, 2, 3, 4], (0, 1), (2, 3, 4)),
        (list(range(8)), (0, 1, 2, 3), (4, 5, 6, 7)),
    ],
)
def test_small_machines_time_on_one_core_and_others_on_half(available, runners, judge):
    assert plan_cores(available) == Cores(runners, judge)


@pytest.mark.parametrize("count", range(1, 33))
def test_the_judge_has_separate_cores_where_there_are_at_least_two(count):
    cores = plan_cores(list(range(count)))

    assert cores.separate == (count > 1)
    assert cores.threads == len(cores.runners) >= 1
    assert set(cores.runners) | set(cores.judge) == set(range(count))


def test_only_a_single_stream_runner_gets_few_hardware_queues(host):
    host.device = Device("cuda:0", "a GPU", nodes=("/dev/nvidia0",))
    few = {"CUDA_DEVICE_MAX_CONNECTIONS": "2"}

    assert host.device_of("runner", streams=False).environment == few
    assert host.device_of("runner", streams=True) == host.device
    assert host.device_of("judge", streams=False) == host.device
    assert host.device_of("compiler", streams=False).nodes == ()
    host.device = CPU
    assert host.device_of("runner", streams=False) == CPU


def test_a_runner_of_several_streams_is_forked_with_all_hardware_queues(host, monkeypatch):
    host.device = Device("cuda:0", "a GPU")
    forked, waits = [], object()
    monkeypatch.setattr(host_module, "pool_library", lambda _: "/no")
    monkeypatch.setattr(host.preforked, "take", lambda *_: waits)
    monkeypatch.setattr(
        host.forkserver, "fork", lambda _, values, __: forked.append(values) or Forked()
    )

    assert host.spawn("runner", Limits()) is waits
    assert not forked
    host.spawn("runner", Limits(), streams=True)
    host.spawn("runner", Limits(), ("/opt",))
    queues = [values["environment"].get("CUDA_DEVICE_MAX_CONNECTIONS") for values in forked]
    assert queues == [None, "2"]


@dataclass(eq=False)
class Forked:
    """A child, as far as its uid concerns it."""

    closed: bool = False


def test_no_child_gets_the_uid_of_a_living_one(host, monkeypatch):
    uids: list[int] = []
    monkeypatch.setattr(host_module, "SLOTS_OF_UIDS", 4)
    monkeypatch.setattr(
        host.forkserver, "fork", lambda _, values, __: uids.append(values["uid"]) or Forked()
    )
    living = [host.spawn("judge", Limits()), host.spawn("runner", Limits())]
    for _ in range(9):
        host.spawn("runner", Limits()).closed = True
    assert not set(uids[:2]) & set(uids[2:])
    assert len(set(uids)) == 4
    living += [host.spawn("runner", Limits()) for _ in range(2)]
    with pytest.raises(InfrastructureError, match="no uid is free"):
        host.spawn("runner", Limits())
    living[0].closed = True
    host.spawn("runner", Limits())
    assert uids[-1] == uids[0]


def test_the_supervisor_leaves_the_timed_cores(host):
    assert os.sched_getaffinity(0) == set(host.cores.judge)
    assert host.forkserver.pid is None


def test_a_second_host_waits_for_the_lease_and_reports_it(host, tmp_path, monkeypatch):
    # Cores that no other tilewright of this machine has.
    second, own = DeviceHost(tmp_path), Cores((9000 + os.getpid(),), (0,))
    host.cores = second.cores = own
    monkeypatch.setattr(host_module, "LEASE_NOTICE_S", 0.05)
    said: list[str] = []
    order: list[str] = []

    def wait() -> None:
        with second.lease(said.append, lambda: None):
            order.append("second")

    with host.lease(said.append, lambda: None):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        order.append("first")
    thread.join(10)

    assert order == ["first", "second"]
    assert len(said) == 1
    assert f"in use by another evaluation (process {os.getpid()})" in said[0]


def test_leases_are_shared_among_those_that_time_nothing(host, tmp_path):
    second = DeviceHost(tmp_path)
    host.cores = second.cores = Cores((9000 + os.getpid(),), (0,))

    class Late(Exception):
        pass

    def give_up() -> None:
        raise Late

    with host.lease(print, lambda: None, shared=True):
        with second.lease(print, give_up, shared=True):
            assert host.leased
            assert second.leased
        with pytest.raises(Late):
            second.lease(print, give_up).__enter__()
    with host.lease(print, lambda: None), pytest.raises(Late):
        second.lease(print, give_up, shared=True).__enter__()
    assert not host.leased


def test_a_waiter_that_raises_leaves_the_lease_queue(host, tmp_path):
    class Gone(Exception):
        pass

    def leave() -> None:
        raise Gone

    second = DeviceHost(tmp_path)
    host.cores = second.cores = Cores((9000 + os.getpid(),), (0,))
    waiting = second.lease(lambda _: None, leave)
    with host.lease(print, lambda: None), pytest.raises(Gone):
        waiting.__enter__()
    with second.lease(print, leave):
        assert second.cores == host.cores


def test_a_lease_file_that_cannot_be_made_is_an_infrastructure_error(host, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: "x/y/z")
    lease = host.lease(print, lambda: None)

    with pytest.raises(InfrastructureError, match="cannot make the device lease"):
        lease.__enter__()


def test_the_environment_names_the_machine(host):
    made = environment(host.cores)

    assert made.host["timed_cores"] == list(host.cores.runners)
    assert made.device_name in device_key(host.cores)
    assert f"{host.cores.threads} timed" in device_key(host.cores)


def test_child_environments_hold_no_secret_of_the_parent(monkeypatch):
    monkeypatch.setenv("API_KEY", "secret")
    for given in (conf.forkserver_environment({"A": "1"}), conf.child_environment({"A": "1"})):
        assert given["A"] == "1"
        assert "secret" not in given.values()
        assert "API_KEY" not in given


def test_a_child_sees_libraries_and_allowed_folders(tmp_path):
    values = conf.confinement(
        3, Limits(), 123, cores=(1,), threads=2, device=CPU, extra_paths=(str(tmp_path), "/no")
    )

    assert str(tmp_path) in values["read_only"]
    assert "/no" not in values["read_only"]
    assert "/usr" in values["read_only"]
    assert not any(path.endswith("/src") for path in values["read_only"])
    assert values["environment"]["OMP_NUM_THREADS"] == "2"
    assert (values["memory_bytes"], values["core"]) == (123, [1])
    assert len({conf.confinement(slot, Limits(), 1, cores=(), threads=1, device=CPU)["uid"]
                for slot in range(5)}) == 5  # fmt: skip


def test_python_paths_cover_each_other_once():
    paths = conf.python_paths()

    assert all(os.path.isdir(path) for path in paths)
    assert not any(a != b and a.startswith(b + "/") for a in paths for b in paths)


def test_sealed_memory_can_be_neither_shrunk_nor_grown():
    fd = sealed_memory("x", 8192)
    for size in (4096, 16384):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    os.close(fd)


def test_sizes_are_rounded_up_to_whole_pages():
    assert [page_round(size) for size in (0, 1, 4096, 4097)] == [4096, 4096, 4096, 8192]


def test_a_sync_page_is_shared_and_released():
    before = len(os.listdir("/proc/self/fd"))
    page = SyncPage()
    page.flags[sync_page.GO] = 7
    assert os.pread(page.fd, 1, sync_page.GO * 8) == b"\x07"
    page.close()

    assert len(os.listdir("/proc/self/fd")) == before
