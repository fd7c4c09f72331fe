"""Call a candidate or a reference outside the judge: to compile it, and to time it as users do.

A process of this module serves one cell and ends. Nothing here decides a verdict.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

SEED = 20261128


@dataclass(frozen=True)
class Job:
    """The task of one process. It holds texts instead of objects, so it can be sent."""

    problem: str
    candidate: str
    folders: tuple[str, ...]
    """Folders of libraries."""
    answer: str
    """The file for the answer as JSON."""
    device: str
    caches: str
    """The folder for what is compiled."""
    lock: str = ""
    """The file that one process at a time holds while it uses the GPU alone."""
    names: tuple[str, ...] = field(default=())
    """The arguments of the reference."""
    gpu: str = ""
    """The number of the only GPU that the process sees; empty: it sees all."""
    tf32: bool = False
    """Whether products of float32 may be rounded to tf32. The judge allows it where the reference
    has such products; a kernel for bf16 must compute what it does in float32 as torch does."""


def prepare_process(job: Job) -> None:
    """Set the variables by which Triton, torch and libraries find their GPU and their caches."""
    if job.gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = job.gpu
    caches = Path(job.caches)
    os.environ.update(
        {
            "TRITON_CACHE_DIR": str(caches / "triton"),
            "TRITON_CACHE_AUTOTUNING": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "FLAGGEMS_CACHE_DIR": str(caches / ".flaggems"),
        }
    )
    sys.path[:0] = job.folders
    import torch

    torch.set_num_threads(1)
    # As in the judge's runners; torch.compile's cache has it in its key.
    torch.backends.cuda.matmul.allow_tf32 = job.tf32
    torch.backends.cudnn.allow_tf32 = job.tf32


def answer(job: Job, made: Callable[[], dict[str, Any]]) -> None:
    """Write what `made` returns, or its exception, to the job's file."""
    began = time.monotonic()
    try:
        found = made()
    except Exception as error:  # noqa: BLE001 - of foreign code; it becomes a row
        found = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    found["seconds"] = round(time.monotonic() - began, 2)
    path = Path(job.answer)
    path.with_suffix(".part").write_text(json.dumps(found), encoding="utf-8")
    path.with_suffix(".part").replace(path)


def namespace(text: str, name: str) -> dict[str, Any]:
    """Run a source text as a module of this process and return its names."""
    module = ModuleType(name)
    # torch.compile looks a function's module up by its name.
    sys.modules[name] = module
    exec(compile(text, f"{name}.py", "exec"), vars(module))
    return vars(module)


def calls_of(
    problem: dict[str, Any], function: Callable[..., Any], names: Sequence[str], device: str
) -> list[tuple[str, Callable[[], Any]]]:
    """Return for each case a call of `function`, with its backward pass if the problem has one."""
    import torch

    found = []
    for case in problem["CASES"]:
        generator = torch.Generator(device).manual_seed(SEED)
        # A default device would be part of what torch.compile compiles for.
        with torch.device(device):
            args = list(problem["inputs"](case, generator))
        places = [names.index(name) for name in problem.get("GRADS", ())]
        found.append((case["name"], _call(function, args, places)))
    return found


def _call(function: Callable[..., Any], args: list[Any], places: list[int]) -> Callable[[], Any]:
    import torch

    if not places:

        def forward() -> Any:  # noqa: ANN401
            with torch.no_grad():
                return function(*args)

        return forward
    grads: list[Any] = []

    def both() -> Any:  # noqa: ANN401
        # Detached anew: a backward pass may overwrite what an earlier call has saved.
        given = [each.detach() if isinstance(each, torch.Tensor) else each for each in args]
        for place in places:
            given[place].requires_grad_(True)
        output = function(*given)
        leaves = [leaf for leaf in _leaves(output) if leaf.is_floating_point()]
        if not grads:
            grads.extend(torch.ones_like(leaf) for leaf in leaves)
        return torch.autograd.grad(leaves, [given[place] for place in places], grads)

    return both


def _leaves(output: Any) -> list[Any]:  # noqa: ANN401
    return list(output) if isinstance(output, tuple | list) else [output]
