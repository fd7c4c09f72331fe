"""Static facts of candidates, and bounded work on hostile text."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tilewright.languages.detect import MissingEntry, detect, find_entry
from tilewright.languages.static_features import MAX_SIGHTINGS, StaticFeatures, static_features
from tilewright.records import SourceFile

INLINE = "from torch.utils.cpp_extension import load_inline\n"


def files(**texts: str) -> tuple[SourceFile, ...]:
    """Files by name, with `_` before the ending for a dot."""
    return tuple(
        SourceFile(path=".".join(name.rsplit("_", 1)), text=dedent(text))
        for name, text in texts.items()
    )


# Facts. Each source is one small file; each expectation is `name` or `name:line`.
TRITON_KERNELS = """
    import triton, triton.language as tl
    from triton import jit as compiled, autotune
    @triton.jit
    def helper(x): return tl.exp(x)
    @autotune(configs=[], key=[])
    @compiled(noinline=True)
    def first(x): tl.store(x, helper(tl.dot(x, x)))
    @triton.jit
    def second(x): pass
    @triton.jit
    def third(x): pass
    @triton.jit
    def never(x): pass
    made = triton.jit(plain)
    def launch(kernel, x): kernel[(1,)](x)
    class ModelNew:
        def __init__(self): self.kernel = second
        def forward(self, x):
            first[(1,)](x)
            self.kernel[(1,)](x)
            made.run(x)
            launch(third, x)
