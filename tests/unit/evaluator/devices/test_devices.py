"""Devices by name, and the conditions that the driver reports."""

from __future__ import annotations

import subprocess

import pytest

from tilewright.errors import ConfigError, InfrastructureError
from tilewright.evaluator.devices import devices
from tilewright.evaluator.devices.devices import CPU, few_queues, find_device
from tilewright.evaluator.devices.nvml import conditions

LISTING = "0, GPU-aa, NVIDIA H200, 580.1, 9.0\n1, GPU-bb, NVIDIA L4, 580.1, 8.9\n\nbroken line\n"


@pytest.fixture
def two_gpus(monkeypatch):
    done = subprocess.CompletedProcess([], 0, stdout=LISTING)
    monkeypatch.setattr(devices.shutil, "which", lambda name: f"/opt/bin/{name}")
    monkeypatch.setattr(devices.subprocess, "run", lambda *_, **__: done)
    devices.gpus.cache_clear()
    yield
    devices.gpus.cache_clear()


def test_the_cpu_is_always_a_device():
    assert find_device("cpu") is CPU
    assert not CPU.is_gpu
    assert CPU.model
    assert CPU.environment["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize("name", ["tpu", "cuda:x", "cuda:-1", "cuda:1:2", ""])
def test_an_unknown_device_name_is_a_config_error(name):
    with pytest.raises(ConfigError, match="is unknown; known: cpu, cuda"):
        find_device(name)


def test_a_missing_gpu_is_named_with_the_available_ones(two_gpus):  # noqa: ARG001 - what is listed
    with pytest.raises(InfrastructureError, match=r"cuda:2 is not here; .* cuda:1 \(NVIDIA L4\)"):
        find_device("cuda:2")


def test_without_an_nvidia_driver_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(devices.shutil, "which", lambda _: None)
    devices.gpus.cache_clear()
    with pytest.raises(InfrastructureError, match="no device: cuda is not here"):
        find_device("cuda")
    devices.gpus.cache_clear()


def test_a_gpu_is_identified_by_its_uuid_and_the_only_visible_one(two_gpus):  # noqa: ARG001 - what is listed
    found = find_device("cuda:1")
    assert (found.name, found.uuid, found.model, found.arch) == (
        *("cuda:1", "GPU-bb", "NVIDIA L4"),
        "sm_89",
    )
    assert found.is_gpu
    assert found.environment["CUDA_VISIBLE_DEVICES"] == "GPU-bb"
    assert find_device("cuda").uuid == "GPU-aa"


def test_the_number_of_hardware_queues_ignores_the_users_environment(
    two_gpus,  # noqa: ARG001 - what is listed
    monkeypatch,
):
    monkeypatch.setenv(devices.QUEUES, "32")
    found = find_device("cuda:0")
    assert devices.QUEUES not in found.environment
    assert few_queues(found).environment == {**found.environment, devices.QUEUES: "2"}


def test_an_unknown_gpu_has_no_conditions():
    assert conditions("GPU-of-nobody") is None
