"""The device sheet: few lines, which say what is known and nothing that changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.config import load
from tilewright.evaluator.devices.devices import Cores, Device, plan_cores
from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.devices.stored_ceilings import read_ceilings, write_ceilings
from tilewright.evaluator.timing.calibration import write_calibration
from tilewright.knowledge.device_sheet import caches_of, cpu_lines, device_sheet, gpu_lines
from tilewright.records import Ceilings

MODULE = "tilewright.knowledge.device_sheet"
MAX_LINES = 15
H100 = Device("cuda:0", "NVIDIA H100 80GB HBM3", uuid="GPU-1", driver="550.54", arch="sm_90")
CEILINGS = Ceilings(
    memory_bandwidth_bytes_per_s=3.0e12,
    flops_per_s={"fp16": 6.6e14, "tf32": 3.3e14, "fp32": 5.1e13},
)


def test_the_sheet_of_this_machine_names_its_processor_cores_and_noise(tmp_path):
    settings = load(None, [f"home={tmp_path}"])
    text = device_sheet(settings)
    lines = text.splitlines()
    assert len(lines) <= MAX_LINES
    assert text.isascii()
    assert lines[0].startswith("device: ")
    assert "assumed variation between two processes: 5.00% up to 0.1 ms" in text
    assert "versions: torch " in text
    assert device_sheet(settings) == text


def test_a_calibration_replaces_the_assumed_noise(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    write_calibration(tmp_path, device_key(plan_cores([0, 1])), (0.01, 0.02, 0.03, 0.04))
    text = device_sheet(load(None, [f"home={tmp_path}"]))
    assert "measured variation between two processes: 1.00% up to 0.1 ms, 2.00%" in text


def test_the_sheet_of_a_gpu_has_limits_ceilings_and_the_balance_of_both():
    lines = gpu_lines(H100, CEILINGS, 81559)
    assert lines == [
        "device: NVIDIA H100 80GB HBM3, 80 GiB of memory, sm_90, driver 550.54",
        "shared memory: 227 KiB a block, 228 KiB an SM",
        "threads: 2048 an SM in at most 32 blocks",
        "registers: 65536 registers an SM, at most 255 a thread; 1024 threads a block; warps of 32",
        "measured memory bandwidth: 3 TB/s",
        "measured rates of large matrix products: fp16 660 TFLOP/s, tf32 330 TFLOP/s, "
        "fp32 51 TFLOP/s",
        "limited by memory below this many FLOP per byte: fp16 220, tf32 110, fp32 17",
        "timed calls: the L2 cache holds no inputs; launches are not in the time",
    ]


def test_without_ceilings_or_a_known_architecture_the_sheet_says_less():
    lines = gpu_lines(Device("cuda:0", "New", arch="sm_999", driver="1"), None, None)
    assert lines[0] == "device: New, sm_999, driver 1"
    assert lines[1].startswith("measured ceilings: none yet")
    assert not [line for line in lines if line.startswith("shared memory")]


def test_the_sheet_of_a_gpu_reads_the_ceilings_of_its_own_model(tmp_path, monkeypatch):
    settings = load(None, [f"home={tmp_path}", "eval.device=cuda"])
    monkeypatch.setattr(f"{MODULE}.find_device", lambda _: H100)
    monkeypatch.setattr(f"{MODULE}.nvidia_smi", lambda *_: [["GPU-0", "1"], ["GPU-1", "81559"]])
    write_ceilings(tmp_path, "another model | driver 550.54", CEILINGS)
    assert "measured ceilings: none yet" in device_sheet(settings)
    key = device_key(plan_cores([0]), H100)
    write_ceilings(tmp_path, key, CEILINGS)
    assert read_ceilings(tmp_path, key) == CEILINGS
    text = device_sheet(settings)
    assert "measured memory bandwidth: 3 TB/s" in text
    assert "80 GiB of memory" in text
    assert len(text.splitlines()) <= MAX_LINES


def test_of_the_devices_of_a_server_only_the_model_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{MODULE}.device_model", lambda _, name: f"model of {name}")
    settings = load(None, [f"home={tmp_path}", "executor=http://127.0.0.1:1"])
    assert device_sheet(settings) == "device: model of cpu\n"


def test_data_caches_are_listed_and_a_machine_without_the_folder_has_none(tmp_path: Path):
    rows = [("1", "Data", "32K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K")]
    for number, (level, kind, size) in enumerate(rows):
        index = tmp_path / f"index{number}"
        index.mkdir()
        values = {"level": level, "type": kind, "size": size, "coherency_line_size": "64"}
        for name, value in values.items():
            (index / name).write_text(f"{value}\n")
    (tmp_path / "index3").mkdir()
    assert caches_of(tmp_path) == "L1 32 KiB (lines of 64 bytes), L2 1024 KiB (lines of 64 bytes)"
    assert caches_of(tmp_path / "missing") == ""


@pytest.mark.parametrize("cores", [Cores((0,), (1,)), Cores(tuple(range(8)), (8, 9))])
def test_the_sheet_of_a_cpu_says_how_many_cores_a_timed_call_has(cores, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    lines = cpu_lines(Device("cpu", "Some CPU"), cores)
    assert f"cores: a timed call has {cores.threads} of 16, for as many threads" in lines
    assert len(lines) <= MAX_LINES - 2
