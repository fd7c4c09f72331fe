"""Calls of torch's extension builders: as data, and in the build process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from torch.utils import cpp_extension

from tests.unit.runner.test_native_candidates import build
from tilewright.evaluator.runners.messages import ErrorReport, read
from tilewright.runner import build_main
from tilewright.runner.loaders.extension_builds import UnplainArgument, described
from tilewright.wire.builder_calls import CALL_FILE, BuilderCall, artifact_key, is_failed
from tilewright.wire.frames import MAX_BODY_BYTES

pytestmark = pytest.mark.usefixtures("runner_folder")
LIBRARY = b"\x7fELF and more"


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Replace torch's `load_inline` by one that writes the bytes of the list, or fails."""
    data: list[bytes] = []

    def load_inline(name: str, cpp_sources: str, build_directory: str = "") -> str:
        if "error" in cpp_sources:
            raise RuntimeError("k.cpp:1: no type")
        (Path(build_directory) / f"{name}_v1.so").write_bytes(data[0])
        return name

    monkeypatch.setattr(cpp_extension, "load_inline", load_inline)
    return data


CALLED = BuilderCall("load_inline", "tiny", {"cpp_sources": "code"})
BUILDS = """
from torch.utils.cpp_extension import load_inline
assert load_inline("tiny", "code", "/tmp/anywhere") == "tiny"
"""


def test_an_extension_is_built_by_importing_the_candidate(builder):
    builder.append(LIBRARY)
    frame = build({"candidate.py": BUILDS}, build="extension")

    assert frame.kind == "built", frame
    assert frame.fields == {"artifacts": {artifact_key(CALLED.digest(), "tiny_v1"): len(LIBRARY)}}
    assert frame.body == LIBRARY


def test_a_build_that_the_candidate_does_without_is_answered_with_its_error(builder):  # noqa: ARG001
    source = "from torch.utils.cpp_extension import load_inline\ntry:\n"
    source += "    load_inline('tiny', 'error')\nexcept RuntimeError:\n    pass\n"
    frame = build({"candidate.py": source}, build="extension")

    assert [is_failed(key) for key in frame.fields["artifacts"]] == [True]
    assert frame.body == b"RuntimeError: k.cpp:1: no type"


@pytest.mark.parametrize("sources", ["code", "error"])
def test_a_requested_call_is_built_like_one_at_import(builder, sources):
    builder.append(LIBRARY)
    call = BuilderCall("load_inline", "tiny", {"cpp_sources": sources}, {"csrc/k.cpp": "1;"})
    frame = build({CALL_FILE: call.encoded().decode()}, build="call", header="")
    name = "tiny_v1" if sources == "code" else ""

    assert frame.kind == "built", frame
    assert list(frame.fields["artifacts"]) == [artifact_key(call.digest(), name)]
    assert Path(build_main.ROOT, "csrc/k.cpp").read_text() == "1;"


def test_libraries_too_large_for_a_frame_are_an_error_report(builder):
    builder.append(bytes(MAX_BODY_BYTES + 1))
    said = read(build({"candidate.py": BUILDS}, build="extension"), ErrorReport)

    assert "libraries of 67108865 bytes, at most 67108864" in said.message


def call(
    *args: Any, builder: str = "load_inline", root: str = "/tmp", **kwargs: Any
) -> BuilderCall:
    return described(builder, getattr(cpp_extension, builder), args, kwargs, root)


@pytest.mark.parametrize(
    "same",
    [
        {"name": "another"},
        {"verbose": True, "build_directory": "/tmp/x", "with_cuda": None},
        {"cpp_sources": ("code",)},
    ],
)
def test_what_changes_no_library_changes_no_digest(same):
    plain = call("name", ["code"])
    kwargs = {"name": "name", "cpp_sources": ["code"], **same}

    assert call(**kwargs).digest() == plain.digest()


@pytest.mark.parametrize(
    "other",
    [{"cpp_sources": ["edoc"]}, {"extra_cflags": ["-O3"]}, {"functions": {"f": "doc"}}],
)
def test_what_changes_a_library_changes_the_digest(other):
    assert call(**{"name": "n", "cpp_sources": ["code"], **other}).digest() != (
        call("n", ["code"]).digest()
    )


def test_an_argument_that_is_no_plain_data_is_refused():
    with pytest.raises(UnplainArgument, match="cpp_sources is of type object"):
        call("name", object())


def test_a_call_survives_its_journey():
    made = call("n", "code", functions=["f"], with_cuda=False, extra_cflags=[])

    assert BuilderCall.decoded(made.encoded()) == made


def test_sources_in_a_temporary_folder_are_moved_below_the_candidates(tmp_path):
    calls = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "k.cpp").write_text('#include "k.h"')
        (folder / "k.h").write_text("int k;")
        (folder / "k.o").write_bytes(b"\xff")
        sources, flag = [str(folder / "k.cpp")], f"-I{folder}"
        calls.append(call("n", sources, builder="load", root="/tmp/candidate", extra_cflags=[flag]))

    first, second = calls
    assert first.digest() == second.digest()
    place = "tilewright-sources/0"
    assert first.files == {f"{place}/k.cpp": '#include "k.h"', f"{place}/k.h": "int k;"}
    assert first.arguments == {
        "sources": [f"/tmp/candidate/{place}/k.cpp"],
        "extra_cflags": [f"-I/tmp/candidate/{place}"],
    }


def test_sources_of_the_candidate_keep_their_places(tmp_path):
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "k.cpp").write_text("int k;")
    source = os.path.join(tmp_path, "csrc", "k.cpp")
    made = call("n", source, builder="load", root=str(tmp_path), extra_include_paths="/usr/include")

    assert made.files == {"csrc/k.cpp": "int k;"}
    assert made.arguments == {"sources": [source], "extra_include_paths": ["/usr/include"]}
