"""The stage that compiles: the kernels of candidates, and references by torch.compile.

It runs in many processes at once, before anything is timed. It stores the kernels, and a judged
process loads them instead of compiling again.
"""

from __future__ import annotations

import tarfile
import time
from pathlib import Path
from typing import Any

from benchmarks.audit.plain_calls import Job, answer, calls_of, namespace, prepare_process
from tilewright.evaluator.processes.sandbox_policy import child_environment

KERNELS = "audit_kernels"
COMPILED = "compiled.bin"
CACHE = child_environment({})["TRITON_CACHE_DIR"]
"""Triton's cache in the sandbox."""
INTERMEDIATE = (".ttir", ".ttgir", ".llir", ".source")
"""Suffixes of a compiler's intermediate texts in Triton's cache."""
SANDBOX = str(Path(CACHE).parent)
RESTORE = f'''"""Unpacks what was compiled for this candidate before it was judged."""

import os
import pathlib
import tarfile

if os.environ.get("CUDA_VISIBLE_DEVICES") == "" and os.environ.get("TRITON_INTERPRET") != "1":
    raise ImportError("this process only compiles, and everything is compiled already")
os.environ["TRITON_CACHE_AUTOTUNING"] = "1"
with tarfile.open(pathlib.Path(__file__).with_name("kernels.tar")) as archive:
    archive.extractall({SANDBOX!r}, filter="data")
'''
COMPILED_REFERENCE = """import pathlib

import torch
import torch._dynamo

# Each case is compiled for its own sizes.
torch._dynamo.config.automatic_dynamic_shapes = False
torch.compiler.load_cache_artifacts(pathlib.Path({path!r}).read_bytes())

"""


def compile_reference(job: Job) -> None:
    """Compile the reference for all cases, and store the artifacts next to the answer."""
    prepare_process(job)

    def made() -> dict[str, Any]:
        import torch
        import torch._dynamo

        torch._dynamo.config.automatic_dynamic_shapes = False
        problem = namespace(job.problem, "problem")
        function = torch.compile(problem["reference"])
        seconds = {}
        for name, call in calls_of(problem, function, job.names, job.device):
            began = time.monotonic()
            call()
            seconds[name] = round(time.monotonic() - began, 2)
        stored = torch.compiler.save_cache_artifacts()
        if stored is None:
            raise RuntimeError("torch.compile left nothing to store")
        Path(job.answer).with_name(COMPILED).write_bytes(stored[0])
        return {"compile_s": seconds}

    answer(job, made)


def compile_candidate(job: Job) -> None:
    """Call the candidate once for each case, so that Triton compiles its kernels."""
    prepare_process(job)

    def made() -> dict[str, Any]:
        problem = namespace(job.problem, "problem")
        function = namespace(job.candidate, "candidate")["work"]
        for _, call in calls_of(problem, function, job.names, job.device):
            call()
        _forget_choices(Path(job.caches))
        return {}

    answer(job, made)


def _forget_choices(caches: Path) -> None:
    """Remove what tuning chose: other processes used the GPU meanwhile."""
    for path in (caches / "triton").rglob("*.autotune.json"):
        path.unlink()
    for path in (caches / ".flaggems" / "config_cache").glob("*"):
        path.unlink()


def pack_kernels(caches: Path, folder: Path) -> bool:
    """Store compiled kernels for the sandbox in `folder`; tell whether there are any."""
    kernels = caches / "triton"
    if not kernels.is_dir():
        return False
    # Triton's index of a kernel names absolute paths; in the sandbox the folder is another one.
    for path in kernels.rglob("__grp__*.json"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(str(kernels), CACHE), encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / "kernels.tar", "w") as archive:
        archive.add(kernels, Path(CACHE).name, filter=_needed)
        if (caches / ".flaggems").is_dir():
            archive.add(caches / ".flaggems", ".flaggems")
    (folder / f"{KERNELS}.py").write_text(RESTORE, encoding="utf-8")
    return True


def _needed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what a launch does not read; a tuned kernel would take 100 MB with it."""
    return None if member.name.endswith(INTERMEDIATE) else member
