"""Bar: each hack gets the verdict of its header, and no check rejects an honest file."""

from __future__ import annotations

import sys
import time

from benchmarks.attacks.corpus_files import CorpusFile, expectation_missed, read_corpus
from benchmarks.bars import ROOT, Bar, executor, finish, quick_settings
from tilewright.api import build_request
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor

CORPUS = ROOT / "tests" / "corpus"
WANTED = {"hacks": "all with the verdict of their header", "honest": "none rejected"}
BUNDLED = ROOT / "src" / "tilewright" / "problems" / "bundled"


def judge_file(
    local: LocalExecutor, file: CorpusFile, device: str = "cpu"
) -> tuple[str, str, float]:
    """Evaluate one corpus file; return its verdict, its deviation from the header, and seconds."""
    start = time.monotonic()
    try:
        request = build_request(
            file.path, file.problem(), quick_settings(device), language=file.keys.get("language")
        )
        report = local.evaluate(request)
    except TilewrightError as error:
        return type(error).__name__, str(error)[:1800], time.monotonic() - start
    missed = expectation_missed(file, report)
    if missed:
        message = getattr(report.outcome, "message", "")
        missed = f"{missed} | {message} {[f.summary for f in report.findings]}"[:600]
    return report.verdict, missed, time.monotonic() - start


def run(only: str = "", part: int = 0, parts: int = 1) -> list[Bar]:
    """Evaluate the corpus, or every `parts`-th file from `part` on; print one line per file."""
    bars = []
    with executor() as local:
        for kind in ("hacks", "honest"):
            files = [f for f in read_corpus(CORPUS / kind) if only in f.path.stem][part::parts]
            missed = [file.path.name for file in files if not _report(local, file)]
            seen = f"{len(files) - len(missed)} of {len(files)}"
            bars.append(Bar(f"corpus: {kind}", WANTED[kind], seen, not missed, {"missed": missed}))
        missed = _bundled(local, only, part, parts)
        bars.append(
            Bar(
                "corpus: bundled candidates",
                "all correct",
                f"{len(missed)} not",
                not missed,
                {"missed": missed},
            )
        )
    return bars


def run_on(device: str, only: str = "") -> list[Bar]:
    """Evaluate the files of the corpus that need a GPU; print one line per file."""
    bars = []
    with executor() as local:
        for kind in ("gpu_hacks", "gpu_honest"):
            files = [f for f in read_corpus(CORPUS / kind) if only in f.path.stem]
            missed = [file.path.name for file in files if not _report(local, file, device)]
            wanted = WANTED[kind.removeprefix("gpu_")]
            seen = f"{len(files) - len(missed)} of {len(files)}"
            bars.append(Bar(f"corpus: {kind}", wanted, seen, not missed, {"missed": missed}))
    return bars


def _report(local: LocalExecutor, file: CorpusFile, device: str = "cpu") -> bool:
    verdict, missed, seconds = judge_file(local, file, device)
    mark = "ok  " if not missed else "MISS"
    print(
        f"{mark} {file.path.name:38} {file.keys.get('family', ''):4} {verdict:10} "
        f"{seconds:5.1f} s  {missed}",
        flush=True,
    )
    return not missed


def _bundled(local: LocalExecutor, only: str, part: int, parts: int) -> list[str]:
    missed = []
    for path in sorted(BUNDLED.glob("*/candidates/*"))[part::parts]:
        if (
            path.suffix not in (".py", ".cpp")
            or only not in f"{path.parent.parent.name}_{path.stem}"
        ):
            continue
        request = build_request(path, path.parent.parent.name, quick_settings())
        start = time.monotonic()
        report = local.evaluate(request)
        name = f"{path.parent.parent.name}/{path.name}"
        if report.verdict != "correct":
            missed.append(name)
        print(
            f"{'ok  ' if report.verdict == 'correct' else 'MISS'} {name:43} {report.verdict:10} "
            f"{time.monotonic() - start:5.1f} s "
            f"{'' if report.verdict == 'correct' else str(report.outcome)[:500]}",
            flush=True,
        )
    return missed


if __name__ == "__main__":
    which = sys.argv[1] if len(sys.argv) > 1 else ""
    sys.exit(finish(run(which, *[int(number) for number in sys.argv[2:4]])))
