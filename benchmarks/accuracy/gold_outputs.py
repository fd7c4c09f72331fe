"""Whether a gold with a fault has other outputs than the gold, by running both on a GPU."""

from __future__ import annotations

import multiprocessing
import tempfile
from importlib import util
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy.gold_faults import Fault
from tilewright.records import Problem

SECONDS = 60.0
"""Time limit of a comparison; many golds compile kernels."""
DIFFERS = 1e-2
"""Relative and absolute difference of an output value that makes a rewriting a fault."""


def differs(problem: Problem, fault: Fault) -> bool:
    """Compare in a process of its own; a crash or a time-out is no difference."""
    queue: multiprocessing.Queue[bool] = multiprocessing.Queue()
    child = multiprocessing.Process(target=_compare, args=(queue, problem, fault))
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode == 0 and not queue.empty() and queue.get()


def _compare(queue: multiprocessing.Queue[bool], problem: Problem, fault: Fault) -> None:
    with tempfile.TemporaryDirectory() as folder:
        gold = _module(Path(folder) / "gold.py", problem.source.text)
        other = _module(Path(folder) / "other.py", fault.code)
        generator = torch.Generator("cuda")
        for case in problem.cases:
            torch.manual_seed(0)
            args = list(gold.inputs(dict(case.params), generator.manual_seed(0)))
            theirs, ours = (_outputs(each, problem.entry, args) for each in (gold, other))
            if any(map(_apart, theirs, ours)):
                queue.put(True)
                return
    queue.put(False)


def _module(path: Path, code: str) -> Any:  # noqa: ANN401 - a module of a benchmark
    path.write_text(code, encoding="utf-8")
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _outputs(module: Any, entry: str, args: list[Any]) -> list[torch.Tensor]:  # noqa: ANN401
    """Return the tensors that a gold returns and leaves in its arguments."""
    given = [value.clone() if isinstance(value, torch.Tensor) else value for value in args]
    torch.manual_seed(0)
    found = [*_tensors(getattr(module, entry)(*given)), *_tensors(given)]
    torch.cuda.synchronize()
    return found


def _tensors(value: Any) -> list[torch.Tensor]:  # noqa: ANN401
    if isinstance(value, torch.Tensor):
        return [value]
    return [x for each in value for x in _tensors(each)] if isinstance(value, (list, tuple)) else []


def _apart(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not one.is_floating_point() or one.isnan().any():
        return False
    return not torch.allclose(one.double(), other.double(), rtol=DIFFERS, atol=DIFFERS)
