"""Faults on a GPU: 200 evaluations with a fault at every fourth, and the same without."""

from __future__ import annotations

import json
import time
from pathlib import Path

from benchmarks.bars import Bar, executor
from benchmarks.gpu.requests import DEVICE, request, row
from benchmarks.gpu.smoke_cases import KERNEL, SOFTMAX, TORCH
from tilewright.errors import TilewrightError
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.devices.nvml import conditions
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalRequest

COUNT, EVERY = 200, 4
MIB = 1 << 20
LIMITS = ("eval.limits.call_timeout_s=2",)
PLAIN = {
    "library": ("torch", TORCH + "    return torch.softmax(x, -1)\n"),
    "own kernel": ("triton", KERNEL + "\n\ndef work(x):\n    return launch(x)\n"),
    "wrong": ("torch", TORCH + "    return torch.softmax(x, -1) * 1.01\n"),
}
FAULTS = {
    "illegal access": (
        "triton",
        KERNEL.replace("tl.store(y + row", "tl.store(y + 1000000000000 + row")
        + "\n\ndef work(x):\n    return launch(x)\n",
    ),
    "endless kernel": ("torch", TORCH + "    torch.cuda._sleep(1 << 44)\n    return x\n"),
    "raises": ("torch", TORCH + "    raise ValueError('no')\n"),
    "device assert": (
        "torch",
        TORCH + "    index = torch.full((4,), 1 << 20, device=x.device)\n    return x[index]\n",
    ),
    "out_of_memory": (
        "torch",
        TORCH + "    return torch.empty(1 << 42, dtype=torch.uint8, device=x.device)\n",
    ),
    "keeps memory": (
        "torch",
        "import torch\n\nkept = []\n\n\ndef work(x):\n"
        "    kept.append(torch.empty(1 << 30, dtype=torch.uint8, device=x.device))\n"
        "    raise RuntimeError('full')\n",
    ),
    "exits": ("torch", "import os\n" + TORCH + "    os._exit(0)\n"),
}


def _asked(name: str, number: int) -> tuple[str, EvalRequest]:
    language, text = {**PLAIN, **FAULTS}[name]
    asked = request(SOFTMAX, f"{text}# {number}\n", "softmax", language=language, more=LIMITS)
    return name, asked


def plan(*, faults: bool) -> list[tuple[str, EvalRequest]]:
    """Return the candidates in turn; without faults, a quarter fewer."""
    plain, bad, found = list(PLAIN), list(FAULTS), []
    for number in range(COUNT):
        if number % EVERY == EVERY - 1:
            if faults:
                found.append(_asked(bad[number // EVERY % len(bad)], number))
        else:
            found.append(_asked(plain[number % len(plain)], number))
    return found if faults else found[: COUNT // 5]


def run(out: Path) -> list[Bar]:
    """Judge both sequences, and compare what they say of the candidates without fault."""
    device = find_device(DEVICE)
    before = _used(device.uuid)
    with executor() as local:
        clean = [_judged(local, item) for item in plan(faults=False)]
        dirty = [_judged(local, item) for item in plan(faults=True)]
    time.sleep(2.0)
    after = _used(device.uuid)
    rows = {"clean": clean, "dirty": dirty, "used": [before, after]}
    (out / "gpu_faults.json").write_text(json.dumps(rows), encoding="utf-8")
    return [*_bars(clean, dirty), _back(before, after)]


def _judged(local: LocalExecutor, item: tuple[str, EvalRequest]) -> dict[str, object]:
    try:
        found = row(item[0], local.evaluate(item[1]))
    except TilewrightError as error:
        found = {"name": item[0], "verdict": type(error).__name__, "message": str(error)[-1500:]}
    print({key: found.get(key) for key in ("name", "verdict", "speedup", "message")}, flush=True)
    return found


def _used(uuid: str) -> int:
    found = conditions(uuid)
    return (found.used_bytes or 0) if found else 0


def _bars(clean: list[dict[str, object]], dirty: list[dict[str, object]]) -> list[Bar]:
    said = {name: {str(r["verdict"]) for r in clean if r["name"] == name} for name in PLAIN}
    plain = [found for found in dirty if found["name"] in PLAIN]
    other = [found for found in plain if {str(found["verdict"])} != said[str(found["name"])]]
    bad = [found for found in dirty if found["name"] in FAULTS]
    missed = [found for found in bad if found["verdict"] != "failed"]
    timed = [found for found in plain if found.get("speedup")]
    outside = [found for found in timed if not _agrees(found, clean)]
    share = 1 - len(outside) / max(len(timed), 1)
    return [
        Bar("faults: failed, each of them", "all", f"{len(bad) - len(missed)} of {len(bad)}",
            not missed, {"missed": missed}),
        Bar("faults: the others' verdicts", "as without", f"{len(other)} differ", not other),
        Bar("faults: the others' speed-ups", "within their intervals",
            f"{share:.0%} of {len(timed)}", not outside),
    ]  # fmt: skip


def _agrees(found: dict[str, object], clean: list[dict[str, object]]) -> bool:
    """Tell whether the middle speed-up without faults lies within an interval with them."""
    same = sorted(float(str(r["speedup"])) for r in clean if r["name"] == found["name"])
    middle = same[len(same) // 2]
    return float(str(found["low"])) <= middle <= float(str(found["high"]))


def _back(before: int, after: int) -> Bar:
    more = (after - before) / MIB
    return Bar("faults: device memory afterwards", "as before", f"{more:+.0f} MiB", abs(more) < 64)
