"""The reply parser never raises and finds planted code."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.languages.reply_parser import parse_reply

CODE = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n"
DRAFT = CODE.replace("-1", "0")
NATIVE = '#include "tilewright.h"\nextern "C" int softmax(const tw_tensor* in) { return 0; }\n'
BROKEN = "def softmax(x:\n    return\n"

PROSE = st.text(string.ascii_letters + string.digits + " .,;:!?()[]*_#-'\"\n=/", max_size=300)
MARKUP = st.lists(
    st.sampled_from(
        [
            *("```", "````", "~~~", "python", "cpp", " a.py", "\n", "<think>", "</think>", "  "),
            *("# file: a.py\n", "// file: ../b.cpp\n", "title=", '"', CODE, NATIVE, BROKEN),
            *("\ud800", "\0", "text", "def softmax", "(", ")", "{", "\r\n"),
        ]
    ),
    max_size=30,
).map("".join)
ANYTHING = st.text(st.characters(exclude_categories=()), max_size=200)


@given(ANYTHING | MARKUP, st.sampled_from(["softmax", "ModelNew", "", "a.*b["]))
def test_arbitrary_text_never_raises_and_gives_usable_files(text, entry):
    parsed = parse_reply(text, entry)

    assert parsed.reason.isprintable() or "\0" in entry
    paths = [file.path for file in parsed.files]
    assert len(set(paths)) == len(paths)
    assert all(file.text.encode() is not None for file in parsed.files)
    assert parsed == parse_reply(text, entry)


@given(
    PROSE, PROSE, st.sampled_from(["```", "````", "~~~~"]), st.sampled_from(["", "python", "Py"])
)
def test_a_planted_block_is_found_in_any_prose(before, after, fence, tag):
    parsed = parse_reply(f"{before}\n{fence}{tag}\n{CODE}{fence}\n{after}", "softmax")

    assert _files(parsed) == [("candidate.py", CODE)]


@given(PROSE, PROSE, st.sampled_from(["def other(): ...", "x = 1", "pip install", "{}"]))
def test_blocks_around_it_do_not_hide_it(before, after, noise):
    other = f"```python\n{noise}\n```\n"
    parsed = parse_reply(f"{before}\n{other}```python\n{CODE}```\n{after}\n{other}", "softmax")

    assert _files(parsed) == [("candidate.py", CODE)]


@given(PROSE)
def test_an_indented_block_loses_its_margin(before):
    block = "".join(f"   {line}\n" for line in f"```python\n{CODE}```".split("\n"))

    assert _files(parse_reply(f"{before}\n{block}", "softmax")) == [("candidate.py", CODE)]


def block(code: str, info: str = "python") -> str:
    return f"```{info}\n{code}```\n"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (block(DRAFT) + block(CODE), CODE),
        (block(CODE) + block(DRAFT, ""), CODE),
        (block(CODE) + block(DRAFT, "text"), CODE),
        (block(CODE, "") + block("x = 1\n"), CODE),
        (block(CODE) + block("def helper(): ...\n"), CODE),
        (block(CODE) + f"```python\n{DRAFT}", CODE),
        (block(CODE) + block(BROKEN), CODE),
        (block("x = 1\n") + block(BROKEN), BROKEN),
        (f"I would write\n```python\n{CODE}", CODE + "\n"),
        (f"<think>\n{block(DRAFT)}</think>\n{block(CODE)}", CODE),
        (f"{block(CODE)}<think>\n{block(DRAFT)}</think>\n", CODE),
        (f"Hm.\n{block(DRAFT)}</think>\n{block(CODE)}", CODE),
        (f"{block(CODE)}<think>\n{block(DRAFT)}", CODE),
        (f"<THINKING><think>{block(DRAFT)}</thinking>{block(CODE)}", CODE),
        (f"~~~python\n{CODE}~~~\n", CODE),
        (f"````python\n{CODE}````\n", CODE),
        (block(CODE).replace("\n", "\r\n"), CODE),
        (f"`````\n```python\n{DRAFT}```\n`````\n{block(CODE)}", CODE),
        (CODE, CODE),
        (f"<think>{DRAFT}</think>{CODE}", CODE),
        (f"```inline``` words\n{block(CODE)}", CODE),
    ],
)
def test_the_last_whole_block_that_defines_the_entry_wins(reply, expected):
    assert [("candidate.py", expected)] == _files(parse_reply(reply, "softmax"))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "no code block"),
        ("I cannot do that.", "no code block"),
        (f"<think>{block(CODE)}", "no code block"),
        (block("x = 1\n") + block("y = 2\n"), "2 code blocks were found, none defines softmax"),
    ],
)
def test_a_reply_without_the_entry_says_what_is_missing(reply, reason):
    parsed = parse_reply(reply, "softmax")

    assert parsed.files == ()
    assert reason in parsed.reason


@pytest.mark.parametrize(
    ("text", "tag", "path"),
    [
        ("x = 1\n", "python", "candidate.py"),
        ("def softmax(x:\n", "python", "candidate.py"),
        ("int other(int a) { return 0; }\n", "cpp", "candidate.cpp"),
        ("class A:\n    def softmax(self): ...\n", "", "candidate.py"),
    ],
)
def test_a_single_block_counts_although_it_defines_no_entry(text, tag, path):
    assert [(path, text)] == _files(parse_reply(block(text, tag), "softmax"))


@pytest.mark.parametrize(
    ("info", "expected"),
    [("cpp", "candidate.cpp"), ("C++", "candidate.cpp"), ("", "candidate.cpp"),
     ("cuda", "candidate.cu"), ("cu", "candidate.cu"), ("text", "candidate.cpp")],
)  # fmt: skip
def test_native_blocks_get_the_ending_of_their_language(info, expected):
    assert [(expected, NATIVE)] == _files(parse_reply(block(NATIVE, info), "softmax"))


def test_an_untagged_block_with_a_kernel_is_cuda():
    code = NATIVE + "__global__ void k() {}\n"

    assert [("candidate.cu", code)] == _files(parse_reply(block(code, ""), "softmax"))


@pytest.mark.parametrize(
    "info",
    ["python model.py", "python:model.py", 'python title="model.py"', "python filename=model.py",
     "{.python file=model.py}", "model.py", "python ./model.py"],
)  # fmt: skip
def test_a_file_name_is_read_from_the_info_string(info):
    assert _files(parse_reply(block(CODE, info), "softmax")) == [("model.py", CODE)]


@pytest.mark.parametrize(
    ("comment", "tag"),
    [("# file: model.py\n", "python"), ("\n# Filename: model.py\n", ""),
     ("// file: k.cpp\n", "cpp"), ("/* file: k.cpp */\n", "cpp"), ("/* file: k.cpp*/\n", "")],
)  # fmt: skip
def test_a_file_name_is_read_from_the_first_comment(comment, tag):
    code = comment + (NATIVE if "cpp" in comment else CODE)
    expected = "k.cpp" if "cpp" in comment else "model.py"

    assert [(expected, code)] == _files(parse_reply(block(code, tag), "softmax"))


@pytest.mark.parametrize("path", ["../model.py", "/etc/model.py", ".py", "model.txt", "a b.py"])
def test_an_unsafe_file_name_is_no_name(path):
    ((found, _),) = _files(parse_reply(block(f"# file: {path}\n{CODE}"), "softmax"))

    assert found == "candidate.py"


def test_named_blocks_belong_together_and_the_last_of_a_name_counts():
    reply = (
        block("int old;\n", "cpp kernel.cpp")
        + block(DRAFT, "python model.py")
        + block("int fresh;\n", "cpp kernel.cpp")
        + block("x = 1\n")
        + block(CODE, "python model.py")
    )

    assert _files(parse_reply(reply, "softmax")) == [
        ("model.py", CODE),
        ("kernel.cpp", "int fresh;\n"),
    ]


def test_python_that_binds_a_named_kernel_is_loaded_first():
    reply = block(CODE, "python model.py") + block(NATIVE, "cpp kernel.cpp")

    assert [path for path, _ in _files(parse_reply(reply, "softmax"))] == ["model.py", "kernel.cpp"]


def test_an_unnamed_block_includes_the_named_blocks_that_it_mentions():
    main = CODE + "from helper import go\nload('m', ['src/kernel.cu'])\n"
    reply = (
        block("x = 1\n", "python unused.py")
        + block('#include "deep.cuh"\n', "cuda src/kernel.cu")
        + block("int deep;\n", "cuda deep.cuh")
        + block("def go(): ...\n", "python helper.py")
        + block(main)
    )

    assert [path for path, _ in _files(parse_reply(reply, "softmax"))] == [
        "candidate.py",
        "src/kernel.cu",
        "deep.cuh",
        "helper.py",
    ]


def test_the_reason_names_the_block():
    cut = parse_reply(block("x = 1\n") + f"```python\n{CODE}", "softmax")

    assert cut.reason == "block 2 of 2 defines softmax and is cut off"


def _files(parsed):
    return [(file.path, file.text) for file in parsed.files]
