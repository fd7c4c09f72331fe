"""Facts about a candidate's source, read without running it.

A source is easily obfuscated, so no fact rejects a candidate: checks compare facts with
measurements. Obfuscation (names assembled from pieces, encoded text) is a fact of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.languages.cpp_facts import native_facts
from tilewright.languages.python_facts import imported_modules, python_facts
from tilewright.languages.syntax import Fact, Unparseable, is_python, parse_module
from tilewright.records import Record, SourceFile

MAX_SIGHTINGS = 100
"""Places of each kind in a record; further ones, by file and line, are left out."""


class Sighting(Record):
    """A name in the source, and its place."""

    name: str
    path: str
    line: int


Sightings = tuple[Sighting, ...]


class StaticFeatures(Record):
    """Facts of a source. C++ inside Python strings counts as source, at its line."""

    unparseable: tuple[str, ...] = ()
    """One line for each Python file that does not parse; the fields below lack its facts."""
    imports: tuple[str, ...] = ()
    """Modules that Python files import, sorted, also by `__import__` of a literal."""
    torch_ops: Sightings = ()
    """Calls of computing operators of torch: `softmax`, `matmul` for `@`, `nn.Linear` for
    `self.x(...)` if `self.x` is one. Calls inside kernels are left out, and so are `*`, `+` and
    the like, which do not show whether their operands are tensors."""
    torch_modules: Sightings = ()
    """Constructions of computing torch.nn modules, used or not."""
    aten_calls: Sightings = ()
    """Calls of `at::`, `torch::` or `c10::` functions and of computing tensor methods in C++."""
    library_calls: Sightings = ()
    """cuBLAS, cuDNN, cuSPARSE, MKL, BLAS and the like in C++."""
    extensions: Sightings = ()
    """Extensions that the module builds: `load_inline cuda`, `load cpp` and so on."""
    kernels_defined: Sightings = ()
    """`@triton.jit` functions and `__global__` functions."""
    kernels_launched: Sightings = ()
    """`name[grid](...)`, `name.run(...)` and `name<<<...>>>`."""
    kernels_called: Sightings = ()
    """Triton functions called from kernels."""
    kernels_passed: Sightings = ()
    """Kernels used as values; a launch of them may be out of sight."""
    fallbacks: Sightings = ()
    """Exception handlers that compute in torch, and `contextlib.suppress`."""
    compiled: Sightings = ()
    """torch.compile, torch.jit and CUDA graphs."""
    streams: Sightings = ()
    """Creations and selections of CUDA streams."""
    concurrency: Sightings = ()
    """Threads and processes, in Python and C++."""
    native_access: Sightings = ()
    """ctypes, cffi and mmap; dlopen, mprotect, ptrace and constructors in C++."""
    network: Sightings = ()
    """Sockets and downloads."""
    file_access: Sightings = ()
    """Files and folders opened or listed."""
    proc_access: Sightings = ()
    """Text that names a path in /proc."""
    introspection: Sightings = ()
    """inspect, gc, frames, traces and sys.modules."""
    patches: Sightings = ()
    """Attributes of torch, triton, time and other shared modules that the source assigns or
    deletes; `?` replaces a name that the source computes."""
    global_flags: Sightings = ()
    """Settings for the whole process: torch.backends, default dtype, seeds, os.environ."""
    dynamic_code: Sightings = ()
    """exec, eval, compile and imports by function."""
    assembled_names: Sightings = ()
    """Attribute or module names that are no single literal, assembled where possible."""
    decoding: Sightings = ()
    """base64, hex, zlib and the like, and long literals that look encoded."""
    assembly: Sightings = ()
    """Inline assembly in C++ (in CUDA mostly honest PTX)."""
    outside_includes: Sightings = ()
    """`#include` of absolute paths or parent folders, and `.incbin`."""
    token_pasting: Sightings = ()
    """Names joined by the C preprocessor."""


def static_features(files: Sequence[SourceFile]) -> StaticFeatures:
    """Return the facts of Python files, from their trees, and of others, from C++ tokens."""
    imports: set[str] = set()
    broken: list[str] = []
    found: dict[str, set[tuple[int, int, str]]] = {}
    for number, file in enumerate(files):
        facts: Iterable[Fact] = ()
        if file.encoding != "utf-8":
            continue
        if not is_python(file):
            facts = native_facts(file.text)
        elif isinstance(parsed := parse_module(file.path, file.text), Unparseable):
            broken.append(f"{parsed.path}: {parsed.message}")
        else:
            facts = python_facts(parsed)
            imports.update(imported_modules(parsed))
        for fact in facts:
            found.setdefault(fact.field, set()).add((number, fact.line, fact.name))
    sightings = {
        field: tuple(
            Sighting(name=name, path=files[number].path, line=line)
            for number, line, name in sorted(places)[:MAX_SIGHTINGS]
        )
        for field, places in found.items()
    }
    return StaticFeatures(
        unparseable=tuple(broken), imports=tuple(sorted(imports)[:MAX_SIGHTINGS]), **sightings
    )
