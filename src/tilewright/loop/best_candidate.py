"""The best candidate of a run, measured once more, and as a file that runs by itself."""

from __future__ import annotations

from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.records import Candidate, EvalReport, Problem

__all__ = ["standalone", "write_winner"]

MAIN = """

if __name__ == "__main__":
    # Compares with the reference on its first inputs, and times both with a plain clock. Only
    # tilewright's own measurement has an interval.
    import time as _time

    import torch as _torch

    _names = {{"__name__": "reference"}}
    exec(compile({source!r}, "reference.py", "exec"), _names)
    _torch.manual_seed(0)
{setup}
    def _synchronize():
        if _torch.cuda.is_available():
            _torch.cuda.synchronize()

    def _time_of(function):
        for _ in range(3):
            function(*_inputs)
        times = []
        for _ in range(20):
            _synchronize()
            start = _time.perf_counter()
            function(*_inputs)
            _synchronize()
            times.append(_time.perf_counter() - start)
        return sorted(times)[len(times) // 2]

    _wanted, _got = _reference(*_inputs), _candidate(*_inputs)
    _torch.testing.assert_close(_got, _wanted, rtol=1e-2, atol=1e-2)
    print(f"agrees; reference {{_time_of(_reference) * 1e6:.0f}} us, "
          f"this {{_time_of(_candidate) * 1e6:.0f}} us")
"""
FUNCTION = """    _inputs = _names["inputs"](_names["CASES"][0], _torch.Generator().manual_seed(0))
    _device = "cuda" if _torch.cuda.is_available() else "cpu"
    _inputs = [v.to(_device) if isinstance(v, _torch.Tensor) else v for v in _inputs]
    _reference, _candidate = _names["reference"], {entry}
"""
MODULE = """    _device = "cuda" if _torch.cuda.is_available() else "cpu"
    _inputs = [
        v.to(_device) if isinstance(v, _torch.Tensor) else v for v in _names["get_inputs"]()
    ]
    _init = _names["get_init_inputs"]() if "get_init_inputs" in _names else []
    _torch.manual_seed(0)
    _reference = _names["Model"](*_init).to(_device)
    _torch.manual_seed(0)
    _candidate = {entry}(*_init).to(_device)
    _candidate.load_state_dict(_reference.state_dict(), strict=False)
"""


def standalone(problem: Problem, candidate: Candidate) -> str:
    """Return the candidate's main file with a check against its reference at the end.

    A main file that is no Python is returned as it is.
    """
    main = candidate.files[0]
    if not main.path.endswith(".py"):
        return main.text
    setup = (MODULE if problem.kind == "module" else FUNCTION).format(entry=candidate.entry)
    return main.text.rstrip() + "\n" + MAIN.format(source=problem.source.text, setup=setup)


def write_winner(folder: Path, problem: Problem, report: EvalReport) -> Path:
    """Write a winner's files and its second report; return the path of its main file.

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
