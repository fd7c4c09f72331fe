"""Which device gets a request, and how a cluster is addressed; without Ray."""

from __future__ import annotations

import sys
import time

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tilewright.cli.main import cli
from tilewright.config import load
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.executors.factory import is_cluster, open_executor
from tilewright.executors.ray_executor import RayExecutor, reject_reason
from tilewright.executors.ray_worker import describe_device
from tilewright.executors.remote import RemoteExecutor
from tilewright.executors.scheduling import WorkerLoad, choose_worker

WORKERS = st.builds(WorkerLoad, st.integers(0, 3), st.lists(st.sampled_from("pqrs"), unique=True))


def test_an_idle_device_precedes_a_cached_one_and_that_the_others():
    assert choose_worker("p", [WorkerLoad(1, ["p"]), WorkerLoad(0, [])]) == 1
    assert choose_worker("p", [WorkerLoad(0, []), WorkerLoad(0, ["p", "q"])]) == 1
    assert choose_worker("p", [WorkerLoad(0, ["q", "r"]), WorkerLoad(0, ["q"])]) == 1


@given(st.sampled_from("pqrs"), st.lists(WORKERS, min_size=1))
def test_the_chosen_device_is_least_loaded_and_cached_where_possible(problem, workers):
    chosen = workers[choose_worker(problem, workers)]
    idlest = [worker for worker in workers if worker.load == min(item.load for item in workers)]
    assert chosen in idlest
    assert (problem in chosen.cached) == any(problem in worker.cached for worker in idlest)


@pytest.mark.parametrize("name", ["ray", "ray:auto", "ray:host:6379", "ray://host:10001"])
def test_cluster_addresses_are_recognised(name):
    assert is_cluster(name)


def test_an_http_address_is_a_server_and_no_cluster():
    settings = load(overrides=["executor=http://host:1"], environ={})
    assert isinstance(open_executor(settings), RemoteExecutor)
    assert not is_cluster("http://ray:1")


@pytest.mark.parametrize("name", ["ray?gpu=H100", "ray:host:1?accelerator=a&b=c"])
def test_a_wrong_cluster_option_is_a_config_error(name):
    with pytest.raises(ConfigError, match="accelerator=NAME"):
        open_executor(load(overrides=[f"executor={name}"], environ={}))


def test_a_device_unknown_to_clusters_is_refused_before_any_start():
    with pytest.raises(ConfigError, match="known: cpu, cuda"):
        RayExecutor(None, device="tpu")


def test_a_ray_address_without_the_ray_executor_is_refused():
    answer = CliRunner().invoke(cli, ["serve", "--ray-address", "host:6379"])
    assert answer.exit_code == 2
    assert "--executor ray" in answer.output


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ray:127.0.0.1:1", "not reached within 5 s.*ray start --head"),
        ("ray://127.0.0.1:1", "^executor ray://127.*not reached within 5 s"),
        ("ray:nowhere.invalid:6379", "nowhere.invalid:6379: not reached within 5 s"),
        ("ray:host:99999", "99999: Port out of range"),
        ("ray:host", "host: no HOST:PORT"),
        ("ray:", "no address of a cluster"),
        ("ray:?accelerator=H100", "no address of a cluster"),
    ],
)
def test_an_address_without_a_running_cluster_is_refused_soon(address, said):
    start = time.monotonic()
    with pytest.raises(ConfigError, match=said):
        open_executor(load(overrides=[f"executor='{address}'"], environ={}))
    assert time.monotonic() - start < 20


def test_an_empty_address_starts_no_local_cluster(tmp_path):
    words = ["serve", "--port", "0", "--executor", "ray", "--ray-address", "", "--set"]
    answer = CliRunner().invoke(cli, [*words, f"home={tmp_path}"])
    assert answer.exit_code == 2
    assert "no address of a cluster" in answer.output


@pytest.mark.parametrize("name", ["remote", "local:1", "http://", "gpu-box:8477"])
def test_an_invalid_executor_lists_the_accepted_forms(name):
    with pytest.raises(ConfigError, match=r"http://x:TOKEN@host:port, or local, ray or ray:HOST"):
        open_executor(load(overrides=[f"executor='{name}'"], environ={}))


def test_an_invalid_port_is_refused_and_an_ipv6_address_is_kept():
    with pytest.raises(ConfigError, match="out of range"):
        RemoteExecutor("http://host:99999")
    with pytest.raises(InfrastructureError, match=r"^http://\[::1\]:9: not reached"):
        RemoteExecutor("http://x:TOKEN@[::1]:9", patience_s=0.0).device_model()


def test_a_leased_gpu_that_is_missing_is_named():
    assert "7" in describe_device(["7"])["trouble"]
    assert describe_device([])["device"] == "cpu"


def test_a_device_that_may_not_be_used_is_refused_with_the_reason():
    python = ".".join(map(str, sys.version_info[:3]))
    about = {"trouble": "", "tilewright": "1", "python": python, "model": "H200"}
    assert reject_reason(about, "1", None) == reject_reason(about, "1", "H200") == ""
    assert "tilewright 1 is there" in reject_reason(about, "2", None)
    assert "3.8.1" in reject_reason({**about, "python": "3.8.1"}, "1", None)
    assert "accelerator=" in reject_reason(about, "1", "H100")
    assert reject_reason({**about, "trouble": "no torch"}, "1", None) == "no torch"
