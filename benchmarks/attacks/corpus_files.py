"""Corpus files: a candidate whose header says how it must be judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.problems.loader import find_problem
from tilewright.records import EvalReport, Failed, Problem

__all__ = ["CorpusFile", "expectation_missed", "read_corpus", "read_header"]

_COMMENT = " *"


@dataclass(frozen=True)
class CorpusFile:
    """One corpus file: its place, its title and the keys of its header."""

    path: Path
    title: str
    keys: dict[str, str]

    @property
    def expected(self) -> tuple[str, ...]:
        """Return the accepted verdicts."""
        return tuple(part.strip() for part in self.keys["expect"].split(" or "))

    def problem(self) -> Problem:
        """Return its problem, from the folder of the corpus or from the bundled ones.

        Raises:
            ProblemError: there is no such problem.
        """
        name = self.keys["problem"]
        own = self.path.parent.parent / "problems" / f"{name}.py"
        return find_problem(str(own) if own.is_file() else name)


def read_header(path: Path) -> CorpusFile:
    """Read the header: the docstring, or the first comment of C++.

    Raises:
        ConfigError: there is no header, or `problem` or `expect` is missing.
    """
    rows = _header_rows(path)
    keys: dict[str, str] = {}
    for row in rows[1:]:
        key, colon, value = row.partition(":")
        if colon and key and " " not in key:
            keys[key] = value.strip()
    for key in ("problem", "expect"):
        if key not in keys:
            raise ConfigError(f"{path}: the header has no {key!r}")
    return CorpusFile(path, rows[0] if rows else "", keys)


def _header_rows(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        parts = text.split('"""')
        return parts[1].strip().splitlines() if len(parts) > 2 else []
    if text.startswith("//"):
        lines = text.splitlines()
        end = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
        return [line.removeprefix("//").strip() for line in lines[:end]]
    return [
        line.strip(_COMMENT) for line in text.partition("/*")[2].partition("*/")[0].splitlines()
    ]


def read_corpus(folder: Path) -> list[CorpusFile]:
    """Read the headers of all corpus files in a folder, by name."""
    found = sorted(p for p in folder.iterdir() if p.suffix in (".py", ".cpp", ".cu"))
    return [read_header(path) for path in found]


def expectation_missed(file: CorpusFile, report: EvalReport) -> str:
    """Return how a report differs from the header; empty if it agrees."""
    if report.verdict not in file.expected:
        return f"expected {' or '.join(file.expected)}, got {report.verdict}"
    codes = [finding.code for finding in report.findings]
    wanted = file.keys.get("finding")
    if wanted and report.verdict == "rejected" and wanted not in codes:
        return f"expected the finding {wanted!r}, got {codes}"
    label = file.keys.get("label")
    names = [item.name for item in report.labels]
    if label and report.verdict == "correct" and label not in names:
        return f"expected the label {label!r}, got {names}"
    reason = file.keys.get("reason")
    if reason and isinstance(report.outcome, Failed) and report.outcome.reason != reason:
        return f"expected the reason {reason!r}, got {report.outcome.reason!r}"
    if file.keys.get("speedup") == "none" and report.verdict == "correct":
        faster = [item.case for item in report.comparisons if item.conclusion == "faster"]
        big = [c for c in report.comparisons if c.case in faster and c.speedup > 1.05]
        if big:
            cases = [
                f"{c.case} {c.speedup:.3f} [{c.speedup_low:.3f}, {c.speedup_high:.3f}] of "
                f"{c.baseline_timing.median_us:.0f} us, pairs {c.blocks_per_process}"
                for c in big
            ]
            return f"a false speed-up is reported on {'; '.join(cases)}"
    if file.path.parent.name.endswith("honest"):
        accused = [item.code for item in report.findings if item.weight == "decisive"]
        if accused:
            return f"an honest file is accused: {accused}"
    return ""
