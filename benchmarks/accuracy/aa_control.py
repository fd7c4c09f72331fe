"""The control of `benchmarks.accuracy.aa`: a function compared with itself in one process.

Both implementations have their own memory, with the layout of a runner's memory. The program calls
them in ABBA blocks, and writes new inputs into that memory before each call. For each line that it
reads, the title of a problem, it prints the log ratio of twenty blocks.
"""

from __future__ import annotations

import math
import mmap
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy import aa
from tilewright.languages.base import Language
from tilewright.registry import load
from tilewright.runner.launch_counter import Launches
from tilewright.runner.loaders import c_abi, python
from tilewright.scoring import bootstrap

BLOCKS = 20
SLOTS = 3
COLS = 1024
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class Implementation:
    """A function with a master of its inputs, memory for them, and outputs. Lifetime: one A/A."""

    def __init__(self, function: Callable[..., Any], rows: int) -> None:
        self.function = function
        size = rows * COLS * 4
        self.master = mmap.mmap(-1, size)
        self.inputs = mmap.mmap(-1, SLOTS * size, flags=PRIVATE)
        self.inputs.madvise(mmap.MADV_HUGEPAGE)
        self.outputs = mmap.mmap(-1, size)
        self.size, self.rows = size, rows
        torch.frombuffer(self.master, dtype=torch.float32).normal_()

    def call(self, slot: int) -> float:
        """Return the seconds of one call on new inputs."""
        start = slot * self.size
        count = self.size // 4
        torch.frombuffer(self.master, dtype=torch.float32).neg_()
        memoryview(self.inputs)[start : start + self.size] = memoryview(self.master)
        flat = torch.frombuffer(self.inputs, dtype=torch.float32, count=count, offset=start)
        x = flat.view(self.rows, COLS)
        began = time.perf_counter()
        output = self.function(x)
        taken = time.perf_counter() - began
        output = output[0] if isinstance(output, tuple) else output
        kept = torch.frombuffer(self.outputs, dtype=torch.float32, count=output.numel())
        kept.view(output.shape).copy_(output)
        return taken


def function_of(title: str, folder: Path) -> Callable[..., Any]:
    """Return the function of the problem `title`, built in `folder`."""
    request = dict(aa.requests())[title]
    source = request.candidate.files[0]
    path = folder / f"{title.replace(' ', '_')}{Path(source.path).suffix}"
    path.write_text(source.text, encoding="utf-8")
    if request.candidate.language == "torch":
        function: Callable[..., Any] = python.import_file(str(path), "aa").work
        return function
    language: Language = load("languages", request.candidate.language)
    library = path.with_suffix(".so")
    header = Path(c_abi.__file__).parent
    command = language.plan(request.candidate).compiler()
    subprocess.run(
        [*command, f"-I{header}", str(path), "-o", str(library)], check=True, timeout=120
    )
    outputs = [{"dtype": "float32", "shape": [aa.ROWS[title], COLS]}]
    return c_abi.load(str(library), "work", outputs, Launches(suppress=False))


def implementations(
    function: Callable[..., Any], rows: int
) -> tuple[Implementation, Implementation]:
    """Return two implementations in new memory, all of which has been written."""
    made = Implementation(function, rows), Implementation(function, rows)
    for runner in made:
        for slot in range(SLOTS):
            runner.call(slot)
    return made


def log_ratio(first: Implementation, second: Implementation) -> float:
    """Return the median log ratio of `BLOCKS` ABBA blocks; either implementation may begin."""
    ratios = []
    for _ in range(BLOCKS):
        slots = [random.randrange(SLOTS) for _ in range(2)]
        a, b = (first, second) if random.random() < 0.5 else (second, first)
        taken = [a.call(slots[0]), b.call(slots[0]), b.call(slots[1]), a.call(slots[1])]
        logs = [math.log(value) for value in taken]
        ratio = 0.5 * (logs[0] + logs[3] - logs[1] - logs[2])
        ratios.append(ratio if a is first else -ratio)
    return bootstrap.median(ratios)


def main() -> None:
    """Answer each title until standard input ends."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    functions: dict[str, Callable[..., Any]] = {}
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        for line in sys.stdin:
            title = line.strip()
            if title not in functions:
                functions[title] = function_of(title, Path(name))
            replicate = implementations(functions[title], aa.ROWS[title])
            sys.stdout.write(f"{log_ratio(*replicate)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
