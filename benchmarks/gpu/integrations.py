"""Integrations on a GPU: the times of `kernelbench-eval`, and GPU MODE's examples and cheats.

The times that it writes are compared with those of its own reports.

`KERNELBENCH` names the file of KernelBench's problems. `GPUMODE` and `KERNELBOT` name clones of
reference-kernels and of kernelbot, which are read where they lie. `DONE` names the
`gpu_integrations.json` of an earlier run at the same commit: what passed there is not run again.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
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
WORKERS = 6
PROBLEM_ERROR = 3
"""Exit code for a task that cannot be judged."""
LONGEST_S = 240.0
"""Most seconds of one submission: `amd/moe` takes 120 to 150 s on a busy host."""
GROUPS = ("pmpp", "pmpp_v2", "bioml", "amd/identity", "amd/moe", "amd/mla-decode")
"""Tasks whose examples may run on an NVIDIA GPU; others need AMD's float8, Blackwell or Helion."""
OWN = {"task", "utils", "torch", "triton"}
CHEATS = ("cheat-fd.py", "cheat-input.py", "cheat-rng.py")
OWN_CHECK = """
import sys, torch, reference, submission
def copied(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    return type(value)(map(copied, value)) if isinstance(value, list | tuple) else value
for size in eval(sys.argv[1]):
    data = reference.generate_input(**size)
    output = submission.custom_kernel(copied(data))
    good = reference.check_implementation(data, output)
    good, text = good if isinstance(good, tuple) else (not good, good)
    if not good:
        sys.exit(f"its own check refuses it: {text}"[:300])
"""
"""The test of a task's harness: the submission gets a copy of the data."""


@dataclass(frozen=True)
class Submission:
    """The answer of `tilewright integrations run popcorn` to one submission of GPU MODE."""

    name: str
    exit_code: int
    said: str
    seconds: float

    protocol: str = "strict"
    own_check: str = ""
    """Why the task's own check refuses it; empty: it accepts it, or was not asked."""

    @property
    def passes(self) -> bool:
        """Whether the bot's text would call it a success."""
        return self.exit_code == 0

    @property
    def read(self) -> bool:
        """Whether the task could be judged; another answer names what it lacks."""
        return self.exit_code != PROBLEM_ERROR


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


def _name(path: Path, task: Path) -> str:
    """Return the name of a submission in this bar."""
    return f"{task.parent.name}/{task.name}/{path.name}"


def _judged(
    path: Path, task: Path, mode: str, out: Path, stop: float, protocol: str = "strict"
) -> Submission | None:
    """Judge one submission; `None`: no time is left."""
    name, begun = _name(path, task), time.monotonic()
    if begun > stop:
        return None
    words = ("--task", str(task), "--device", DEVICE, "--out", str(out / "runs"), "--no-host")
    code, text, said = _command(
        *("integrations", "run", "popcorn", str(path), "--mode", mode, *words),
        *("--set", "eval.timing.max_problem_s=3", "--protocol", protocol),
        limit_s=LONGEST_S,
    )
    lines = [line for line in (text or said).splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith(">")), "")
    first = " ".join(lines[:1] if text else lines[-1:])
    seconds = time.monotonic() - begun
    done = Submission(name, code, f"{first} {reason}".strip(), seconds, protocol)
    print(f"{name}, {protocol}: exit code {code}: {done.said[:300]} ({seconds:.0f} s)", flush=True)
    return done


def _again(path: Path, task: Path, root: Path, out: Path, stop: float) -> Submission | None:
    """Judge an example that `strict` refuses by the task's rules, and by its own check at last."""
    done = _judged(path, task, "test", out, stop, "official")
    if done is None or done.passes or not done.read:
        return done
    own = read_task(task, root)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**own.files, "submission": path.read_text(encoding="utf-8")}.items():
            (Path(folder) / f"{name}.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-c", OWN_CHECK, repr(list(own.sizes["tests"]))]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S)
    said = (ran.stderr.strip().splitlines() or [""])[-1] if ran.returncode else ""
    print(f"{done.name}: {said or 'its own check accepts it'}", flush=True)
    return replace(done, own_check=said)


