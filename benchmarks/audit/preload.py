"""Which modules of other packages the libraries import, for the variable `TILEWRIGHT_PRELOAD`.

The judge's forkserver imports them once, so that a candidate's process imports its library faster
while it holds the device. The modules of the libraries stay out: they may use the GPU on import,
and a process that has done so cannot be forked.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.audit.libraries import Library

FOUND, UNFIT = "modules:", "unfit:"
"""First words of the lines that answer: modules of a library; modules that nobody may fork."""
IMPORT_S = 120.0


def main(arguments: Sequence[str]) -> None:
    """Print the modules that one candidate's imports load, or try a list of modules."""
    command, text, *folders = arguments
    if command == "try":
        _import_all(text.split(","))
        print(UNFIT if _uses_gpu() or len(os.listdir("/proc/self/task")) > 1 else FOUND)
        return
    sys.path[:0] = folders
    # The forkserver has these in any case.
    _import_all(("torch", "triton.language"))
    known = set(sys.modules)
    exec(compile(text, "imports.py", "exec"), {})
    places = [Path(folder) for folder in folders]
    new = (name for name in sys.modules if name not in known and _can_be_imported(name, places))
    print(FOUND, ",".join(new))


def modules_of(libraries: Sequence[Library], folders: Sequence[str]) -> list[str]:
    """Return the modules of other packages that these libraries import, in order of import.

    Each library is imported in a process of its own. One that cannot be imported adds nothing.
    """
    found: dict[str, None] = {}
    for library in libraries:
        text = library.before + "\n".join(dict.fromkeys(call.imports for call in library.calls))
        found.update(dict.fromkeys(_asked("find", text, *folders)))
    return list(found) if found and _can_be_forked(list(found)) else []


def _can_be_forked(modules: Sequence[str]) -> bool:
    return FOUND in _output("try", ",".join(modules))


def _asked(command: str, text: str, *folders: str) -> list[str]:
    lines = [line for line in _output(command, text, *folders).splitlines() if FOUND in line]
    return [name for line in lines for name in line.removeprefix(FOUND).strip().split(",") if name]


def _output(*arguments: str) -> str:
    asked = [sys.executable, "-m", "benchmarks.audit.preload", *arguments]
    # As in the forkserver, where a second thread would be lost in each fork.
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            asked,
            capture_output=True,
            text=True,
            check=False,
            timeout=IMPORT_S,
            env={**os.environ, **single},
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _can_be_imported(name: str, folders: Sequence[Path]) -> bool:
    """Tell whether a module has a file outside of the libraries' folders and a name of its own."""
    module = sys.modules[name]
    spec = getattr(module, "__spec__", None)
    if spec is None or spec.name != name or not spec.has_location or spec.origin is None:
        return False
    place = Path(spec.origin)
    return not any(place.is_relative_to(folder) for folder in folders)


def _import_all(names: Sequence[str]) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def _uses_gpu() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


if __name__ == "__main__":
    main(sys.argv[1:])
