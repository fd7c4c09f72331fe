"""The best candidate of a run, written as a file that runs on its own."""

from __future__ import annotations

from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.languages.python_template import render_python
from tilewright.records import Candidate, EvalReport, Problem

__all__ = ["standalone", "write_winner"]

TEMPLATE = Path(__file__).with_suffix(".py.j2")


def standalone(problem: Problem, candidate: Candidate) -> str:
    """Return the candidate's main file with a check against its reference at the end.

    A main file in another language than Python is returned unchanged.
    """
    main = candidate.files[0]
    if not main.path.endswith(".py"):
        return main.text
    return render_python(
        TEMPLATE,
        candidate=main.text.rstrip(),
        reference=problem.source.text,
        entry=candidate.entry,
        is_module=problem.kind == "module",
    )


def write_winner(folder: Path, problem: Problem, report: EvalReport) -> Path:
    """Write the files and the second report of the best candidate; return its main file.

    Raises:
        ConfigError: the folder cannot be written.
    """
    candidate = report.request.candidate
    target = folder / "winner" / problem.id.replace("/", "-")
    try:
        for file in candidate.files:
            path = target / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
        main = target / candidate.files[0].path
        main.write_text(standalone(problem, candidate), encoding="utf-8")
        (target / "report.json").write_text(report.to_json(indent=1), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror}") from error
    return main
