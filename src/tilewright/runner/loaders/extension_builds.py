"""Calls of torch's extension builders: described as data, recorded while they build, replayed.

A call is identified by its arguments, so every process of a candidate finds the library again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import Any

from torch.utils import cpp_extension

from tilewright.wire.builder_calls import (
    BUILDERS,
    Argument,
    BuilderCall,
    artifact_key,
)

Build = Callable[..., Any]
IGNORED = ("name", "build_directory", "verbose", "keep_intermediates")
"""Arguments that say where and how loudly torch builds, and the name, which is kept apart."""
PATHS = ("sources", "extra_include_paths")
"""Arguments that name files and folders."""
FLAGS = (
    *("extra_cflags", "extra_cuda_cflags", "extra_sycl_cflags", "extra_ldflags"),
    "extra_include_paths",
)
"""Lists in which a path of a folder may occur."""
SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".hh", ".cuh", ".inl", ".inc")
"""Endings of files that travel with a call of `load`."""
MAX_FILES = 256
"""Files that travel with a call: more than any published extension has."""
WRITABLE = "/tmp/"
"""The folder below which a candidate can write; the others are the same in the builder."""
MOVED = "tilewright-sources"
"""Folder below the candidate's, to which its files from other folders move."""
MAX_ERROR = 3900
"""Characters of a compiler's messages that are kept."""


class UnplainArgument(TypeError):
    """An argument of a builder is neither text nor a number, nor a list or dictionary of texts."""


def described(
    builder: str, original: Build, args: tuple[Any, ...], kwargs: dict[str, Any], root: str
) -> BuilderCall:
    """Return a call as plain data, with the files that it reads."""
    known = signature(original)
    bound = known.bind(*args, **kwargs).arguments
    arguments = {
        name: _plain(name, value)
        for name, value in bound.items()
        if name not in IGNORED and value != known.parameters[name].default
    }
    files = _take_files(arguments, root) if builder == "load" else {}
    return BuilderCall(builder, str(bound["name"]), arguments, files)


def _plain(name: str, value: Any) -> Argument:  # noqa: ANN401
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, os.PathLike):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): str(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [str(item) for item in items]
    raise UnplainArgument(f"{name} is of type {type(value).__name__}")


def _take_files(arguments: dict[str, Argument], root: str) -> dict[str, str]:
    """Return the files that a call of `load` may read, and let the arguments name their new places.

    A folder outside the candidate's is often temporary, so its name changes from run to run.
    """
    sources, includes = (_listed(arguments.get(name)) for name in PATHS)
    sources = [os.path.abspath(path) for path in sources]
    folders = [os.path.dirname(path) for path in sources]
    folders += [os.path.abspath(path) for path in includes]
    files: dict[str, str] = {}
    places: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        if not f"{folder}/".startswith((f"{root}/", WRITABLE)):
            continue
        inside = f"{folder}/".startswith(f"{root}/")
        place = os.path.relpath(folder, root) if inside else f"{MOVED}/{len(places)}"
        places[folder] = folder if inside else os.path.join(root, place)
        for name in sorted(os.listdir(folder)):
            if name.endswith(SUFFIXES):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    files[os.path.normpath(os.path.join(place, name))] = file.read()
    if len(files) > MAX_FILES:
        raise ValueError(f"{len(files)} source files, at most {MAX_FILES}")
    arguments["sources"] = [_moved(path, places) for path in sources]
    for name in FLAGS:
        if name in arguments:
            arguments[name] = [_moved(flag, places) for flag in _listed(arguments[name])]
    return files


def _listed(value: Argument) -> list[str]:
    return [value] if isinstance(value, str) else list(value) if isinstance(value, list) else []


def _moved(text: str, places: dict[str, str]) -> str:
    # The longest first, because one folder may lie in another.
    for folder in sorted(places, key=len, reverse=True):
        if folder in text:
            return text.replace(folder, places[folder])
    return text


class Recorder:
    """Lets torch build, and records each library by its call. Lifetime: the build process."""

    def __init__(self, folder: str, root: str) -> None:
        self._folder, self._root = folder, root
        self._originals: dict[str, Build] = {
            name: getattr(cpp_extension, name) for name in BUILDERS
        }
        self.libraries: dict[str, str] = {}
        """Path of each library by its key."""
        self.errors: dict[str, bytes] = {}
        """The output of the compiler for each build that failed, by its key."""

    def install(self) -> None:
        """Record the calls that a candidate makes."""
        for name in BUILDERS:
            setattr(cpp_extension, name, partial(self._called, name))

    def _called(self, builder: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        original = self._originals[builder]
        digest = described(builder, original, args, kwargs, self._root).digest()
        bound = signature(original).bind(*args, **kwargs).arguments
        return self._built(digest, original, bound)

    def make(self, call: BuilderCall) -> None:
        """Make a call that another process described; its files are in their places."""
        original = self._originals[call.builder]
        self._built(call.digest(), original, {"name": call.name, **call.arguments})

    def _built(self, digest: str, original: Build, arguments: dict[str, Any]) -> Any:  # noqa: ANN401
        folder = os.path.join(self._folder, digest)
        os.makedirs(folder, exist_ok=True)
        try:
            return original(**{**arguments, "build_directory": folder})
        except Exception as error:
            text = f"{type(error).__name__}: {error}"[:MAX_ERROR]
            self.errors[artifact_key(digest, "")] = text.encode(errors="replace")
            raise
        finally:
            for name in os.listdir(folder):
                if name.endswith(".so"):
                    key = artifact_key(digest, name.removesuffix(".so"))
                    self.libraries[key] = os.path.join(folder, name)
                    self.errors.pop(artifact_key(digest, ""), None)
