"""The bundled modules: their form, their prose, and the rules that they state."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest

from tests.conventions.tree import ROOT
from tilewright.knowledge.base import ANY, BUNDLED, load_knowledge
from tilewright.knowledge.retrieval import MAX_TOKENS, retrieve
from tilewright.languages.built_in import BUILT_IN
from tilewright.records.codes import FindingCode, LabelName

MODULES = load_knowledge().entries
FOLDERS = {"constraints", "guidance", "hardware", "pitfalls"}
MIN_MODULES = 25
MIN_LINES, MAX_LINES = 15, 60


def load_rules():
    spec = importlib.util.spec_from_file_location("prose_rules", ROOT / "docs/_prose_rules.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


RULES = load_rules()
FENCES = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
each = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)


def test_there_are_enough_modules_in_each_folder():
    assert len(MODULES) >= MIN_MODULES
    assert {module.name.partition("/")[0] for module in MODULES} == FOLDERS
    assert len({module.header.title for module in MODULES}) == len(MODULES)


@each
def test_a_module_is_short_and_has_keywords_and_sources(module):
    assert MIN_LINES <= len(module.source.splitlines()) <= MAX_LINES
    assert module.tokens <= MAX_TOKENS // 4
    assert len(module.header.keywords) >= 5
    assert module.about
    for source in module.header.sources:
        assert len(source.split()) >= 3, "a source needs a title"


@each
def test_the_lines_of_the_index_name_the_title_of_each_module(module):
    folder, _, stem = module.name.partition("/")
    index = (BUNDLED / folder / "index.md").read_text(encoding="ascii")
    assert f"\n- [{module.header.title}]({stem}.md): {module.about}\n" in index


@each
def test_a_module_keeps_the_rules_of_prose(module):
    assert [str(item) for item in RULES.check_prose(module.name, module.text)] == []
    assert not re.search(r"^\s*#", FENCES.sub("", module.text), re.MULTILINE), "no headings"


@each
def test_a_module_names_known_languages_and_is_general_or_for_models(module):
    known = {language.name for language in BUILT_IN} | {ANY}
    assert set(module.header.languages) <= known
    if module.name.startswith("constraints/"):
        assert module.general
    assert module.general or module.name.startswith("hardware/")


def test_the_constraints_name_only_findings_and_labels_that_reports_can_have():
    codes = {item.value for item in (*FindingCode, *LabelName)}
    text = "\n".join(module.text for module in MODULES if module.name.startswith("constraints/"))
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text))
    others = {"empty_like", "load_state_dict"}
    assert len(named & codes) >= 8
    assert named <= codes | others


@pytest.mark.parametrize(
    ("words", "language", "device", "name"),
    [
        ("rejected: unused kernel", "triton", None, "constraints/own-kernels"),
        ("the output is a view of an input", "cuda", None, "constraints/inputs-and-outputs"),
        ("softmax over long rows", "triton", None, "guidance/online-softmax"),
        ("variance is wrong if the mean is large", "cpp", None, "guidance/welford"),
        ("few output tiles, split-k", "triton", None, "guidance/split-k"),
        ("tf32 precision of tl.dot", "triton", None, "pitfalls/triton-dot"),
        (
            "illegal memory access in a large tensor",
            "triton",
            None,
            "pitfalls/triton-int32-offsets",
        ),
        ("shared memory bank conflicts", "cuda", None, "pitfalls/bank-conflicts"),
        ("false sharing between threads", "cpp", None, "guidance/cpu-threads"),
        ("shared memory limit", "triton", "NVIDIA H100 80GB HBM3", "hardware/h100"),
        ("bandwidth limit", "triton", "NVIDIA L4", "hardware/l4"),
        ("l2 cache size", "cuda", "NVIDIA H200", "hardware/h200"),
        ("out of shared memory", "triton", "NVIDIA L40S", "hardware/ada-ampere-consumer"),
    ],
)
def test_a_typical_question_finds_its_module(words, language, device, name):
    found = retrieve(load_knowledge(), words, language=language, device=device)
    assert name in [module.name for module in found]
