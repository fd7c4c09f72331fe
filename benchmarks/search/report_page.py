"""Bars: time to make a report page, and its size.

One run has 250 problems with one candidate each, the other has 400 candidates each; both use two
protocols. Each evaluation has a report on disk. All of them are the report of one candidate, under
different names. The time is that of the command, including the start of the interpreter.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar
from tilewright.loop.run_state import begin
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, RunStarted, Turn, TurnFinished

PROBLEMS, PROTOCOLS = 250, ("strict", "official")
EACH = {"one per problem": 1, "400 per problem": 400}
MAX_S = 5.0
"""Most seconds of the command that makes one page."""
MAX_PAGE_MB = 8.0
"""Most megabytes of one page."""
REPEATS = 3
CANDIDATE = (
    "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, dim=-1)\n" + "# more\n" * 200
)
"""As long as a typical reply of a language model."""
LINKS = 10_000
"""Names of one file; file systems limit them to some ten thousands."""


def _judged(place: Path) -> str:
    """Evaluate a candidate and return its report as text."""
    environment = {**os.environ, "TILEWRIGHT_HOME": str(place / "home")}
    (place / "candidate.py").write_text(CANDIDATE, encoding="utf-8")
    command = [sys.executable, "-m", "tilewright", "eval", "candidate.py", "-p", "softmax"]
    command += ["--out", str(place / "judged"), "--json"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False)
    found = sorted((place / "judged").rglob("report.json"))
    if not found:
        raise RuntimeError(f"no report was written: {done.stderr.decode()[-2000:]}")
    return found[0].read_text(encoding="utf-8")


def _reports(folder: Path, text: str) -> Iterator[str]:
    """Yield paths of reports that exist."""
    (folder / "reports").mkdir()
    for number in itertools.count():
        path = folder / "reports" / f"{number}.json"
        if number % LINKS == 0:
            path.write_text(text, encoding="utf-8")
        else:
            os.link(folder / "reports" / f"{number - number % LINKS}.json", path)
        yield f"reports/{path.name}"


def _judgement(sample: random.Random, protocol: str, report: str) -> EvalSummary:
    verdict = sample.choices(
        ("correct", "incorrect", "failed", "rejected", "unjudged"), (50, 25, 20, 4, 1)
    )[0]
    fields: dict[str, Any] = {"protocol": protocol, "verdict": verdict, "seconds": sample.random()}
    if verdict == "correct":
        middle = math.exp(sample.gauss(0, 0.7))
        fields |= {"speedup": middle, "low": middle * 0.97, "high": middle * 1.03}
    else:
        fields |= {"reason": f"{sample.randrange(900)} of 4096 elements are wrong, by up to 0.3"}
    if verdict == "rejected":
        fields |= {"findings": ("input_mutation",)}
    return EvalSummary(**fields, report=report)


def _run(folder: Path, each: int, report: str) -> None:
    """Write a run folder with `each` candidates per problem."""
    folder.mkdir()
    started = RunStarted(
        kind="bench", name="someone", problems="kernelbench", protocols=PROTOCOLS,
        evaluator="0.1.0", device="NVIDIA H200",
    )  # fmt: skip
    begin(folder, started, [], {})
    sample, names = random.Random(each), _reports(folder, report)
    with EventLog(folder) as log:
        for number in range(PROBLEMS * each):
            place = number % PROBLEMS
            problem = f"kernelbench/level{1 + place // 100}-{1 + place % 100}"
            ask = Ask(id=f"{problem}#{number // PROBLEMS}", problem=problem)
            made = tuple(_judgement(sample, name, next(names)) for name in PROTOCOLS)
            log.append(TurnFinished(turn=Turn(ask=ask, judgements=made)))


def _measured(folder: Path, out: Path) -> tuple[float, float]:
    """Return the median seconds of `REPEATS` commands, and the size of the page in MB."""
    seconds = []
    for _ in range(REPEATS):
        start = time.monotonic()
        command = [sys.executable, "-m", "tilewright", "report", str(folder), "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.monotonic() - start)
    print(f"{folder.name}: {' '.join(f'{value:.1f}' for value in seconds)} s", flush=True)
    (page,) = out.glob("*.html")
    return sorted(seconds)[REPEATS // 2], page.stat().st_size / 1e6


def run(only: str = "") -> list[Bar]:
    """Return the bars whose name contains `only`."""
    bars = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        report = _judged(place)
        for title, each in EACH.items():
            if only not in title:
                continue
            _run(place / title, each, report)
            seconds, size = _measured(place / title, place / f"{title}, report")
            seen = f"{seconds:.1f} s, {size:.1f} MB"
            held = seconds < MAX_S and size <= MAX_PAGE_MB
            details = {"candidates": PROBLEMS * each, "report_bytes": len(report)}
            wanted = f"< {MAX_S:g} s, <= {MAX_PAGE_MB:g} MB"
            bars.append(Bar(f"report: {PROBLEMS} problems, {title}", wanted, seen, held, details))
    return bars


if __name__ == "__main__":
    for bar in run():
        print(json.dumps(bar.__dict__))
