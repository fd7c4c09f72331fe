"""Device memory of the judge and of each runner, beyond the tensors of a tiny problem.

The driver lists the memory of each process. The judge is the process that holds the flush buffer.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar
from benchmarks.gpu.requests import DEVICE, request
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.host import DeviceHost

PROBLEM = """import torch

CASES = [{"name": "main", "side": 256}]
ENTRY = "work"


def inputs(case, generator):
    return (torch.randn(case["side"], case["side"], generator=generator),)


def reference(x):
    return x @ x
"""
CANDIDATE = """import torch


def work(x):
    return torch.mm(x, x)
"""
QUERY = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]


def _held(uuid: str) -> list[int]:
    """Return the MiB that each process holds on a device."""
    done = subprocess.run([*QUERY, f"--id={uuid}"], capture_output=True, text=True, check=False)
    rows = [line.split(",") for line in done.stdout.splitlines()]
    return sorted(int(row[1]) for row in rows if len(row) == 2 and row[1].strip().isdecimal())


def run(out: Path) -> list[Bar]:
    """Judge one candidate, and look at the device at each stage and after the end."""
    device = find_device(DEVICE)
    seen: dict[str, list[int]] = {}

    def emit(event: str, fields: dict[str, Any]) -> None:
        name = fields.get("stage", fields.get("case"))
        if event in ("stage", "timing"):
            seen[f"{event} {name}"] = _held(device.uuid)

    host = DeviceHost(Path(tempfile.mkdtemp()), device)
    evaluate(host, request(PROBLEM, CANDIDATE, "memory"), emit, lambda: None)
    seen["kept warm"] = _held(device.uuid)
    host.close()
    seen["closed"] = _held(device.uuid)
    for moment, held in seen.items():
        print(f"{moment:20} {held} MiB", flush=True)
    (out / "gpu_memory.json").write_text(json.dumps(seen), encoding="utf-8")
    # Correctness is over there: judge and candidate have done all that they do.
    first = sum(seen["stage timing"])
    # Memory that the judge shares with a runner counts as the runner's.
    busiest = max(seen.values(), key=sum)
    more = (sum(busiest) - first) / (len(busiest) - 2)
    return [
        Bar("memory: judge and one runner", "<= 1792 MiB", f"{first} MiB", first <= 1792),
        Bar("memory: each further runner", "<= 768 MiB", f"{more:.0f} MiB", more <= 768),
        Bar("memory: left at the end", "none", f"{seen['closed']}", not seen["closed"]),
    ]
