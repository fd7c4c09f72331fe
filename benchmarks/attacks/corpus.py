"""Bars: hacks get the verdict of their header, no honest file is rejected, and no verdict changed.

The last bar compares each file with `tests/golden/v1/corpus_verdicts.jsonl`, the verdicts of commit
a9ccb78 by the names of schema version 1. A file has a row for each verdict that was seen there. The
bar evaluates a file that differs up to `REPEATS` times more, since some verdicts rest on times.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.attacks.corpus_files import CorpusFile, expectation_missed, read_corpus
from benchmarks.bars import ROOT, Bar, executor, finish, quick_settings
from tilewright.api import build_request
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalReport, EvalRequest
from tilewright.records.version1 import VALUES

CORPUS = ROOT / "tests" / "corpus"
WANTED = {"hacks": "all with the verdict of their header", "honest": "none rejected"}
BUNDLED = ROOT / "src" / "tilewright" / "problems" / "bundled"
OLD_VERDICTS = ROOT / "tests" / "golden" / "v1" / "corpus_verdicts.jsonl"
RENAMED = {
    "decisive": VALUES["Finding"]["code"],
    "reason": VALUES["Failed"]["reason"] | VALUES["Unjudged"]["reason"],
    "stage": VALUES["Failed"]["stage"],
}
"""Field of a row of that table: values in version 1, and their names now."""
REPEATS = 3
"""Further evaluations of a file whose verdict differs; other work on the machine changes times."""
Row = dict[str, str | list[str]]


def run(only: str = "", part: int = 0, parts: int = 1) -> list[Bar]:
    """Evaluate the corpus, or every `parts`-th file from `part` on; print one line per file."""
    rows: list[tuple[Row, EvalRequest]] = []
    with executor() as local:
        bars = [_judged(local, kind, rows, only, part, parts) for kind in ("hacks", "honest")]
        missed = []
        for path in _bundled(only)[part::parts]:
            name = f"{path.parent.parent.name}/{path.name}"
            request = build_request(path, path.parent.parent.name, quick_settings())
            missed += [] if _judge(local, request, "bundled", name, rows) == "" else [name]
        changed = list(_changed(local, rows))
    seen = f"{len(missed)} not"
    bars.append(Bar("corpus: bundled candidates", "all correct", seen, not missed))
    seen = f"{len(rows) - len(changed)} of {len(rows)}"
    wanted = "the verdict of a9ccb78 for every file"
    return [*bars, Bar("corpus: verdicts", wanted, seen, not changed, {"changed": changed})]


def run_on(device: str, only: str = "") -> list[Bar]:
    """Evaluate the files of the corpus that need a GPU; print one line per file."""
    with executor() as local:
        return [
            _judged(local, kind, [], only, 0, 1, device) for kind in ("gpu_hacks", "gpu_honest")
        ]


def _bundled(only: str) -> list[Path]:
    found = sorted(BUNDLED.glob("*/candidates/*"))
    sources = [path for path in found if path.suffix in (".py", ".cpp")]
    return [path for path in sources if only in f"{path.parent.parent.name}_{path.stem}"]


def _judged(
    local: LocalExecutor,
    kind: str,
    rows: list[tuple[Row, EvalRequest]],
    only: str,
    part: int,
    parts: int,
    device: str = "cpu",
) -> Bar:
    files = [f for f in read_corpus(CORPUS / kind) if only in f.path.stem][part::parts]
    missed = []
    for file in files:
        settings, language = quick_settings(device), file.keys.get("language")
        request = build_request(file.path, file.problem(), settings, language=language)
        if _judge(local, request, kind, file.path.name, rows, file):
            missed.append(file.path.name)
    seen = f"{len(files) - len(missed)} of {len(files)}"
    wanted = WANTED[kind.removeprefix("gpu_")]
    return Bar(f"corpus: {kind}", wanted, seen, not missed, {"missed": missed})


def _judge(
    local: LocalExecutor,
    request: EvalRequest,
    kind: str,
    name: str,
    rows: list[tuple[Row, EvalRequest]],
    file: CorpusFile | None = None,
) -> str:
    """Evaluate a file, add its row, print its line and return how it deviates; empty: it agrees.

    A bundled candidate has no header, and must be correct.
    """
    start = time.monotonic()
    try:
        report = local.evaluate(request)
    except TilewrightError as error:
        verdict, missed = type(error).__name__, str(error)[:1800]
        rows.append(({"kind": kind, "file": name, "verdict": verdict}, request))
    else:
        verdict = report.verdict
        missed = expectation_missed(file, report) if file else ""
        if file is None and verdict != "correct":
            missed = str(report.outcome)[:500]
        if missed:
            message = getattr(report.outcome, "message", "")
            missed = f"{missed} | {message} {[f.summary for f in report.findings]}"[:600]
        rows.append((_row(report, kind, name), request))
    mark = "MISS" if missed else "ok  "
    seconds = time.monotonic() - start
    print(f"{mark} {name:43} {verdict:10} {seconds:5.1f} s  {missed}", flush=True)
    return missed


def _row(report: EvalReport, kind: str, name: str) -> Row:
    outcome = report.outcome.model_dump(mode="json")
    row: Row = {"kind": kind, "file": name, "verdict": report.verdict}
    row |= {key: outcome[key] for key in ("reason", "stage") if key in outcome}
    if "kind" in outcome:
        row["incorrect_kind"] = outcome["kind"]
    if decisive := sorted({f.code for f in report.findings if f.weight == "decisive"}):
        row["decisive"] = decisive
    return row


def _changed(local: LocalExecutor, rows: list[tuple[Row, EvalRequest]]) -> Iterator[str]:
    """Yield a line for each file that never gets a verdict that it got at a9ccb78."""
    old: dict[tuple[object, object], list[Row]] = {}
    for line in filter(None, OLD_VERDICTS.read_text(encoding="utf-8").splitlines()):
        row = _renamed(json.loads(line))
        old.setdefault((row["kind"], row["file"]), []).append(row)
    for first, request in rows:
        known, row = old.get((first["kind"], first["file"]), []), first
        for _ in range(REPEATS):
            if row in known:
                break
            print(f"differs: {known} -> {row}", flush=True)
            row = _row(local.evaluate(request), str(first["kind"]), str(first["file"]))
        if row not in known:
            yield f"{known} -> {row}"


def _renamed(row: Row) -> Row:
    made = dict(row)
    for key, names in RENAMED.items():
        value = row.get(key)
        if isinstance(value, str):
            made[key] = names.get(value, value)
        elif value is not None:
            made[key] = sorted(names.get(item, item) for item in value)
    return made


if __name__ == "__main__":
    which = sys.argv[1] if len(sys.argv) > 1 else ""
    sys.exit(finish(run(which, *[int(number) for number in sys.argv[2:4]])))
