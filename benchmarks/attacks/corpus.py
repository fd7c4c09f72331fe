"""Bars: hacks get the verdict of their header, and no honest file and no bundled one is refused.

A file that misses its verdict is evaluated once more, and the second result counts. Some verdicts
rest on times, which other work on the machine changes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.attacks.corpus_files import CorpusFile, expectation_missed, read_corpus
from benchmarks.bars import ROOT, Bar, executor, finish, quick_settings
from tilewright.api import build_request
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalRequest

CORPUS = ROOT / "tests" / "corpus"
WANTED = {"hacks": "all with the verdict of their header", "honest": "none rejected"}
BUNDLED = ROOT / "src" / "tilewright" / "problems" / "bundled"


def run(only: str = "", part: int = 0, parts: int = 1) -> list[Bar]:
    """Evaluate the corpus, or every `parts`-th file from `part` on; print one line per file."""
    with executor() as local:
        bars = [_judged(local, kind, only, part, parts) for kind in ("hacks", "honest")]
        missed = []
        for path in _bundled(only)[part::parts]:
            name = f"{path.parent.parent.name}/{path.name}"
            request = build_request(path, path.parent.parent.name, quick_settings())
            missed += [] if _agrees(local, request, name) else [name]
    seen = f"{len(missed)} not"
    return [*bars, Bar("corpus: bundled candidates", "all correct", seen, not missed)]


def run_on(device: str, only: str = "") -> list[Bar]:
    """Evaluate the files of the corpus that need a GPU; print one line per file."""
    with executor() as local:
        return [_judged(local, kind, only, 0, 1, device) for kind in ("gpu_hacks", "gpu_honest")]


def _bundled(only: str) -> list[Path]:
    found = sorted(BUNDLED.glob("*/candidates/*"))
    sources = [path for path in found if path.suffix in (".py", ".cpp")]
    return [path for path in sources if only in f"{path.parent.parent.name}_{path.stem}"]


def _judged(
    local: LocalExecutor, kind: str, only: str, part: int, parts: int, device: str = "cpu"
) -> Bar:
    files = [f for f in read_corpus(CORPUS / kind) if only in f.path.stem][part::parts]
    missed = []
    for file in files:
        settings, language = quick_settings(device), file.keys.get("language")
        request = build_request(file.path, file.problem(), settings, language=language)
        if not _agrees(local, request, file.path.name, file):
            missed.append(file.path.name)
    seen = f"{len(files) - len(missed)} of {len(files)}"
    wanted = WANTED[kind.removeprefix("gpu_")]
    return Bar(f"corpus: {kind}", wanted, seen, not missed, {"missed": missed})


def _agrees(
    local: LocalExecutor, request: EvalRequest, name: str, file: CorpusFile | None = None
) -> bool:
    """Evaluate a file, and again if it misses its verdict; tell whether it has that verdict."""
    return not _missed(local, request, name, file) or not _missed(local, request, name, file)


def _missed(local: LocalExecutor, request: EvalRequest, name: str, file: CorpusFile | None) -> str:
    """Evaluate a file, print its line and return how it deviates; empty: it agrees.

    A bundled candidate has no header, and must be correct.
    """
    start = time.monotonic()
    try:
        report = local.evaluate(request)
    except TilewrightError as error:
        verdict, missed = type(error).__name__, str(error)[:1800]
    else:
        verdict = report.verdict
        missed = expectation_missed(file, report) if file else ""
        if file is None and verdict != "correct":
            missed = str(report.outcome)[:500]
        if missed:
            message = getattr(report.outcome, "message", "")
            missed = f"{missed} | {message} {[f.summary for f in report.findings]}"[:600]
    mark = "MISS" if missed else "ok  "
    seconds = time.monotonic() - start
    print(f"{mark} {name:43} {verdict:10} {seconds:5.1f} s  {missed}", flush=True)
    return missed


if __name__ == "__main__":
    which = sys.argv[1] if len(sys.argv) > 1 else ""
    sys.exit(finish(run(which, *[int(number) for number in sys.argv[2:4]])))
