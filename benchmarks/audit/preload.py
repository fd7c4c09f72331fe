"""Which modules of other packages the libraries import, for the variable `TILEWRIGHT_PRELOAD`.

The judge's forkserver imports them once, so that a candidate's process imports its library faster
while it holds the device. The modules of the libraries stay out: they may use the GPU on import,
and a process that has done so cannot be forked.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.audit.libraries import Library

FOUND = "modules:"
"""First word of the line with the modules."""
IMPORT_S = 150.0
"""Most seconds for the imports of one process; a file system may take milliseconds a file."""


def main(arguments: Sequence[str]) -> None:
    """Print the modules that one library's imports load, or those of a list that may be forked."""
    command, text, *folders = arguments
    if command == "fit":
        print(FOUND, ",".join(_fit(text.split(","))))
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
    Modules are left out that start a thread or use the GPU on import.
    """
    texts = [
        library.before + "\n".join(dict.fromkeys(call.imports for call in library.calls))
        for library in libraries
    ]
    with ThreadPoolExecutor(len(texts) or 1) as pool:
        answers = pool.map(lambda text: _asked("find", text, *folders), texts)
    found = dict.fromkeys(name for answer in answers for name in answer)
    return _asked("fit", ",".join(found)) if found else []


def _fit(names: Sequence[str]) -> list[str]:
    """Import the modules that leave a process fit for forks, and return their names."""
    fit: list[str] = []
    left = list(names)
    while left:
        place = _first_unfit(left)
        _import_all(left[:place])
        fit += left[:place]
        if place < len(left):
            print(f"not preloaded: {left[place]}", file=sys.stderr, flush=True)
        del left[: place + 1]
    return fit


def _first_unfit(names: Sequence[str]) -> int:
    """Return the place of the first module that leaves a forked process unfit, or their number."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        place = 0
        for name in names:
            _import_all((name,))
            if not _can_be_forked():
                break
            place += 1
        os.write(writer, str(place).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as answer:
        # A module that ends its process leaves no answer, and the first one may be it.
        place = int(answer.read() or 0)
    os.waitpid(child, 0)
    return place


def _can_be_forked() -> bool:
    """Tell whether this process has one thread, and no GPU open."""
    opened = (_target(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
    return len(os.listdir("/proc/self/task")) == 1 and not any("nvidia" in each for each in opened)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _asked(command: str, text: str, *folders: str) -> list[str]:
    asked = [sys.executable, "-m", "benchmarks.audit.preload", command, text, *folders]
    # As in the forkserver, where a second thread would be lost in each fork.
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            asked,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=IMPORT_S,
            env={**os.environ, **single},
        )
    except subprocess.TimeoutExpired:
        print(f"{command}: not ready after {IMPORT_S:.0f} s", file=sys.stderr, flush=True)
        return []
    lines = [line for line in done.stdout.splitlines() if line.startswith(FOUND)]
    return [name for line in lines for name in line.removeprefix(FOUND).strip().split(",") if name]


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
        # Of another package: it may raise anything.
        with contextlib.suppress(Exception):
            importlib.import_module(name)


if __name__ == "__main__":
    main(sys.argv[1:])
