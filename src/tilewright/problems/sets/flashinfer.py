"""FlashInfer traces: definitions and workloads of a data set as problems.

A definition has named axes, inputs, outputs and a reference `run`. Each of its workloads gives
values to the axes, and becomes a case. Only the judge runs the reference.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import ProblemError, reason_of
from tilewright.languages.syntax import parse_tree
from tilewright.problems.sets.base import Found, json_rows
from tilewright.records import Case, Problem, SourceFile

DEFINITIONS, WORKLOADS = "definitions", "workloads"
ENTRY = "run"
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
SIZES |= {"int64": 8, "int32": 4, "int16": 2, "int8": 1, "bool": 1}
"""Bytes of an element of each dtype that tilewright has; `float4_e2m1` is not among them."""
STORED = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn"}
STORED |= {"F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8"}
STORED |= {"BOOL": "bool"}
"""The dtypes of safetensors by the names of a definition."""
MAX_STORED_BYTES = 4_000_000
"""Most bytes of stored inputs of one workload, which the problem holds as text."""
TENSORS = '''def _tensors(answer, outputs, args):
    """Return an answer as one tensor or a tuple of them; a number is a tensor without axes."""
    import torch

    if isinstance(answer, dict):
        answer = tuple(answer[name] for name in outputs)
    answers = answer if isinstance(answer, (tuple, list)) else (answer,)
    if any(isinstance(value, (bool, int, float)) for value in answers):
        place = next((item.device for item in args if isinstance(item, torch.Tensor)), "cpu")
        answers = tuple(
            torch.tensor(value, dtype=getattr(torch, dtype), device=place)
            if isinstance(value, (bool, int, float))
            else value
            for value, dtype in zip(answers, outputs.values())
        )
    return answers[0] if len(answers) == 1 else tuple(answers)
'''
"""How flashinfer-bench reads an answer: a dict by its names, and numbers as tensors."""
GLUE = """{reference}


ENTRY = "run"
_SPEC = __import__("json").loads({spec!r})


def _made(spec, axes, generator):
    import torch

    dtype, place = getattr(torch, spec["dtype"]), generator.device
    shape = [axes[name] for name in spec["shape"]]
    if spec["dtype"] == "bool":
        return torch.randint(0, 2, shape, generator=generator, device=place).bool()
    if not dtype.is_floating_point:
        most = 128 if spec["dtype"] == "int8" else 1000
        return torch.randint(-most, most, shape, generator=generator, device=place).to(dtype)
    return torch.randn(shape, generator=generator, device=place).to(dtype)


def _stored(spec, item, place):
    import base64

    import torch

    data = bytearray(base64.b64decode(item["data"]))
    flat = torch.frombuffer(data, dtype=getattr(torch, spec["dtype"]))
    return flat.reshape(item["shape"]).to(place)


def inputs(case, generator):
    workload, found = _SPEC["workloads"][case["workload"]], []
    axes = {{**_SPEC["axes"], **workload["axes"]}}
    for name, spec in _SPEC["inputs"].items():
        item = workload["inputs"][name]
        if item["type"] == "scalar":
            found.append(item["value"])
        elif item["type"] == "safetensors":
            found.append(_stored(spec, item, generator.device))
        else:
            found.append(_made(spec, axes, generator))
    return tuple(found)


{tensors}

def reference(*args):
    return _tensors(run(*args), _SPEC["outputs"], args)
