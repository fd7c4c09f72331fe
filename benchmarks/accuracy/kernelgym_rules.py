"""Verdicts that differ between KernelGYM's rules and tilewright's: one table, over the corpus.

`python -m benchmarks.accuracy.kernelgym_rules` judges one hack of each family on this machine. It
also judges the honest counterpart of each hack whose verdict changes. `--all` takes every file, and
`--out PAGE` also writes the table as a page.

Both results of a row come from this machine and from the same sandbox. An attack that needs the
judge's own process therefore has no changed verdict here, although it did deceive the original.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.attacks.corpus_files import CorpusFile, read_corpus
from benchmarks.bars import ROOT, executor, quick_settings
from tilewright import __version__
from tilewright.api import build_request
from tilewright.config import Config
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalReport
from tilewright.scoring.benchmarks.kernelgym import KernelGym, by_kernelgym

CORPUS = ROOT / "tests" / "corpus"


@dataclass(frozen=True)
class Row:
    """One file with its verdicts under both sets of rules."""

    kind: str
    name: str
    family: str
    strict: str
    title: str
    kernelgym: str
    changes: bool


def sample(files: Sequence[CorpusFile]) -> list[CorpusFile]:
    """Return the first file of each family."""
    found: dict[str, CorpusFile] = {}
    for file in files:
        found.setdefault(file.keys.get("family", file.path.stem), file)
    return list(found.values())


def judge(local: LocalExecutor, file: CorpusFile) -> Row:
    """Evaluate one file under both sets of rules."""
    strict = _report(local, file, quick_settings())
    settings = quick_settings()
    section = settings.eval.model_copy(update={"protocol": "official"})
    theirs = by_kernelgym(_report(local, file, settings.model_copy(update={"eval": section})))
    accepted = theirs.correctness and not theirs.unused_kernel
    return Row(
        kind=file.path.parent.name,
        name=file.path.name,
        family=file.keys.get("family", ""),
        strict=strict.verdict,
        title=file.title,
        kernelgym=_verdict_text(theirs),
        changes=(strict.verdict == "correct") != accepted and theirs.code != "UNJUDGED",
    )


def _report(local: LocalExecutor, file: CorpusFile, settings: Config) -> EvalReport:
    language = file.keys.get("language")
    return local.evaluate(build_request(file.path, file.problem(), settings, language=language))


def _verdict_text(found: KernelGym) -> str:
    if found.unused_kernel:
        return "unused_kernel"
    if found.correctness:
        speed = "" if found.speedup is None else f", {found.speedup:.2f}x"
        return f"correct{speed}"
    return found.code or "incorrect"


def page(rows: Sequence[Row], *, whole: bool) -> str:
    """Return the table as Markdown, with date, version and machine."""
    changed = [row for row in rows if row.changes]
    today = datetime.datetime.now(datetime.UTC).date()
    text = "# Verdicts that change under KernelGYM's rules\n\n"
    text += f"Measured {today} by `python -m benchmarks.accuracy.kernelgym_rules"
    text += f"{' --all' if whole else ''}` "
    text += f"(tilewright {__version__}, {platform.machine()}, CPU, a machine with other work).\n"
    text += f"{'Every file' if whole else 'One hack of each family'} of the corpus that runs "
    text += "without a GPU"
    text += "" if whole else ", and the honest counterpart of each hack that changes,"
    text += " was judged twice: `strict`, and by KernelGYM's rules as a projection of an "
    text += "`official` report.\n"
    text += (
        "The sandbox was active both times, so an attack from inside the original's own process "
    )
    text += "changes no verdict here.\n"
    text += "Speed-ups come from a busy machine and show only that one is reported.\n\n"
    text += "| folder | judged | verdict changes |\n| --- | --- | --- |\n"
    counts = Counter(row.kind for row in rows)
    for kind, count in counts.items():
        text += f"| {kind} | {count} | {sum(row.kind == kind for row in changed)} |\n"
    text += "\n| file | family | what it does | strict | by KernelGYM's rules |\n"
    text += "| --- | --- | --- | --- | --- |\n"
    for row in changed:
        text += f"| `{row.kind}/{row.name}` | {row.family} | {row.title} | {row.strict} | "
        text += f"{row.kernelgym} |\n"
    return text


def _judged(local: LocalExecutor, files: Sequence[CorpusFile], rows: list[Row]) -> list[CorpusFile]:
    """Evaluate files, add their rows, print a line each; return those whose verdict changes."""
    changed = []
    for file in files:
        start = time.monotonic()
        try:
            row = judge(local, file)
        except TilewrightError as error:
            print(f"{file.path.name}: {type(error).__name__}: {error}", flush=True)
            continue
        rows.append(row)
        changed += [file] if row.changes else []
        print(
            f"{'DIFF' if row.changes else '    '} {row.kind}/{row.name:36} {row.strict:10} "
            f"{row.kernelgym:22} {time.monotonic() - start:5.1f} s",
            flush=True,
        )
    return changed


def main() -> int:
    """Evaluate, print the table, and write it to `--out`."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.kernelgym_rules", description=__doc__
    )
    parser.add_argument("--all", action="store_true", help="every file, not one of each family")
    parser.add_argument("--match", default="", help="only files whose name contains this")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    rows: list[Row] = []
    with executor() as local:
        files = read_corpus(CORPUS / "hacks")
        chosen = files if options.all else sample(files)
        chosen = [file for file in chosen if options.match in file.path.stem]
        changed = _judged(local, chosen, rows)
        counterparts = {file.keys.get("twin") for file in changed}
        honest = read_corpus(CORPUS / "honest")
        _judged(
            local, [file for file in honest if options.all or file.path.name in counterparts], rows
        )
    text = page(rows, whole=options.all)
    print(f"\n{text}")
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