"""

FACTS = [
    ("torch_ops", "import torch.nn.functional as F\nF.softmax(x)", "softmax:2"),
    ("torch_ops", "from torch import matmul as m\nm(a, b)", "matmul"),
    ("torch_ops", "import torch\ntorch.ops.aten.mm.default(a, b)", "mm"),
    ("torch_ops", "y = a @ b", "matmul"),
    ("torch_ops", "a @= b", "matmul"),
    ("torch_ops", "x.exp_()", "exp"),
    ("torch_ops", "import torch\ngetattr(torch, 'conv' + '2d')(x)", "conv2d"),
    ("torch_ops", "import torch\nvars(torch)['relu'](x)", "relu"),
    ("torch_ops", "import torch\ntorch.__dict__['relu'](x)", "relu"),
    ("torch_ops", "import sys\nsys.modules['torch'].relu(x)", "relu"),
    ("torch_ops", "__import__('torch').nn.functional.gelu(x)", "gelu"),
    ("torch_ops", "import torch.nn as nn\nself.a = nn.Linear(1, 1)\nself.a(x)", "nn.Linear:3"),
    ("torch_modules", "from torch import nn\nself.a = nn.Conv2d(1, 1, 1)", "nn.Conv2d"),
    ("fallbacks", "import torch\ntry: f()\nexcept OSError: y = torch.mm(a, b)", "mm:3"),
    (
        "fallbacks",
        """
        import torch
        class A:
            def slow(self, x): return torch.softmax(x, 0)
            def forward(self, x):
                try: return kernel(x)
                except Exception: return self.slow(x)
        """,
        "softmax:7",
    ),
    ("fallbacks", "from contextlib import suppress\nwith suppress(OSError): f()", "contextlib.sup"),
    ("compiled", "import torch\n@torch.compile\ndef f(): ...", "torch.compile"),
    ("compiled", "import torch\ng = torch.cuda.CUDAGraph()", "torch.cuda.CUDAGraph"),
    ("streams", "import torch\ntorch.cuda.Stream()", "torch.cuda.Stream"),
    ("concurrency", "from threading import Thread as T\nT(target=f)", "threading.Thread"),
    ("concurrency", "import _thread\n_thread.start_new_thread(f, ())", "_thread.start_new_thread"),
    ("concurrency", "import os\nos.fork()", "os.fork"),
    ("concurrency", "import subprocess as s\ns.run([])", "subprocess.run"),
    ("native_access", "import ctypes\nctypes.CDLL(None)", "ctypes.CDLL"),
    ("network", "import urllib.request\nurllib.request.urlopen(u)", "urllib.request.urlopen"),
    ("file_access", "open('x')", "open"),
    ("proc_access", "open('/pr' + 'oc/self/mem')", "/proc/self/mem"),
    ("proc_access", "p = f'/proc/{pid}/fd'", "/proc/"),
    ("introspection", "import sys\nsys._getframe(1)", "sys._getframe"),
    ("introspection", "import gc\nfor o in gc.get_objects(): ...", "gc.get_objects"),
    ("introspection", "import inspect\ninspect.stack()", "inspect.stack"),
    ("patches", "import torch\ntorch.allclose = f", "torch.allclose"),
    ("patches", "import torch\na, torch.cuda.Event.record = 1, f", "torch.cuda.Event.record"),
    ("patches", "import torch.cuda as cu\ncu.synchronize = f", "torch.cuda.synchronize"),
    ("patches", "import torch\ncu = torch.cuda\nE = cu.Event\nE.x = f", "torch.cuda.Event.x"),
    ("patches", "import time\nsetattr(time, 'perf' + '_counter', f)", "time.perf_counter"),
    ("patches", "import time\nsetattr(time, name, f)", "time.?"),
    ("patches", "import torch\nobject.__setattr__(torch, 'mm', f)", "torch.mm"),
    ("patches", "import torch\ntorch.__dict__[k] = f", "torch.?"),
    ("patches", "import torch\nvars(torch).update(mm=f)", "torch.?"),
    ("patches", "import torch\ntorch.__dict__.update(mm=f)", "torch.?"),
    ("patches", "import triton\ndel triton.testing.do_bench", "triton.testing.do_bench"),
    ("patches", "import torch\nlib = torch.library.Library('aten', 'IMPL')", "torch.library.Lib"),
    ("global_flags", "import torch\ntorch.backends.cudnn.allow_tf32 = 1", "torch.backends.cudnn"),
    ("global_flags", "import torch\ntorch.backends.cuda.enable_math_sdp(1)", "torch.backends.cuda"),
    ("global_flags", "import torch\ntorch.set_default_dtype(d)", "torch.set_default_dtype"),
    ("global_flags", "import os\nos.environ['X'] = '1'", "os.environ.X"),
    ("global_flags", "import os\nos.environ[k] = '1'", "os.environ.?"),
    ("dynamic_code", "exec(text)", "exec"),
    ("dynamic_code", "import builtins\nbuiltins.eval(text)", "eval"),
    ("dynamic_code", "from importlib import import_module\nimport_module(n)", "importlib.import"),
    ("assembled_names", "import torch\ngetattr(torch, 'm' + 'm')", "getattr torch.mm"),
    ("assembled_names", "getattr(x, ''.join(['a', 'b']))", "getattr ab"),
    ("assembled_names", "getattr(x, f'a{\"b\"}')", "getattr ab"),
    ("assembled_names", "getattr(x, f'a{b:2}')", "getattr ?"),
    ("assembled_names", "getattr(x, name)", "getattr ?"),
    ("assembled_names", "__import__('to' 'rch' + '')", "import torch"),
    ("assembled_names", "import importlib\nimportlib.import_module(n)", "import ?"),
    ("decoding", "import base64\nbase64.b64decode(t)", "base64.b64decode"),
    ("decoding", "bytes.fromhex(t)", "bytes.fromhex"),
    ("decoding", f"x = '{'ab' * 70}'", "literal of 140 characters"),
    ("decoding", f"x = {bytes(range(256))!r}", "literal of 256 bytes"),
    ("extensions", INLINE + "load_inline('m', '', 'k')", "load_inline cuda:2"),
]  # fmt: skip

NATIVE_FACTS = [
    ("aten_calls", "auto y = at::matmul(a, b);", "at::matmul"),
    ("aten_calls", "auto y = torch::nn::functional :: gelu(a); c10::cuda::f(a);", "c10::cuda::f"),
    ("aten_calls", "auto y = a.softmax(-1);", "Tensor.softmax"),
    ("aten_calls", "auto y = a->mm(b);", "Tensor.mm"),
    ("library_calls", "cublasSgemm_v2(h);", "cublasSgemm_v2"),
    ("library_calls", "sgemm_(a);", "sgemm_"),
    ("library_calls", "cblas_sgemm(a);", "cblas_sgemm"),
    ("concurrency", "std::thread t(f);", "std::thread"),
    ("concurrency", "pthread_create(&t, 0, f, 0);", "pthread_create"),
    ("concurrency", "if (fork () == 0) {}", "fork"),
    ("streams", "cudaStreamCreateWithFlags(&s, 1);", "cudaStreamCreateWithFlags"),
    ("native_access", "dlsym(h, name);", "dlsym"),
    ("native_access", "__attribute__((constructor)) void f() {}", "constructor"),
    ("network", "socket(1, 2, 3);", "socket"),
    ("file_access", 'fopen("x", "r");', "fopen"),
    ("proc_access", 'f("/proc/self/maps");', "/proc/self/maps"),
    ("global_flags", "_MM_SET_FLUSH_ZERO_MODE(1);", "_MM_SET_FLUSH_ZERO_MODE"),
    ("assembly", 'asm volatile("mov");', "asm"),
    ("outside_includes", '#include "/etc/passwd"', "/etc/passwd"),
    ("outside_includes", "# include <../x.h>", "../x.h"),
    ("outside_includes", 'asm(".incbin \\"x\\"");', ".incbin"),
    ("token_pasting", "#define J(a, b) a##b", "a##b"),
    ("token_pasting", "#define J(a, b) a %:%: b", "a %:%: b"),
    ("kernels_defined", "__global__ void add(float* x) {}", "add"),
    ("kernels_defined", "__global__ void __launch_bounds__(256) add (int n) {}", "add"),
    ("kernels_launched", "add<float><<<1, 2>>>(x);", "add"),
]


@pytest.mark.parametrize(("field", "text", "expected"), FACTS)
def test_facts_of_python(field, text, expected):
    assert shown(static_features(files(kernel_py=text)), field, expected)


@pytest.mark.parametrize(("field", "text", "expected"), NATIVE_FACTS)
def test_facts_of_native_source(field, text, expected):
    assert shown(static_features(files(kernel_cu="\n" + text)), field, f"{expected}:2")


@pytest.mark.parametrize(("field", "text", "expected"), NATIVE_FACTS)
def test_native_source_in_python_strings_is_read_too(field, text, expected):
    inside = f"#include <torch/extension.h>\n{text}"
    features = static_features(files(kernel_py=f"x = 1\ny = {inside!r}"))

    assert shown(features, field, f"{expected}:3")


def test_kernels_and_how_they_are_used():
    features = static_features(files(kernel_py=TRITON_KERNELS))

    defined = ["helper", "first", "second", "third", "never", "made"]
    assert defined == [sighting.name for sighting in features.kernels_defined]
    assert {"first", "second", "made"} == _names(features, "kernels_launched")
    assert {"helper"} == _names(features, "kernels_called")
    assert {"third"} == _names(features, "kernels_passed")
    assert not features.torch_ops


@pytest.mark.parametrize(
    "text",
    [
        "import numpy as np\nnp.sum(x); np.exp(x)",
        "import math\nmath.exp(1.0)",
        "', '.join(x); [].sort(); set().add(1)",
        "self.softmax(x)",
        "import kernels\nkernels.softmax(x)",
        INLINE + "ext = load_inline('m', '')\nself.own = load_inline('n', '')\next.softmax(x)",
        INLINE + "self.own = load_inline('n', '')\nself.own.softmax(x)",
        "import torch\ntorch.empty(3); torch.ops.mine.softmax(x); x.view(3); torch.float32",
        "import triton\n@triton.jit\ndef k(x):\n    y = x @ x\n    return x.sum()",
        "model.eval(); import_re = __name__",
        "import re\nre.compile('x')",
        "def compile(x): ...\ncompile(1)",
        "getattr(x, 'y'); hasattr(x, 'z')",
        "self.weight = x; config['a'] = 1; x.data[0] = 1",
        "import os\nprint(os.environ['HOME'], os.path.join('a', 'b'))",
        "import torch\nprint(torch.backends.cudnn.enabled)",
        "settings.update(a=1); setattr(self, 'x', 1)",
        "words = 'an ordinary sentence, ' * 40; path = 'x/proc'; '''about process /processor'''",
        "try:\n    import triton\nexcept ImportError:\n    triton = None",
    ],
)
def test_honest_source_has_no_suspicious_fact(text):
    features = static_features(files(kernel_py=text))
    empty = StaticFeatures(
        imports=features.imports,
        extensions=features.extensions,
        kernels_defined=features.kernels_defined,
    )

    assert empty == features


def test_comments_and_strings_of_native_source_are_ignored():
    text = '// at::mm(a) asm\n/* cublasSgemm( */ f("std::thread at::mm(a)"); char c = \'"\';'

    assert StaticFeatures() == static_features(files(kernel_cpp=text))


def test_imports_are_listed():
    text = "import torch.nn as nn, os\nfrom . import a\nfrom .b.c import d\n__import__('e' + 'f')"
    expected = (".", ".b.c", "ef", "os", "torch.nn")

    assert expected == static_features(files(kernel_py=text)).imports


def test_facts_name_file_and_line_and_are_bounded():
    text = "exec(a)\n" * (MAX_SIGHTINGS + 5)
    features = static_features(files(one_py="\nexec(a); exec(b)", two_py=text))

    first = features.dynamic_code[0]
    assert (first.name, first.path, first.line) == ("exec", "one.py", 2)
    assert (features.dynamic_code[1].path, features.dynamic_code[1].line) == ("two.py", 1)
    assert len(features.dynamic_code) == MAX_SIGHTINGS
    assert features == StaticFeatures.from_json(features.to_json())


@pytest.mark.parametrize(
    "text",
    [
        "x = torch" + ".a('b')" * 900,
        "getattr(" * 150 + "x" + ", 'a')" * 150,
        "''.join([" * 80 + "])" * 80,
        "'a'" + " + 'b'" * 900,
        "f(" * 150 + ")" * 150,
        "x" + "[0]" * 900,
    ],
)
def test_deep_source_is_read_without_a_deep_stack(text):
    given = files(kernel_py="import torch\n" + text)

    assert detect(given) == "torch"
    assert static_features(given).imports == ("torch",)


@pytest.mark.parametrize(
    "piece",
    [
        "/*",
        '"',
        'R"x(',
        "a",
        "at::",
        "__global__ a ",
        'extern "C" a',
        "\\\n",
        "\n",
        " ",
        "##",
        "a<",
    ],
)
def test_hostile_native_source_is_read_in_linear_time(piece):
    given = files(kernel_cpp=piece * (100_000 // len(piece)))

    # Quadratic time would be tens of seconds here, beyond the limit of any test.
    static_features(given)
    assert isinstance(find_entry(given, "softmax"), MissingEntry)


def _names(features, field):
    return {sighting.name for sighting in getattr(features, field)}


def shown(features, field, expected):
    """Whether `field` has a sighting that begins with `NAME` of `NAME[:LINE]`, and is at LINE."""
    name, _, line = expected.rpartition(":") if expected[-1].isdigit() else (expected, "", "")
    name, line = (name, line) if name and line.isdigit() else (expected, "")
    seen = [(each.name, str(each.line)) for each in getattr(features, field)]
    return any(has.startswith(name) and (not line or at == line) for has, at in seen)