"""


@dataclass(frozen=True)
class Definition:
    """A definition and its workloads, as the files hold them."""

    name: str
    tree: Mapping[str, Any]
    root: Path
    """Folder of the data set; paths of stored inputs are relative to it."""
    workloads: tuple[Mapping[str, Any], ...] = field(default=())

    @property
    def constants(self) -> dict[str, int]:
        """The axes with one value. A file may leave out `type`, which has a default."""
        axes = self.tree["axes"].items()
        return {name: axis["value"] for name, axis in axes if "value" in axis}


class FlashInfer:
    """The set, with the types of operators as groups."""

    name = "flashinfer"
    about = "definitions and workloads in the format of FlashInfer traces"
    repository = "https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace"
    hub = None

    def read(self, source: Path, revision: str) -> Found:
        """Read a data set with the folders `definitions` and `workloads`."""
        found = Found()
        if not (source / DEFINITIONS).is_dir():
            raise ProblemError(f"{source}: no FlashInfer traces here: it has no {DEFINITIONS}")
        for definition, where in read_definitions(source, found):
            with found.skipping(where):
                problem = problem_of(definition, where)
                found.add(problem.model_copy(update={"revision": revision}), where)
        return found


def read_definitions(source: Path, found: Found) -> Iterator[tuple[Definition, str]]:
    """Yield the definitions of a data set that can be read, each with its file."""
    workloads: dict[str, list[Mapping[str, Any]]] = {}
    for path in sorted((source / WORKLOADS).rglob("*.jsonl")):
        for where, row in json_rows(path, found.skipped):
            if isinstance(row.get("workload"), dict) and isinstance(row.get("definition"), str):
                workloads.setdefault(row["definition"], []).append(row["workload"])
            else:
                found.skipped.append(f"{where}: no workload of a definition")
    for path in sorted((source / DEFINITIONS).rglob("*.json")):
        with found.skipping(str(path)):
            tree = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(tree, dict) or not isinstance(tree.get("name"), str):
                raise ProblemError(f"{path}: no definition: it has no name")
            _check_parts(tree, str(path))
            rows = tuple(workloads.get(tree["name"], ()))
            yield Definition(tree["name"], tree, source, rows), str(path)


def problem_of(definition: Definition, where: str) -> Problem:
    """Return the problem of a definition, with a case for each of its workloads.

    Raises:
        ProblemError: a part is missing or cannot be used; the message begins with `where`.
    """
    tree = definition.tree
    if not definition.workloads:
        raise ProblemError(f"{where}: it has no workload, so nothing gives its axes a size")
    reference = str(tree["reference"])
    if not _defines_run(reference, where):
        raise ProblemError(f"{where}: its reference defines no function {ENTRY}")
    for name, spec in (*tree["inputs"].items(), *tree["outputs"].items()):
        if spec["dtype"] not in SIZES:
            raise ProblemError(f"{where}: {name} is of dtype {spec['dtype']}, which is not judged")
    spec = {
        "axes": definition.constants,
        "inputs": tree["inputs"],
        "outputs": {name: item["dtype"] for name, item in tree["outputs"].items()},
        "workloads": [_workload(definition, item, where) for item in definition.workloads],
    }
    cases = tuple(
        Case(name=str(item["uuid"]), params={"workload": number, **item["axes"]})
        for number, item in enumerate(definition.workloads)
    )
    text = GLUE.format(reference=reference.rstrip(), spec=json.dumps(spec), tensors=TENSORS)
    return Problem(
        id=f"flashinfer/{tree['op_type']}/{definition.name}",
        kind="function",
        source=SourceFile(path="problem.py", text=text),
        entry=ENTRY,
        cases=cases,
        category=str(tree["op_type"]),
        description=str(tree.get("description") or ""),
    )


def _check_parts(tree: Mapping[str, Any], where: str) -> None:
    """Raise `ProblemError` unless axes, inputs and outputs are objects, and shapes name axes."""
    for part in ("axes", "inputs", "outputs"):
        items = tree[part].values() if isinstance(tree[part], dict) else [None]
        if not all(isinstance(item, dict) for item in items):
            raise ProblemError(f"{where}: {part} holds something other than named objects")
    for name, spec in (*tree["inputs"].items(), *tree["outputs"].items()):
        if spec["shape"] is not None and not isinstance(spec["shape"], list):
            raise ProblemError(f"{where}: the shape of {name} is no list of axes")
        for axis in spec["shape"] or ():
            if axis not in tree["axes"]:
                raise ProblemError(f"{where}: {name} names the axis {axis}, which is not defined")


def _defines_run(text: str, where: str) -> bool:
    try:
        tree = parse_tree(text)
    except SyntaxError as error:
        raise ProblemError(f"{where}: its reference is not Python: {error.msg}") from error
    return any(getattr(node, "name", "") == ENTRY for node in tree.body)


def _workload(definition: Definition, item: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a workload with its stored inputs as text."""
    inputs, known = {}, {**definition.constants, **item["axes"]}
    for name, axis in definition.tree["axes"].items():
        if name not in known:
            raise ProblemError(f"{where}: workload {item['uuid']} gives axis {name} no size")
        if "value" in axis and name in item["axes"]:
            raise ProblemError(f"{where}: workload {item['uuid']} changes the constant axis {name}")
    for name, spec in definition.tree["inputs"].items():
        if name not in item["inputs"]:
            raise ProblemError(f"{where}: workload {item['uuid']} has no input {name}")
        given = dict(item["inputs"][name])
        kind = given["type"] = given.get("type", _kind(given))
        if kind not in ("random", "scalar", "safetensors"):
            raise ProblemError(f"{where}: input {name} is of the unknown type {kind}")
        if (kind == "scalar") != (spec["shape"] is None):
            raise ProblemError(
                f"{where}: input {name} is a tensor in one place and a scalar in one"
            )
        if kind == "safetensors":
            shape = [known[axis] for axis in spec["shape"]]
            given = _stored(definition.root, given, spec["dtype"], shape, f"{where}: input {name}")
        inputs[name] = given
    return {"axes": item["axes"], "inputs": inputs}


def _kind(given: Mapping[str, Any]) -> str:
    """Return the type of an input that names none, as the schema's defaults do."""
    return "safetensors" if "tensor_key" in given else "scalar" if "value" in given else "random"


def _stored(
    root: Path, given: Mapping[str, Any], dtype: str, shape: list[int], where: str
) -> dict[str, Any]:
    """Return a tensor of a file of safetensors, which must have the dtype and the shape."""
    path = root / str(given["path"])
    if path.is_symlink() or not path.resolve().is_relative_to(root.resolve()):
        raise ProblemError(f"{where}: {given['path']} is a link, or outside of {root}")
    try:
        data = path.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        entry = json.loads(data[8 : 8 + length])[given["tensor_key"]]
        first, last = entry["data_offsets"]
        found, sizes = STORED.get(entry["dtype"], entry["dtype"]), list(entry["shape"])
    except OSError as error:
        raise ProblemError(f"{where}: {path} cannot be read: {reason_of(error)}") from error
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise ProblemError(f"{where}: {path}: no tensor {given['tensor_key']!r} in it") from error
    if (found, sizes) != (dtype, shape):
        raise ProblemError(
            f"{where}: {path} holds {found} of shape {sizes}, not {dtype} of shape {shape}"
        )
    if last - first > MAX_STORED_BYTES:
        raise ProblemError(f"{where}: {path} holds more than {MAX_STORED_BYTES} bytes")
    content = data[8 + length + first : 8 + length + last]
    return {"type": "safetensors", "data": base64.b64encode(content).decode(), "shape": shape}


SET = FlashInfer()
