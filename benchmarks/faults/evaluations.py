"""Bar: each fault gets its verdict in time, leaves nothing, and harms no later evaluation."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.attacks.corpus import CORPUS
from benchmarks.attacks.corpus_files import CorpusFile, expectation_missed, read_corpus
from benchmarks.bars import Bar, executor, finish, quick_settings
from benchmarks.process_tree import descendants, is_forkserver, is_running
from tilewright.api import build_request
from tilewright.config import Config, load
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalReport, EvalRequest

CONTROL = "import torch\n\ndef add_relu(x, y):\n    return torch.relu(x + y)\n"
DEADLINE_S = 4.0
GRACE_S = 2.0
SETTLE_S = 0.4
"""After a report the supervisor forks the next runners; a moment later it is idle. In seconds."""


def settings(*, timed: bool) -> Config:
    """Return settings with short deadlines."""
    return load(
        overrides=[
            f"eval.limits.load_s={DEADLINE_S}",
            f"eval.limits.call_timeout_s={DEADLINE_S}",
            "eval.limits.exit_s=2",
            f"eval.limits.memory_bytes={2 << 30}",
            "eval.timing.max_s=0.3",
            "eval.timing.min_blocks=6",
            "eval.timing.max_blocks=8",
            f"eval.timing.enabled={str(timed).lower()}",
        ],
        environ={},
    )


def footprint(supervisor: int) -> dict[str, int]:
    """Count processes, file descriptors, shared memory and temporary files of a supervisor."""
    below = descendants(supervisor)
    return {
        "processes": len([pid for pid in below if not is_forkserver(pid)]),
        "file descriptors": len(os.listdir(f"/proc/{supervisor}/fd")),
        "shared memory": len([name for name in os.listdir("/dev/shm") if "tilewright" in name]),
        "temp files": len([name for name in os.listdir(tempfile.gettempdir()) if _ours(name)]),
    }


def left(supervisor: int, before: dict[str, int]) -> dict[str, int]:
    """Return the growth of each count of `footprint`, once the supervisor is idle.

    A process with gigabytes of memory ends slowly; it has `GRACE_S` for that.
    """
    start = time.monotonic()
    while True:
        time.sleep(SETTLE_S)
        after = footprint(supervisor)
        more = {kind: after[kind] - n for kind, n in before.items() if after[kind] > n}
        if not more or time.monotonic() - start > GRACE_S:
            return more


def _ours(name: str) -> bool:
    return name.startswith(("tilewright", "candidate", "problem-", "owned", "waste"))


def control(local: LocalExecutor) -> EvalReport:
    """Evaluate the honest control, with timing."""
    return local.evaluate(build_request(CONTROL, "add_relu", settings(timed=True)))


def run(only: str = "") -> list[Bar]:
    """Evaluate every fault, each followed by the control; then kill processes of tilewright."""
    missed: list[str] = []
    slowest = 0.0
    with executor() as local:
        control(local)
        time.sleep(GRACE_S)
        before = footprint(local.pid or 0)
        files = [f for f in read_corpus(CORPUS / "faults") if only in f.path.stem]
        for file in files:
            problems, seconds = _fault(local, file, before)
            slowest = max(slowest, seconds)
            print(
                f"{'ok  ' if not problems else 'MISS'} {file.path.name:40} {seconds:6.1f} s  "
                f"{'; '.join(problems)}",
                flush=True,
            )
            if problems:
                missed.append(file.path.name)
    seen = f"{len(files) - len(missed)} of {len(files)}, slowest {slowest:.1f} s"
    bars = [
        Bar(
            "faults: candidates",
            "right verdict, nothing left",
            seen,
            not missed,
            {"missed": missed},
        )
    ]
    return [*bars, *_kills()] if not only else bars


def _fault(
    local: LocalExecutor, file: CorpusFile, before: dict[str, int]
) -> tuple[list[str], float]:
    problems: list[str] = []
    request = build_request(
        file.path, file.problem(), settings(timed=False), language=file.keys.get("language")
    )
    start = time.monotonic()
    try:
        report = local.evaluate(request)
    except TilewrightError as error:
        return [f"{type(error).__name__}: {error}"], time.monotonic() - start
    seconds = time.monotonic() - start
    missed = expectation_missed(file, report)
    if missed:
        problems.append(f"{missed} | {str(report.outcome)[:200]}")
    waited = max(stage.wall_s for stage in report.stages[:-1] if stage.name != "device_wait")
    if waited > DEADLINE_S + GRACE_S and report.verdict != "correct":
        problems.append(f"a stage took {waited:.1f} s")
    problems += [f"{n} {kind} left" for kind, n in left(local.pid or 0, before).items()]
    again = control(local)
    if again.verdict != "correct":
        problems.append(f"the control after it was {again.verdict}")
    elif all((c.speedup_low or 0) > 1.1 or (c.speedup_high or 9) < 0.9 for c in again.comparisons):
        problems.append("the control's timing after it was wrong")
    return problems, seconds


def _kills() -> list[Bar]:
    """Kill the judge, the forkserver and the supervisor in the middle of an evaluation."""
    slow = CONTROL.replace("    return", "    import time; time.sleep(0.3)\n    return")
    request = build_request(slow, "add_relu", quick_settings())
    bars = []
    for victim in ("judge", "forkserver"):
        with executor() as local:
            control(local)
            report = _evaluate_and_kill(local, request, victim)
            held = report is not None and report.verdict == "correct"
            seen = report.verdict if report else "lost"
            bars.append(Bar(f"faults: kill of the {victim}", "judged again, correct", seen, held))
    with executor() as local:
        control(local)
        pid = local.pid or 0
        below = descendants(pid)
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 2.0
        alive = below
        while alive and time.monotonic() < deadline:
            alive = [p for p in below if is_running(p)]
            time.sleep(0.05)
        bars.append(
            Bar(
                "faults: kill of the supervisor",
                "no process left after 2 s",
                f"{len(alive)} of {len(below)}",
                not alive,
            )
        )
        with contextlib.suppress(TilewrightError):
            control(local)
        held = control(local).verdict == "correct"
        bars.append(Bar("faults: next start after that", "correct", str(held), held))
    for bar in bars:
        print(bar.row(), flush=True)
    return bars


def _evaluate_and_kill(
    local: LocalExecutor, request: EvalRequest, victim: str
) -> EvalReport | None:
    """Evaluate `request`, and kill `victim` after two seconds."""

    def kill_later() -> None:
        time.sleep(2.0)
        below = descendants(local.pid or 0)
        server = [pid for pid in below if is_forkserver(pid)]
        if victim == "forkserver":
            os.kill(server[0], signal.SIGKILL)
            return
        inits = sorted(set(_direct(server[0])))
        # The forkserver forked the judge's init first, for the control.
        os.kill(inits[0], signal.SIGKILL)

    thread = threading.Thread(target=kill_later)
    thread.start()
    try:
        return local.evaluate(request)
    except TilewrightError as error:
        print(f"    {type(error).__name__}: {str(error)[:200]}")
        return None
    finally:
        thread.join()


def _direct(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


if __name__ == "__main__":
    sys.exit(finish(run(sys.argv[1] if len(sys.argv) > 1 else "")))
