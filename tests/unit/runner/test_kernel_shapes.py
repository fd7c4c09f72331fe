"""How kernels were compiled and launched: of compiled Triton kernels, and of a profiler's trace."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from tilewright.evaluator.runners.messages import ShapeReport
from tilewright.runner.kernel_shapes import MAX_SHAPES, shapes_in_trace, shapes_of
from tilewright.runner.launch_counter import MAX_LAUNCHES, Launches

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


def compiled(**changes):
    fields = {
        "metadata": SimpleNamespace(name="rows", num_warps=4, shared=2048),
        "n_regs": 40,
        "n_spills": 3,
        "asm": {"ptx": "ld.global.f32 %f1;"},
    }
    return SimpleNamespace(**{**fields, **changes})


def test_a_shape_has_the_figures_of_the_compiler_and_the_size_of_the_launch():
    assert shapes_of([(compiled(), (6, 2, 1))]) == [
        {
            "name": "rows",
            "blocks": 12,
            "threads": 128,
            "registers": 40,
            "shared_bytes": 2048,
            "spilled_bytes": 12,
            "tensor_cores": False,
        }
    ]


def test_the_code_of_a_kernel_shows_whether_it_uses_tensor_cores():
    kernel = compiled(asm={"ptx": "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"})
    assert shapes_of([(kernel, (1, 1, 1))])[0]["tensor_cores"] is True


@pytest.mark.parametrize(
    ("kernel", "missing"),
    [
        (compiled(n_regs=None, n_spills=None), ("registers", "spilled_bytes")),
        (compiled(asm=None), ("tensor_cores",)),
        (compiled(asm={}), ("tensor_cores",)),
        (compiled(metadata=SimpleNamespace(num_warps=1)), ("shared_bytes",)),
    ],
)
def test_figures_that_a_release_does_not_report_are_left_out(kernel, missing):
    (shape,) = shapes_of([(kernel, (1, 1, 1))])
    assert [shape[name] for name in missing] == [None] * len(missing)
    ShapeReport(**shape)


@pytest.mark.parametrize(
    ("kernel", "grid"),
    [(object(), (1, 1, 1)), (compiled(), ()), (compiled(), ("a",)), (compiled(), (0, 1, 1))],
)
def test_a_launch_of_unknown_size_has_no_shape(kernel, grid):
    assert shapes_of([(kernel, grid)]) == []


def test_equal_launches_are_one_shape_and_their_number_is_limited():
    kernel = compiled()
    assert len(shapes_of([(kernel, (2, 1, 1))] * 3 + [(kernel, (3, 1, 1))])) == 2
    assert len(shapes_of([(kernel, (size, 1, 1)) for size in range(1, 100)])) == MAX_SHAPES


def test_the_trace_of_a_profiler_has_the_first_launch_of_each_kernel(tmp_path):
    figures = {"grid": [8, 2, 1], "block": [128, 2, 1], "registers per thread": 64}
    events = [
        {"cat": "kernel", "name": "gemm", "args": {**figures, "shared memory": 49152}},
        {"cat": "kernel", "name": "gemm", "args": {**figures, "grid": [1, 1, 1]}},
        {"cat": "cpu_op", "name": "aten::mm", "args": figures},
        {"cat": "kernel", "name": "no size", "args": {"grid": "?"}},
        {"cat": "kernel", "name": "no figures"},
        {"name": "metadata"},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    assert shapes_in_trace(path) == {
        "gemm": {
            "name": "gemm",
            "blocks": 16,
            "threads": 256,
            "registers": 64,
            "shared_bytes": 49152,
        }
    }
    path.write_text("[]")
    assert shapes_in_trace(path) == {}


def test_only_launches_of_a_profiled_call_are_kept():
    class Kernel:
        src = SimpleNamespace(fn=SimpleNamespace(__module__="candidate"))
        metadata = SimpleNamespace(name="rows", num_warps=4, shared=0)

        @property
        def run(self):
            return lambda *args: args

    launches = Launches(suppress=False)
    launches.hook_compiled(Kernel)
    kernel = Kernel()
    kernel.run(1, 1, 1, "stream")
    assert launches.launched == []
    event = SimpleNamespace(elapsed_time=lambda _: 1.0)
    with launches.spanned(lambda: event):
        for _ in range(MAX_LAUNCHES + 1):
            kernel.run(5, 1, 1, "stream")
    assert len(launches.launched) == MAX_LAUNCHES
    assert [item["blocks"] for item in shapes_of(launches.launched)] == [5]


def test_triton_compiles_a_kernel_with_the_attributes_that_a_shape_reads(monkeypatch):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.runtime.jit import JITFunction

    # Triton warns otherwise, and a warning fails a test.
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    source = ASTSource(
        fn=JITFunction(_product),
        signature={"out": "*fp32", "left": "*fp16", "right": "*fp16", "SIZE": "constexpr"},
        constexprs={"SIZE": 64},
    )
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    (shape,) = shapes_of([(kernel, (7, 1, 1))])
    assert (shape["blocks"], shape["threads"], shape["tensor_cores"]) == (7, 128, True)
    assert shape["shared_bytes"] > 0


def _product(out, left, right, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + at, tl.dot(tl.load(left + at), tl.load(right + at)))
