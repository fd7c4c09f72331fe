"""Bar: the test suite finds each bug that is planted in our own judge (mutation testing).

Each bug goes into a copy of src/ that takes precedence over the installed package. The tests that
must find the bug pass on the copy without bugs. One of them fails on the copy with the bug. The
failure is an assertion or a demanded exception, not a module that no longer loads.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.attacks.planted_bugs import (
    calls,
    gpu,
    judge,
    precision,
    problem_code,
    shared_device,
    supervisor,
    timed_calls,
    timing,
    weights,
)
from benchmarks.attacks.planted_bugs.bug import Bug
from benchmarks.bars import ROOT, Bar, finish

BUGS = (
    *judge.BUGS,
    *precision.PRECISION,
    *calls.BUGS,
    *timing.BUGS,
    *timed_calls.TIMED_CALLS,
    *shared_device.BUGS,
    *supervisor.BUGS,
    *gpu.BUGS,
    *weights.WEIGHTS,
    *problem_code.PROBLEM_CODE,
)
MAX_TEST_S = 60
"""Limit of one test in seconds, so that a bug that makes a test hang is found by its deadline."""
MAX_RUN_S = 300
"""Limit of all tests of one bug in seconds; a run that reaches it has found no bug."""
GUARD = """import tilewright

from pathlib import Path

assert Path(tilewright.__file__).is_relative_to({source!r}), tilewright.__file__
"""
"""A plug-in of pytest: it stops a run that would import another package than the copy."""
_FAILED = re.compile(r"^FAILED (\S+)", re.MULTILINE)
_BROKEN = re.compile(r"^E\s+(NameError|SyntaxError|IndentationError|UnboundLocalError)", re.M)


@dataclass(frozen=True)
class MutationResult:
    """The result of one bug: the first test that failed, or the reason that none did."""

    bug: Bug
    found: str
    problem: str
    seconds: float


def copy_of_source(folder: Path) -> Path:
    """Copy src/ into `folder`, compile it, and write the guard next to it."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(source / "tilewright", quiet=2, maxlevels=10)
    write_guard(folder)
    return folder


def write_guard(folder: Path) -> None:
    """Write the plug-in that stops tests which would import another package."""
    text = GUARD.format(source=str(folder / "src"))
    (folder / "source_guard.py").write_text(text, encoding="ascii")


def run_tests(folder: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests against the copy in `folder`; return pytest's exit code and its output."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "source_guard"]
    command += [
        "-p",
        "no:cacheprovider",
        "--no-showlocals",
        "--tb=short",
        f"--timeout={MAX_TEST_S}",
    ]
    # Parallel runs would clear the usual folder for temporary files at the same time.
    command += [f"--basetemp={folder / 'tmp'}"]
    path = os.pathsep.join([str(folder / "src"), str(folder)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MAX_RUN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no end within {MAX_RUN_S} s"
    return done.returncode, done.stdout + done.stderr


def stale(bug: Bug, source: Path) -> str:
    """Return why a bug cannot be planted any more; empty when it can."""
    path = source / "tilewright" / bug.file
    if not path.is_file():
        return f"STALE: {bug.file} is gone"
    count = path.read_text(encoding="utf-8").count(bug.old)
    if count != 1:
        return f"STALE: {bug.old!r} occurs {count} times in {bug.file}, not once"
    return ""


def plant(bug: Bug, clean: Path, folder: Path) -> Path:
    """Copy the clean copy into `folder` and replace the bug's text there."""
    shutil.copytree(clean / "src", folder / "src")
    write_guard(folder)
    path = folder / "src" / "tilewright" / bug.file
    path.write_text(path.read_text(encoding="utf-8").replace(bug.old, bug.new), encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
    return folder


def try_bug(bug: Bug, clean: Path) -> MutationResult:
    """Plant one bug, run its tests and print a line."""
    start = time.monotonic()
    found, problem = "", stale(bug, clean / "src")
    if not problem:
        with tempfile.TemporaryDirectory(prefix="tilewright-planted-bug-") as name:
            code, text = run_tests(plant(bug, clean, Path(name)), bug.tests)
        found, problem = verdict_of(code, text)
    seconds = time.monotonic() - start
    mark = "ok  " if found else "MISS"
    print(f"{mark} {bug.name:52} {seconds:5.1f} s  {found or problem}", flush=True)
    return MutationResult(bug, found, problem, seconds)


def verdict_of(code: int, text: str) -> tuple[str, str]:
    """Return the test that found the bug, or the reason that none did."""
    failed, broken = _FAILED.search(text), _BROKEN.search(text)
    if code == 1 and failed and not broken:
        return failed[1].rpartition("/")[2], ""
    if code == 0:
        return "", "not found: its tests pass"
    last = " ".join(text.strip().splitlines()[-3:])
    return "", f"no verdict: pytest ended with {code}: {last}"[:600]


def run(only: str = "", *, jobs: int = 0) -> list[Bar]:
    """Plant every bug whose name contains `only` and return the bars."""
    bugs = [bug for bug in BUGS if only in bug.name]
    tests = sorted({test.partition("::")[0] for bug in bugs for test in bug.tests})
    with tempfile.TemporaryDirectory(prefix="tilewright-planted-bug-") as name:
        clean = copy_of_source(Path(name))
        code, text = run_tests(clean, tests)
        if code:
            print(text[-3000:], flush=True)
        with ThreadPoolExecutor(jobs or min(len(os.sched_getaffinity(0)), 4)) as pool:
            seen = list(pool.map(lambda bug: try_bug(bug, clean), bugs))
    missed = [item.bug.name for item in seen if not item.found]
    return [
        Bar("planted bugs: none planted", "tests pass", "pass" if not code else "fail", not code),
        Bar(
            "planted bugs: found",
            f"all of {len(bugs)}",
            f"{len(bugs) - len(missed)} of {len(bugs)}",
            bool(bugs) and not missed and not code,
            {"missed": missed, "found": {item.bug.name: item.found for item in seen}},
        ),
    ]


if __name__ == "__main__":
    sys.exit(finish(run(sys.argv[1] if len(sys.argv) > 1 else "")))
