"""Bars of data: many turns go into a run and out of it as rows, in constant memory.

Each verb runs in a process of its own, on a tenth of the rows and on all of them. The bar compares
the peak memory. `python -m benchmarks.training.data_rows VERB FROM TO` is one such process.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar
from tilewright.loop.table_input import RowWriter, read_rows
from tilewright.rl.data.exports import FORMATS, Plan, export
from tilewright.rl.data.imports import import_rows

TURNS, IN_ROW = 100_000, 5
MAX_GROWTH_MIB = 96.0
"""Growth of the peak memory from a tenth of the rows to all of them, in MiB."""
MAX_S = {"import": 120.0, "sft": 120.0, "turns": 180.0}
"""For all turns, in seconds, on two cores that other processes use too."""
MAX_DUPLICATE_CHECK_MS = 20.0
"""For a turn, in milliseconds: its program is parsed, rewritten and sketched."""
REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * {number}) + torch.softmax(x, -1)


def get_inputs():
    return [torch.randn({size}, 1024)]


def get_init_inputs():
    return []
"""


def _program(draw: random.Random) -> str:
    """Return a kernel of about 60 lines that hardly resembles another."""
    lines = [
        f"    v{n} = tl.load(x{draw.randrange(9)} + {draw.randrange(10**6)}) * {draw.random():.6f}"
        for n in range(60)
    ]
    return "```python\nclass ModelNew:\n  def forward(self, x0):\n" + "\n".join(lines) + "\n```"


def _rows(count: int) -> Iterator[dict[str, Any]]:
    draw = random.Random(3)
    for number in range(count):
        messages = []
        for turn in range(IN_ROW):
            messages.append({"role": "user", "content": f"Feedback {turn}. " * 40})
            messages.append({"role": "assistant", "content": _program(draw)})
        yield {
            "messages": messages,
            "uuid": number,
            "entry_point": "Model",
            "original_python_code": REFERENCE.format(number=number, size=1 + number % 512),
            "num_rounds": IN_ROW,
        }


def _refuse(what: str) -> None:
    raise AssertionError(f"left out: {what}")


def _one(verb: str, source: Path, target: Path) -> None:
    """Be one of the measured processes."""
    start = time.monotonic()
    if verb == "import":
        target.mkdir()
        import_rows(read_rows(source, _refuse), target, source.name, "drkernel-coldstart", _refuse)
    elif verb == "near":
        export(Plan((str(source),), target, format="sft", dedupe="near"), _refuse)
    else:
        export(Plan((str(source),), target, format=verb), _refuse)  # type: ignore[arg-type]
    print(json.dumps({"seconds": time.monotonic() - start, "mib": _peak_mib()}))


def _peak_mib() -> float:
    """Return the most memory that this program held; `ru_maxrss` would count its parent's too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def _measured(verb: str, source: Path, target: Path) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.training.data_rows",
        verb,
        str(source),
        str(target),
    ]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def run(only: str = "") -> list[Bar]:
    """Return the bars; `only` chooses among import, sft, turns, near."""
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory() as name:
        place, seen = Path(name), dict[str, list[dict[str, float]]]()
        for share in (10, 1):
            given = place / f"rows{share}.parquet"
            with RowWriter(given, FORMATS["drkernel-coldstart"], _refuse) as writer:
                for row in _rows(TURNS // IN_ROW // share):
                    writer.write(row)
            run_folder = place / f"run{share}"
            for verb in (*MAX_S, "near"):
                if (only not in ("", verb) and verb != "import") or (verb == "near" and share == 1):
                    continue
                source = given if verb == "import" else run_folder
                target = run_folder if verb == "import" else place / f"{verb}{share}.jsonl"
                seen.setdefault(verb, []).append(_measured(verb, source, target))
                print(f"{verb}, {TURNS // share} turns: {seen[verb][-1]}", flush=True)
                if verb != "import":
                    target.unlink()
        for near in seen.pop("near", ()):
            each = near["seconds"] / (TURNS // 10) * 1e3
            text = f"{each:.1f} ms, {near['mib']:.0f} MiB"
            wanted = f"< {MAX_DUPLICATE_CHECK_MS:g} ms each"
            bars.append(
                Bar("data: near repetitions", wanted, text, each < MAX_DUPLICATE_CHECK_MS, near)
            )
        for verb, (small, whole) in seen.items():
            growth = whole["mib"] - small["mib"]
            text = f"{whole['seconds']:.0f} s, {whole['mib']:.0f} MiB, {growth:+.0f} MiB"
            held = whole["seconds"] < MAX_S[verb] and growth < MAX_GROWTH_MIB
            wanted = f"< {MAX_S[verb]:.0f} s, < {MAX_GROWTH_MIB:.0f} MiB more than for a tenth"
            bars.append(Bar(f"data: {verb}, {TURNS} turns", wanted, text, held, whole))
    return bars


if __name__ == "__main__":
    _one(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
