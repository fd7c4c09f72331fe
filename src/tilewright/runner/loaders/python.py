"""Load Python source: a module class, or a function; extensions come prebuilt.

The runner and the build processes run this code together with the candidate, which can change it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NoReturn

import torch
from torch.utils import cpp_extension

from tilewright.runner.launch_counter import Launches, poison
from tilewright.runner.loaders.extension_builds import described
from tilewright.wire.builder_calls import BUILDERS, BuilderCall, is_failed, split_key


class EntryMissing(Exception):
    """The source defines nothing under the entry point's name."""


def import_file(path: str, name: str = "candidate") -> ModuleType:
    """Execute a Python file as module `name`; it can import the files of its folder."""
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return _module_at(path, name, listed=True)


def _module_at(path: str, name: str, *, listed: bool) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    if listed:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def entry_of(module: ModuleType, name: str) -> Any:  # noqa: ANN401
    """Return the attribute of `module` with this name, or the `apply` of a Function."""
    if not hasattr(module, name):
        raise EntryMissing(f"no {name} in {os.path.basename(module.__file__ or '')}")
    found = getattr(module, name)
    applies = isinstance(found, type) and issubclass(found, torch.autograd.Function)
    return found.apply if applies else found


def by_name(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return `function` with its last arguments passed under these names."""

    def call(*args: Any) -> Any:  # noqa: ANN401
        first = len(args) - len(names)
        return function(*args[:first], **dict(zip(names, args[first:], strict=True)))

    return call


def install_extensions(
    artifacts: dict[str, str],
    launches: Launches,
    root: str,
    request: Callable[[BuilderCall], NoReturn],
) -> None:
    """Make torch's builders answer with the libraries at the paths in `artifacts`.

    A call is known by its arguments. A build that failed raises with the compiler's messages.
    `request` gets a call that was not built; it does not return, because a candidate could catch
    an exception and do without its extension.
    """

    def prebuilt(builder: str, original: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        call = described(builder, original, args, kwargs, root)
        found = [key for key in artifacts if split_key(key)[0] == call.digest()]
        if not found:
            request(call)
        path, (_, name) = artifacts[found[0]], split_key(found[0])
        if is_failed(found[0]):
            with open(path, encoding="utf-8", errors="replace") as file:
                raise RuntimeError(file.read())
        if call.arguments.get("is_python_module", True):
            return ExtensionProxy(_module_at(path, name, listed=False), launches)
        _load_operators(path, launches)
        return path

    launches.hook_ctypes(artifacts.values())
    for name in BUILDERS:
        original = getattr(cpp_extension, name)
        setattr(cpp_extension, name, partial(prebuilt, name, original))


def _load_operators(path: str, launches: Launches) -> None:
    """Load a library of `TORCH_LIBRARY` operators, and count launches of those that it adds."""
    before = _operator_names()
    torch.ops.load_library(path)
    for name in _operator_names() - before:
        space, _, operator = name.partition("::")
        namespace = getattr(torch.ops, space)
        setattr(namespace, operator, OperatorProxy(getattr(namespace, operator), launches))


def _operator_names() -> set[str]:
    return {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}


class ExtensionProxy:
    """An extension module whose functions are counted, or suppressed."""

    def __init__(self, inner: Any, launches: Launches) -> None:  # noqa: ANN401
        self._inner = inner
        self._launches = launches
        self._own: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        value = getattr(self._inner, name)
        if not callable(value):
            return value
        if name not in self._own:
            self._own[name] = self._counted(value)
        return self._own[name]

    def _counted(self, value: Callable[..., Any]) -> Callable[..., Any]:
        return own_function(value, self._launches)


class OperatorProxy(ExtensionProxy):
    """An own operator, or one overload of it."""

    def __init__(self, operator: Any, launches: Launches) -> None:  # noqa: ANN401
        super().__init__(operator, launches)
        self._call = own_function(operator, launches)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return self._call(*args, **kwargs)

    def _counted(self, value: Callable[..., Any]) -> Callable[..., Any]:
        return OperatorProxy(value, self._launches)


def own_function(function: Callable[..., Any], launches: Launches) -> Callable[..., Any]:
    """Return `function` counted; suppressed, its results are overwritten and its writes undone.

    Under suppression it runs once for each kind of arguments, which shows the form of its result.
    From then on it does not run, so that the time without its work can be measured.
    """
    known: dict[Hashable, Callable[[Sequence[Any]], Any]] = {}

    def learned(args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[[Sequence[Any]], Any]:
        key = tuple(_kind(value) for value in (*args, *kwargs.items()))
        if key not in known:
            tensors = [value for value in args if isinstance(value, torch.Tensor)]
            before = [value.detach().clone() for value in tensors]
            known[key] = recipe(function(*args, **kwargs), args)
            for value, old in zip(tensors, before, strict=True):
                value.detach().copy_(old)
        return known[key]

    def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if not launches.suppress:
            result = launches.measured(function, *args, **kwargs)
        elif any(isinstance(value, torch.Tensor) for value in args):
            result = learned(args, kwargs)(args)
            if not launches.timed:
                poison(result)
        else:
            # It gets raw addresses: its writes could not be undone.
            result = None
        launches.count += 1
        return result

    return counted


def _kind(value: Any) -> Hashable:  # noqa: ANN401
    """Return the properties of an argument that a result's shape may depend on."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype, value.device
    if isinstance(value, list | tuple):
        return type(value), *(_kind(item) for item in value)
    return repr(value)


def recipe(result: Any, args: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:  # noqa: ANN401
    """Return a function that makes a result of the same form from other arguments, without work."""
    for place, value in enumerate(args):
        if result is value and result is not None:
            return lambda args: args[place]
    if isinstance(result, torch.Tensor):
        # No tensor is kept, because a candidate could find its values. A meta tensor has none, but
        # the first operation on one imports 486 modules, which takes seconds.
        make = partial(torch.empty_strided, dtype=result.dtype, device=result.device)
        shape, strides = tuple(result.shape), result.stride()
        return lambda _: make(shape, strides)
    if isinstance(result, list | tuple):
        items = [recipe(item, args) for item in result]
        whole = tuple if isinstance(result, tuple) else list
        return lambda args: whole(item(args) for item in items)
    return lambda _: result
