"""Integrations on a GPU: the times of `kernelbench-eval`, and GPU MODE's examples and cheats.

The times that it writes are compared with those of its own reports.

`KERNELBENCH` names the file of KernelBench's problems. `GPUMODE` and `KERNELBOT` name clones of
reference-kernels and of kernelbot, which are read where they lie.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar
from benchmarks.gpu.aa import chosen
from benchmarks.gpu.requests import DEVICE
from tilewright.errors import ProblemError
from tilewright.integrations.kernelbench_run import RESULTS, read_results
from tilewright.problems.sets.gpumode import problem_of, read_task
from tilewright.records import EvalReport
from tilewright.scoring.paired_times import geometric_mean_times

PAIRS, MAX_DEVIATION = 10, 0.03
WORKERS = 4
LONGEST_S = 120.0
"""Most seconds of one submission."""
GROUPS = ("pmpp", "pmpp_v2", "bioml", "amd/identity", "amd/moe", "amd/mla-decode")
"""Tasks whose examples may run on an NVIDIA GPU; others need AMD's float8, Blackwell or Helion."""
OWN = {"task", "utils", "torch", "triton"}
CHEATS = ("cheat-fd.py", "cheat-input.py", "cheat-rng.py")


@dataclass(frozen=True)
class Submission:
    """The answer of `tilewright integrations run popcorn` to one submission of GPU MODE."""

    name: str
    exit_code: int
    said: str
    seconds: float

    @property
    def passes(self) -> bool:
        """Whether the bot's text would call it a success."""
        return self.exit_code == 0


def _command(*words: str, limit_s: float) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "tilewright", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return 124, "", f"no end within {limit_s:g} s"
    return done.returncode, done.stdout, done.stderr


def _write_pairs(path: Path, place: Path) -> list[int]:
    """Write a copy of the reference for each chosen problem; return the levels."""
    levels = set()
    place.mkdir(parents=True, exist_ok=True)
    for row in chosen(path, PAIRS):
        level, number = int(str(row["level"])), row["problem_id"]
        text = f"{row['code']}\n\nclass ModelNew(Model):\n    pass\n"
        name = f"level_{level}_problem_{number}_sample_0_kernel.py"
        (place / f"level{level}").mkdir(exist_ok=True)
        (place / f"level{level}" / name).write_text(text, encoding="utf-8")
        levels.add(level)
    return sorted(levels)