def _earlier() -> dict[str, Any]:
    """Return the bars of the run that `DONE` names, by name."""
    path = os.environ.get("DONE", "")
    rows = json.loads(Path(path).read_text(encoding="utf-8")) if path else []
    return {row["name"]: row for row in rows}


def _passed(bars: dict[str, Any]) -> dict[str, Submission]:
    """Return the examples that an earlier run found correct by strict rules, by name."""
    rows = bars.get("GPU MODE: examples", {"details": {"rows": []}})["details"]["rows"]
    items = [Submission(**row) for row in rows]
    return {item.name: item for item in items if item.passes and item.protocol == "strict"}


def _all_judged(
    asked: Sequence[tuple[Path, Path, str]], clone: Path, out: Path, stop: float
) -> list[tuple[Submission | None, Submission | None]]:
    """Judge each by strict rules, and an example that they refuse by those of its task."""
    known = _passed(_earlier())

    def both(one: tuple[Path, Path, str]) -> tuple[Submission | None, Submission | None]:
        path, task, mode = one
        first = known.get(_name(path, task)) or _judged(path, task, mode, out, stop)
        if first is None or first.passes or not first.read or path.name in CHEATS:
            return first, None
        return first, _again(path, task, clone, out, stop)

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(both, asked))


def gpumode(clone: Path, bot: Path, stop: float, out: Path) -> list[Bar]:
    """Judge the examples of reference-kernels, and the cheats and the example of kernelbot."""
    task = bot / "examples" / "identity_py"
    # The size by which cheat-rng guesses its inputs is one of the benchmarks.
    cheats = [(task / name, task, "leaderboard") for name in CHEATS]
    honest = (task / "submission.py", task, "leaderboard")
    judged = _all_judged([*cheats, honest, *_examples(clone)], clone, out, stop)
    refused = [item for item, _ in judged[: len(cheats)]]
    examples = [item for item, _ in judged[len(cheats) :]]
    seen = [item for item in examples if item is not None and item.read]
    again = {
        item.name: second
        for item, second in judged[len(cheats) :]
        if item is not None and item.read and not item.passes
    }
    unread = {item.name for item in (*examples, *again.values()) if item and not item.read}
    explained = [
        item
        for name, item in again.items()
        if name not in unread and item and (item.passes or item.own_check)
    ]
    judged_cheats = [item for item in refused if item is not None and item.exit_code == 1]
    return [
        Bar(
            "GPU MODE: examples",
            "all correct where they need nothing else and their own check accepts them",
            f"{len(seen) - len(again)} of {len(examples)} by strict rules; "
            f"{', '.join(map(_difference, explained)) or 'no other'}; "
            f"not judged: {', '.join(unread) or 'none'}",
            len(judged) > len(cheats) + 1
            and None not in examples
            and again.keys() <= unread | {item.name for item in explained},
            {"rows": [asdict(item) for item in (*seen, *filter(None, again.values()))]},
        ),
        Bar(
            "GPU MODE: cheats",
            f"none of {len(cheats)} passes",
            f"{len(judged_cheats)} judged and refused",
            len(judged_cheats) == len(cheats),
            {"rows": [asdict(item) for item in refused if item is not None]},
        ),
    ]


def _difference(item: Submission) -> str:
    """Return why `strict` refuses an example, as far as other rules tell."""
    return f"{item.name}: {item.own_check or 'correct with the tolerances of the task'}"


def run(path: Path, seconds: float, out: Path) -> list[Bar]:
    """Return the bars; the times of KernelBench get at most half of the seconds."""
    begun = time.monotonic()
    earlier = _earlier().get("kernelbench-eval: runtime")
    if earlier and earlier["held"]:
        bars = [Bar(**earlier)]
    else:
        bars = [kernelbench(path, begun + seconds / 2, out)]
    places = [os.environ.get(name) for name in ("GPUMODE", "KERNELBOT")]
    if all(places):
        clone, bot = (Path(str(place)) for place in places)
        bars += gpumode(clone, bot, begun + seconds, out)
    else:
        bars.append(Bar("GPU MODE", "clones", "not shown: GPUMODE or KERNELBOT is unset", False))
    (out / "gpu_integrations.json").write_text(json.dumps([asdict(bar) for bar in bars], indent=1))
    return bars
