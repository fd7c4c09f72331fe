"""Twenty definitions of our own, which have every feature of FlashInfer's schema that we judge."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROWS, COLS = {"type": "var"}, {"type": "const", "value": 64}
AXES = {"rows": ROWS, "cols": COLS}
WHOLE, LINE = ["rows", "cols"], ["cols"]
RANDOM = {"type": "random"}
COUNT = 64
FLOATS = struct.pack(f"<{COUNT}f", *((number * 37 % 101) / 50 - 1 for number in range(COUNT)))
INTEGERS = tuple(number * 37 % 101 - 50 for number in range(COUNT))
STORED = {
    "float32": ("F32", FLOATS),
    "float16": ("F16", struct.pack(f"<{COUNT}e", *(number / 64 for number in range(COUNT)))),
    # The upper half of a float32 is a bfloat16.
    "bfloat16": ("BF16", b"".join(FLOATS[4 * n + 2 : 4 * n + 4] for n in range(COUNT))),
    "float8_e4m3fn": ("F8_E4M3", bytes(number for number in range(COUNT))),
    "float8_e5m2": ("F8_E5M2", bytes(number for number in range(COUNT))),
    "int64": ("I64", struct.pack(f"<{COUNT}q", *INTEGERS)),
    "int32": ("I32", struct.pack(f"<{COUNT}i", *INTEGERS)),
    "int16": ("I16", struct.pack(f"<{COUNT}h", *INTEGERS)),
    "int8": ("I8", struct.pack(f"<{COUNT}b", *INTEGERS)),
    "bool": ("BOOL", bytes(number % 3 == 0 for number in range(COUNT))),
}
"""The stored inputs, one of each dtype: its name in safetensors, and its bytes."""


def tensor(shape: list[str] | None, dtype: str = "float32", **more: str) -> dict[str, Any]:
    return {"shape": shape, "dtype": dtype, **more}


@dataclass(frozen=True)
class Example:
    """A definition with its workloads, and a solution that is correct for it."""

    name: str
    run: str
    """The reference."""
    solution: str
    """The text of the solution's file; its function is `solve`."""
    inputs: dict[str, Any] = field(default_factory=lambda: {"x": tensor(WHOLE)})
    outputs: dict[str, Any] = field(default_factory=lambda: {"out": tensor(WHOLE)})
    axes: dict[str, Any] = field(default_factory=lambda: dict(AXES))
    sizes: dict[str, int] = field(default_factory=lambda: {"rows": 96})
    given: dict[str, Any] = field(default_factory=dict)
    """Inputs of the workload that are not random."""
    others: tuple[dict[str, int], ...] = ()
    """Sizes of more workloads."""
    more: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """More files of the solution."""

    @property
    def definition(self) -> dict[str, Any]:
        tree = {"name": self.name, "op_type": "ours", "axes": self.axes, "inputs": self.inputs}
        return {**tree, "outputs": self.outputs, "reference": self.run, **self.more}

    @property
    def workloads(self) -> list[dict[str, Any]]:
        inputs = dict.fromkeys(self.inputs, RANDOM) | self.given
        return [
            {"axes": sizes, "inputs": inputs, "uuid": f"w{number}-{self.name}"}
            for number, sizes in enumerate((self.sizes, *self.others))
        ]

    @property
    def solution_tree(self) -> dict[str, Any]:
        whole = {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::solve"}
        spec = whole | self.spec
        main = {"path": spec["entry_point"].partition("::")[0], "content": self.solution}
        others = [{"path": path, "content": text} for path, text in self.files.items()]
        return {
            "name": f"s-{self.name}",
            "definition": self.name,
            "author": "us",
            "spec": spec,
            "sources": [main, *others],
            "description": "one of ours",
        }


RETURNS = {"destination_passing_style": False}
DOUBLE = "import torch\n\n\ndef run(x):\n    return x + x\n"
INTO = "def solve(x, out):\n    out.copy_(2 * x)\n"
SUMS = "import torch\n\n\ndef run(x):\n    return x.float().sum(-1)\n"
SUMS_INTO = "import torch\n\n\ndef solve(x, out):\n    torch.sum(x.float(), -1, out=out)\n"
SUM = {"out": tensor(["rows"])}
TRITON = """import triton
import triton.language as tl


@triton.jit
def double(x, out, count, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = places < count
    tl.store(out + places, 2 * tl.load(x + places, here), here)


def solve(x, out):
    double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
"""


def _same_dtype(dtype: str) -> Example:
    given, made = {"x": tensor(WHOLE, dtype)}, {"out": tensor(WHOLE, dtype)}
    return Example(dtype, DOUBLE, INTO, given, made)


def _read_dtype(dtype: str) -> Example:
    return Example(dtype, SUMS, SUMS_INTO, {"x": tensor(WHOLE, dtype)}, SUM)


TWENTY = (
    Example(
        "descriptions",
        DOUBLE,
        INTO,
        {"x": tensor(WHOLE, description="the input")},
        {"out": tensor(WHOLE, description="its double")},
        {"rows": {**ROWS, "description": "tokens"}, "cols": {**COLS, "description": "width"}},
        more={
            "tags": ["status:test"],
            "description": "Doubles its input.",
            "constraints": ["rows > 0", "rows % 2 == 0"],
        },
    ),
    Example(
        "defaults_of_types",
        DOUBLE,
        TRITON,
        axes={"rows": {}, "cols": {"value": 64}},
        given={"x": {}},
        spec={"language": "triton"},
    ),
    *(_same_dtype(dtype) for dtype in ("float16", "bfloat16", "int64", "int32", "int16")),
    *(_read_dtype(dtype) for dtype in ("int8", "float8_e4m3fn", "float8_e5m2")),
    Example(
        "bool",
        "def run(x, mask):\n    return (x > 0) & mask\n",
        "import torch\n\n\ndef solve(x, mask, out):\n    torch.logical_and(x > 0, mask, out=out)\n",
        {"x": tensor(WHOLE), "mask": tensor(LINE, "bool")},
        {"out": tensor(WHOLE, "bool")},
    ),
    Example(
        "scalars",
        "def run(x, count, scale, both):\n    return x * scale + count if both else x\n",
        "def solve(x, count, scale, both, out):\n    out.copy_(x * scale + count * both)\n",
        {
            "x": tensor(WHOLE),
            "count": tensor(None, "int32"),
            "scale": tensor(None),
            "both": tensor(None, "bool"),
        },
        given={
            name: {"type": "scalar", "value": value}
            for name, value in (("count", 3), ("scale", 0.5), ("both", True))
        },
        others=({"rows": 1}, {"rows": 200}),
    ),
    Example(
        "two_outputs",
        "def run(x):\n    return x.amax(-1), x.argmax(-1)\n",
        "import torch\n\n\ndef solve(x, top, place):\n    torch.max(x, -1, out=(top, place))\n",
        outputs={"top": tensor(["rows"]), "place": tensor(["rows"], "int64")},
    ),
    Example(
        "outputs_by_name",
        "def run(x):\n    return {'low': x.amin(-1), 'top': x.amax(-1)}\n",
        "def solve(x):\n    low, top = x.aminmax(dim=-1)\n    return {'top': top, 'low': low}\n",
        outputs={"low": tensor(["rows"]), "top": tensor(["rows"])},
        spec=RETURNS,
    ),
    Example(
        "numbers_as_outputs",
        "def run(x):\n    return float(x.abs().max()), int((x > 1).sum())\n",
        "def solve(x):\n    return x.abs().max(), (x > 1).sum().item()\n",
        outputs={"top": tensor(None), "count": tensor(None, "int64")},
        spec=RETURNS,
    ),
    Example(
        "no_axes",
        "def run(x, y):\n    return (x * y).sum()\n",
        "def solve(x, y, out):\n    out.copy_((x * y).sum())\n",
        {"x": tensor(WHOLE), "y": tensor([])},
        {"out": tensor([])},
    ),
    Example(
        "axis_of_an_output_alone",
        "import torch\n\n\ndef run(x):\n    return torch.topk(x, 5).values\n",
        "import torch\n\n\ndef solve(x, out):\n    out.copy_(torch.sort(x, -1, True)[0][:, :5])\n",
        outputs={"out": tensor(["rows", "k"])},
        axes={**AXES, "k": {"type": "var"}},
        sizes={"rows": 96, "k": 5},
    ),
    Example(
        "constants_alone",
        "def run(x, y):\n    return x @ y\n",
        "import torch\n\n\ndef solve(x, y, out):\n    torch.mm(x, y, out=out)\n",
        {"x": tensor(["cols", "cols"]), "y": tensor(["cols", "cols"])},
        {"out": tensor(["cols", "cols"])},
        {"cols": COLS},
        {},
    ),
    Example(
        "stored",
        "def run(x, *stored):\n    return x * sum(item.float() for item in stored)\n",
        "import torch\n\n\ndef solve(x, *given):\n    *stored, out = given\n"
        "    torch.mul(x, sum(item.float() for item in stored), out=out)\n",
        {"x": tensor(WHOLE), **{f"stored_{name}": tensor(LINE, name) for name in STORED}},
        given={
            f"stored_{name}": {
                "type": "safetensors",
                "path": "blob/w.safetensors",
                "tensor_key": name,
            }
            for name in STORED
        },
    ),
    Example(
        "files_and_dependencies",
        DOUBLE,
        "from parts.twice import twice\n\n\ndef solve(x, out):\n    out.copy_(twice(x))\n",
        spec={
            "entry_point": "parts/main.py::solve",
            "dependencies": ["torch"],
            "binding": "torch",
            "destination_passing_style": True,
        },
        files={"parts/twice.py": "def twice(x):\n    return 2 * x\n"},
    ),
)


def write_stored(root: Path) -> None:
    """Write the file of safetensors that a workload names."""
    (root / "blob").mkdir(parents=True, exist_ok=True)
    head, data = {}, b""
    for name, (dtype, content) in STORED.items():
        place = [len(data), len(data) + len(content)]
        head[name] = {"dtype": dtype, "shape": [COUNT], "data_offsets": place}
        data += content
    text = json.dumps(head).encode()
    (root / "blob" / "w.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