def _deviations(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the time of each timed sample and that of its report, in milliseconds."""
    for problem, samples in read_results(folder / RESULTS).items():
        for sample in samples:
            report = EvalReport.from_json(Path(sample["metadata"]["report"]).read_bytes())
            if not report.comparisons:
                yield {"problem": f"{folder.name}-{problem}", "verdict": report.verdict}
                continue
            wanted = geometric_mean_times(report.comparisons).candidate_us / 1e3
            ratio = sample["runtime"] / wanted
            yield {
                "problem": f"{folder.name}-{problem}",
                "verdict": report.verdict,
                "runtime_ms": sample["runtime"],
                "report_ms": wanted,
                "ratio": ratio,
            }


def kernelbench(path: Path, stop: float, out: Path) -> Bar:
    """Judge copies of ten references as KernelBench's generations, and compare the times."""
    place, rows = out / "kernelbench", []
    for level in _write_pairs(path, place):
        folder = place / f"level{level}"
        words = ("--run-dir", str(folder), "--problems", str(path), "--device", DEVICE)
        left = max(stop - time.monotonic(), 10.0)
        given = ("--out", str(out / "runs"), "--no-host")
        code, _, said = _command(
            "integrations", "run", "kernelbench-eval", *words, *given, limit_s=left
        )
        if code:
            print(f"level {level}: exit code {code}: {said[-600:]}", flush=True)
        rows += list(_deviations(folder))
    for row in rows:
        print(row, flush=True)
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    far = [ratio for ratio in ratios if abs(ratio - 1) > MAX_DEVIATION]
    worst = max((abs(ratio - 1) for ratio in ratios), default=1.0)
    return Bar(
        "kernelbench-eval: runtime",
        f"within {MAX_DEVIATION:.0%} of the report's, {PAIRS} pairs",
        f"{len(ratios) - len(far)} of {len(ratios)} timed ones, the farthest {worst:.2%} away",
        len(ratios) == PAIRS and not far,
        {"rows": rows},
    )


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {item.name.partition(".")[0] for item in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def _examples(clone: Path) -> list[tuple[Path, Path, str]]:
    """Return the examples that need nothing but torch and triton, each with its task and mode.

    A task that cannot be read is refused by the import, which names it.
    """
    found = []
    for task in sorted(clone.glob("problems/**/task.yml")):
        name = task.parent.relative_to(clone / "problems").as_posix()
        if not any(name == group or name.startswith(f"{group}/") for group in GROUPS):
            continue
        try:
            problem_of(read_task(task.parent, clone), f"gpumode/{name}", "")
        except ProblemError as error:
            print(f"left out: {name}: {str(error)[:200]}", flush=True)
            continue
        files = [task.parent / "submission.py", *task.parent.glob("solutions/correct/*.py")]
        for path in files:
            if path.is_file() and _imports(path) <= OWN | sys.stdlib_module_names:
                found.append((path, task.parent, "test"))
    return found


def _judged(path: Path, task: Path, mode: str, out: Path, stop: float) -> Submission | None:
    """Judge one submission; `None`: no time is left."""
    name, begun = f"{task.parent.name}/{task.name}/{path.name}", time.monotonic()
    if begun > stop:
        return None
    words = ("--task", str(task), "--device", DEVICE, "--out", str(out / "runs"), "--no-host")
    code, text, said = _command(
        *("integrations", "run", "popcorn", str(path), "--mode", mode, *words),
        *("--set", "eval.timing.max_problem_s=3"),
        limit_s=LONGEST_S,
    )
    lines = [line for line in (text or said).splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith(">")), "")
    first = " ".join(lines[:1] if text else lines[-1:])
    done = Submission(name, code, f"{first} {reason}".strip(), time.monotonic() - begun)
    print(f"{name}: exit code {code}: {done.said[:300]} ({done.seconds:.0f} s)", flush=True)
    return done


def _all_judged(
    asked: Sequence[tuple[Path, Path, str]], out: Path, stop: float
) -> list[Submission | None]:
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(lambda one: _judged(one[0], one[1], one[2], out, stop), asked))


def gpumode(clone: Path, bot: Path, stop: float, out: Path) -> list[Bar]:
    """Judge the examples of reference-kernels, and the cheats and the example of kernelbot."""
    task = bot / "examples" / "identity_py"
    # The size by which cheat-rng guesses its inputs is one of the benchmarks.
    cheats = [(task / name, task, "leaderboard") for name in CHEATS]
    honest = (task / "submission.py", task, "leaderboard")
    judged = _all_judged([*cheats, honest, *_examples(clone)], out, stop)
    refused, examples = judged[: len(cheats)], judged[len(cheats) :]
    seen = [item for item in examples if item is not None]
    wrong = [item.name for item in seen if not item.passes]
    judged_cheats = [item for item in refused if item is not None and item.exit_code == 1]
    return [
        Bar(
            "GPU MODE: examples",
            "all correct where they need nothing else",
            f"{len(seen) - len(wrong)} of {len(examples)}; not: {', '.join(wrong) or 'none'}",
            len(seen) == len(examples) > 1 and not wrong,
            {"rows": [asdict(item) for item in seen]},
        ),
        Bar(
            "GPU MODE: cheats",
            f"none of {len(cheats)} passes",
            f"{len(judged_cheats)} judged and refused",
            len(judged_cheats) == len(cheats),
            {"rows": [asdict(item) for item in refused if item is not None]},
        ),
    ]


def run(path: Path, seconds: float, out: Path) -> list[Bar]:
    """Return the bars; the times of KernelBench get at most half of the seconds."""
    begun = time.monotonic()
    bars = [kernelbench(path, begun + seconds / 2, out)]
    places = [os.environ.get(name) for name in ("GPUMODE", "KERNELBOT")]
    if all(places):
        clone, bot = (Path(str(place)) for place in places)
        bars += gpumode(clone, bot, begun + seconds, out)
    else:
        bars.append(Bar("GPU MODE", "clones", "not shown: GPUMODE or KERNELBOT is unset", False))
    (out / "gpu_integrations.json").write_text(json.dumps([asdict(bar) for bar in bars], indent=1))
    return bars
