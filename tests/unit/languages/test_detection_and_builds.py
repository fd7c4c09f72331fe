"""Detection, entry points and build plans of candidates."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

import tilewright
from tilewright.errors import ConfigError
from tilewright.languages.base import BuildPlan, Language
from tilewright.languages.built_in import BUILT_IN, CPP, CUDA, TORCH, TRITON
from tilewright.languages.detect import MissingEntry, detect, find_entry, main_first
from tilewright.languages.static_features import static_features
from tilewright.languages.syntax import Unparseable
from tilewright.records import Candidate, SourceFile

BUNDLED = Path(tilewright.__file__).parent / "problems" / "bundled"
PLAIN = "import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n"
ABI = '#include "tilewright.h"\nextern "C" int softmax(const tw_tensor* in, int n) { return 0; }\n'
INLINE = "from torch.utils.cpp_extension import load_inline\n"


USES_TRITON = "import triton\nkernel = triton.jit(print)"


def files(**texts: str) -> tuple[SourceFile, ...]:
    """Files by name, `__` for a folder and `_` before the ending for a dot."""
    return tuple(
        SourceFile(path=".".join(name.replace("__", "/").rsplit("_", 1)), text=dedent(text))
        for name, text in texts.items()
    )


def candidate(language: str, **texts: str) -> Candidate:
    return Candidate(language=language, files=files(**texts), entry="softmax")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN, "torch"),
        ("", "torch"),
        ("x = 'import triton'  # import triton", "torch"),
        ("from json import load\nload('x.cu')", "torch"),
        ("import triton\n@triton.jit\ndef f():\n    pass", "triton"),
        ("import triton.language as tl\nn = tl.constexpr(4)", "triton"),
        ("def f():\n    from triton import jit\n    return jit(f)", "triton"),
        ("import triton as t\nkernel = getattr(t, 'jit')(f)", "triton"),
        ("import triton\nimport triton.language as tl", "torch"),
        ("import triton\nn = triton.cdiv(7, 2)", "torch"),
        ("from triton import next_power_of_2\nn = next_power_of_2(7)", "torch"),
        ("import triton\nn = triton.cdiv(7, 2)\nk = triton.jit(f)", "triton"),
        ("import importlib as il\nil.import_module('triton.language')", "triton"),
        ("t = __import__('tri' + 'ton')", "triton"),
        ("import tritonish", "torch"),
        (INLINE + "load_inline('m', cpp_sources='', cuda_sources='k')", "cuda"),
        (INLINE + "load_inline('m', '', 'k')", "cuda"),
        (INLINE + "load_inline('m', '', [])", "cpp"),
        (INLINE + "load_inline('m', '', None)", "cpp"),
        (INLINE + "load_inline(name='m', cpp_sources=['x'])", "cpp"),
        (INLINE + "load_inline('m', '', functions=['f'], with_cuda=True)", "cuda"),
        (INLINE + "load_inline(*arguments)", "cpp"),
        (INLINE + "load_inline('m', **{'cuda_sources': 'k'})", "cuda"),
        (INLINE + "load_inline('m', **dict(cuda_sources='k'))", "cuda"),
        (INLINE + "load_inline('m', **options)", "cpp"),
        ("from torch.utils import cpp_extension as e\ne.load('m', ['a.cpp', 'b.cu'])", "cuda"),
        ("import torch\ntorch.utils.cpp_extension.load('m', sources=['a.cpp'])", "cpp"),
        ("import torch.utils.cpp_extension as e\nbuild = e.load\nbuild('m', [x + '.cu'])", "cuda"),
        ("import torch\ngetattr(torch.utils.cpp_extension, 'load')('m', ['a.cpp'])", "cpp"),
    ],
)
def test_python_is_recognised_by_its_tree(text, expected):
    assert expected == detect(files(kernel_py=text))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"kernel_cpp": ABI}, "cpp"),
        ({"kernel_cc": ABI}, "cpp"),
        ({"kernel_cu": ABI}, "cuda"),
        ({"kernel_cpp": ABI, "more_cu": ""}, "cuda"),
        ({"kernel_py": PLAIN, "more_cu": ""}, "cuda"),
        ({"kernel_py": PLAIN, "more_cpp": ""}, "cpp"),
        ({"kernel_py": USES_TRITON, "more_cu": ""}, "triton"),
        ({"kernel_cu": ABI, "try_py": USES_TRITON}, "cuda"),
        ({"kernel_py": PLAIN, "inner_py": USES_TRITON}, "triton"),
    ],
)
def test_a_folder_is_recognised_by_its_files(texts, expected):
    assert expected == detect(files(**texts))


def test_every_bundled_candidate_is_detected_as_its_language():
    paths = sorted(BUNDLED.glob("*/candidates/*.*"))
    assert paths
    for path in paths:
        file = SourceFile(path=path.name, text=path.read_text(encoding="utf-8"))
        assert path.name.partition("_")[0] == detect([file]), path


def test_a_forced_language_is_used_where_the_file_allows_it():
    assert detect(files(kernel_py=PLAIN), forced="triton") == "triton"
    assert detect(files(kernel_cpp=ABI), forced="cuda") == "cuda"


@pytest.mark.parametrize(
    ("texts", "forced", "message"),
    [
        ({"kernel_py": PLAIN}, "mojo", "no language is called 'mojo'; known: triton, cuda, cpp"),
        ({"kernel_cpp": ABI}, "torch", r"kernel.cpp: a torch candidate starts with one of \.py"),
        ({"notes_txt": "hello"}, None, "notes.txt: no language has such files; known endings"),
        ({}, None, "at least one file"),
    ],
)
def test_a_candidate_of_no_known_language_is_a_config_error(texts, forced, message):
    with pytest.raises(ConfigError, match=message):
        detect(files(**texts), forced)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def softmax(:\n", "line 1: invalid syntax"),
        ("x = '\0'", "null bytes"),
        ("(" * 300 + ")" * 300, "too many nested parentheses"),
        ("x" + ".a" * 100_000, "recursion"),
    ],
)
@pytest.mark.parametrize("forced", [None, "torch"])
def test_python_that_does_not_parse_is_a_result(text, message, forced):
    given = files(helper_py=PLAIN, broken_py=text)
    found = detect(given, forced)

    assert isinstance(found, Unparseable)
    assert found.path == "broken.py"
    assert message in found.message
    assert found == find_entry(given[::-1], "softmax")
    assert static_features(given).unparseable[0].startswith("broken.py: ")


def test_invalid_escapes_of_a_candidate_give_no_warning():
    assert detect(files(kernel_py=r"x = '\d \8'")) == "torch"


def test_a_plug_in_language_is_detected_by_its_priority():
    class Halide:
        name, suffixes, loader = "halide", (".hl",), "python"

        def matches(self, files):
            return files[0].path.endswith(".hl")

        def plan(self, candidate):
            return BuildPlan(kind="none", loader=self.loader, sources=candidate.files)

    assert isinstance(Halide(), Language)
    assert detect(files(kernel_hl=""), languages=(Halide(), *BUILT_IN)) == "halide"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN, "softmax"),
        ("def softmax(): ...\nclass ModelNew: ...", "ModelNew"),
        ("softmax = other = None", "softmax"),
        ("(softmax, other) = 1, 2", "softmax"),
        ("softmax: int = 1", "softmax"),
        ("import numpy as softmax", "softmax"),
        ("from .impl import softmax", "softmax"),
        ("if True:\n    def softmax(): ...", "softmax"),
        ("try:\n    pass\nexcept OSError:\n    softmax = 1", "softmax"),
        ("match 1:\n    case 1:\n        softmax = 1", "softmax"),
        ("async def softmax(): ...", "softmax"),
        ("from elsewhere import *", "softmax"),
        ("exec('def softmax(): ...')", "softmax"),
        ("globals()['softmax'] = print", "softmax"),
        ("def __getattr__(name): ...", "softmax"),
    ],
)
def test_the_entry_point_is_found(text, expected):
    assert expected == find_entry(files(kernel_py=text), "softmax")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "softmax: int",
        "def f():\n    softmax = 1",
        "class A:\n    def softmax(self): ...",
        "# def softmax(): ...",
        "x.softmax = 1",
    ],
)
def test_a_file_without_the_entry_point_is_refused(text):
    found = find_entry(files(kernel_py=text), "softmax")
    assert isinstance(found, MissingEntry)
    assert found.path == "kernel.py"
    assert found.message.startswith("it defines neither `ModelNew` nor `softmax`; it defines ")


def test_a_missing_entry_point_lists_the_defined_names():
    text = "".join(f"def f{number}(): ...\n" for number in range(20)) + "_hidden = 1"
    found = find_entry(files(kernel_py="import torch\n" + text), "softmax")
    assert isinstance(found, MissingEntry)
    listed = ", ".join(f"`f{number}`" for number in range(12))
    assert f"it defines {listed}, ...; " not in found.message
    assert found.message.endswith(f"it defines {listed}, .... Rename one of them to `softmax`")
    single = find_entry(files(kernel_py="def mine(): ..."), "softmax", "yours")
    assert isinstance(single, MissingEntry)
    assert single.message.endswith("it defines `mine`. Rename it to `yours`")
    with pytest.raises(ConfigError, match="at least one file"):
        find_entry((), "softmax")


def test_a_forced_entry_point_takes_precedence():
    given = files(kernel_py="class ModelNew: ...\ndef mine(): ...")

    assert find_entry(given, "softmax", "mine") == "mine"
    found = find_entry(given, "softmax", "yours")
    assert isinstance(found, MissingEntry)
    assert found.message.startswith("it does not define `yours`; it defines `ModelNew`, `mine`")


def test_names_of_star_imported_files_count_as_defined():
    given = (
        SourceFile(path="main.py", text="from impl import *\nfrom .pack import *"),
        SourceFile(path="impl.py", text="from main import *\ndef softmax(): ..."),
        SourceFile(path="pack/__init__.py", text="def other(): ..."),
    )

    assert find_entry(given, "softmax") == "softmax"
    assert find_entry(given, "softmax", "other") == "other"
    found = find_entry(given, "third")
    assert isinstance(found, MissingEntry)
    assert "defines `other`, `softmax`" in found.message


@pytest.mark.parametrize(
    "text",
    [
        ABI,
        'extern "C" {\nint helper(int a);\nint softmax (int a) { return 0; }\n}',
        '#define EXPORT extern "C"\nEXPORT int softmax(int a) { return 0; }',
        'exte\\\nrn "C" int soft\\\nmax(int a) { return 0; }',
    ],
)
def test_the_entry_point_of_a_c_abi_kernel_is_found(text):
    assert find_entry(files(kernel_cpp=text), "softmax") == "softmax"


@pytest.mark.parametrize(
    "text",
    [
        "int softmax(int a) { return 0; }",
        '/* extern "C" int softmax(int a); */ extern "C" int other(int a);',
        'extern "C" int other(int a) { puts("softmax(x)"); puts(R"(softmax(x))"); return \'"\'; }',
        "extern \"C\" int other(int a); // softmax(\nchar quote = '\\'';",
    ],
)
def test_a_c_abi_kernel_without_the_entry_point_is_refused(text):
    found = find_entry(files(kernel_cpp=text), "softmax")
    assert isinstance(found, MissingEntry)
    assert re.search(r"defines (`other`|nothing)", found.message)


def test_the_file_that_defines_the_entry_point_comes_first():
    given = files(
        alpha_py="import torch", kernel_cpp=ABI, broken_py="def softmax(:", model_py=PLAIN
    )

    assert _paths(main_first(given, "softmax")) == [
        "model.py",
        "alpha.py",
        "kernel.cpp",
        "broken.py",
    ]
    assert _paths(main_first(given[:2], "softmax")) == ["kernel.cpp", "alpha.py"]
    assert _paths(main_first(given[1::-1], "other")) == ["alpha.py", "kernel.cpp"]
    assert main_first((), "softmax") == ()


def test_python_needs_no_build():
    expected = BuildPlan(kind="none", loader="python")

    assert expected == TORCH.plan(candidate("torch", kernel_py=PLAIN))
    assert expected == TRITON.plan(candidate("triton", kernel_py="import triton"))


@pytest.mark.parametrize("language", BUILT_IN, ids=lambda each: each.name)
def test_python_that_builds_an_extension_is_built_by_itself(language):
    given = candidate(language.name, kernel_py=INLINE + "load_inline('m', '')", helper_h="")
    plan = language.plan(given)

    assert (plan.kind, plan.loader, plan.command, plan.units) == ("extension", "python", (), ())
    assert given.files == plan.sources


def test_a_c_abi_kernel_is_built_as_the_reference_says():
    plan = CPP.plan(candidate("cpp", kernel_cpp=ABI))

    assert "c_abi" == plan.kind == plan.loader == CPP.loader
    command = "g++ -O3 -march=native -fopenmp -shared -fPIC -std=c++17"
    assert command.split() == list(plan.compiler())
    assert plan.units == ("kernel.cpp",)


def test_a_single_cuda_file_is_built_for_the_device():
    plan = CUDA.plan(candidate("cuda", kernel_cu=ABI, host_cpp=""))

    assert "c_abi" == plan.kind == plan.loader
    assert "-arch=sm_90" in plan.compiler("sm_90")
    assert plan.units == ("kernel.cu", "host.cpp")


def test_a_source_that_another_one_includes_is_not_compiled_alone():
    plan = CPP.plan(
        candidate(
            "cpp",
            kernel_cpp='#include "src/impl.cpp"\n#include "kernel.cpp"\n// #include "other.cpp"',
            src__impl_cpp='#include "../deep.cc"',
            deep_cc="",
            other_cpp="",
        )
    )

    assert plan.units == ("kernel.cpp", "other.cpp")
    assert len(plan.sources) == 4


def test_the_first_file_is_compiled_in_any_case():
    plan = CPP.plan(candidate("cpp", kernel_cpp="", other_cpp='#include "kernel.cpp"'))

    assert plan.units == ("kernel.cpp", "other.cpp")


@pytest.mark.parametrize(("language", "name"), [(TORCH, "a_cpp"), (CPP, "a_cu"), (CUDA, "a_hl")])
def test_a_plan_for_a_file_of_another_language_is_refused(language, name):
    with pytest.raises(ConfigError, match=rf"a {language.name} candidate starts with"):
        language.plan(candidate(language.name, **{name: ABI}))


def test_the_digest_of_a_plan_follows_its_parts():
    plan = CPP.plan(candidate("cpp", kernel_cpp=ABI))

    assert plan.digest() == CPP.plan(candidate("cpp", kernel_cpp=ABI)).digest()
    others = [
        CPP.plan(candidate("cpp", kernel_cpp=ABI + "//")),
        CPP.plan(candidate("cpp", other_cpp=ABI)),
        CPP.plan(candidate("cpp", kernel_cpp=ABI, helper_h="")),
        plan.model_copy(update={"command": (*plan.command, "-g")}),
        plan.model_copy(update={"kind": "extension"}),
    ]
    assert len({plan.digest(), *(other.digest() for other in others)}) == 6


@pytest.mark.parametrize("language", BUILT_IN, ids=lambda each: each.name)
def test_our_languages_keep_the_protocol(language):
    assert isinstance(language, Language)
    assert language.loader in ("python", "c_abi")


def _paths(given):
    return [file.path for file in given]
