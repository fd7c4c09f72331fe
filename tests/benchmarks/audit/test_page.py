"""The pages of stored results, and the reproducers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.audit.page import write_pages
from benchmarks.audit.results import read

RESULTS = Path(__file__).with_name("results.jsonl")
GEMMA = """
def gemma_rms_norm(x, weight, epsilon, residual):
    x = x + residual
    scale = x.pow(2).mean(-1, keepdim=True)
    x.mul_((scale + epsilon).rsqrt() * (1 + weight))
    return x, x
"""


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    notes = {"conch-triton-kernels/gemma_rms_norm-fp32": "The library overwrites the sum."}
    (folder / "notes.json").write_text(json.dumps(notes))
    write_pages(read(RESULTS), folder, "audit.jsonl")
    return folder


def test_the_summary_names_everything(pages):
    text = (pages / "page.md").read_text()
    assert "| [liger-kernel](liger-kernel.html) | 0.8.5 | 2 | 1 | 0 |" in text
    assert "flag-gems is not installed" in text
    assert "The library overwrites the sum." in text
    assert "device lost" in text
    assert "got &lt;0.1>" in text
    assert "increase multi-GPU training throughput by 20%" in text
    assert "1 of 2 cases above 50 us agree" in text
    assert "Seed: 41." in text
    assert re.search(r"^\d+ of 158 cells have a result so far\.$", text, re.MULTILINE)
    assert text.isascii()


def test_a_page_works_offline_and_has_every_cell(pages):
    text = (pages / "liger-kernel.html").read_text()
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)
    assert "{{" not in text
    block = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert block is not None
    data = json.loads(block[1])
    assert [row["cells"][:4] for row in data["rows"]] == [
        ["softmax", "fp32", "forward", "faster"],
        ["swiglu", "bf16", "forward", "unjudged"],
    ]
    assert all(len(row["cells"]) == len(row["order"]) == 13 for row in data["rows"])
    assert "NVIDIA H200" in data["about"]
    assert any("The run ended" in reason for _, reason in data["not_judged"])
    assert (pages / "flag-gems.html").exists()


@pytest.mark.slow
def test_a_reproducer_finds_the_smallest_case(pages, tmp_path):
    script = pages / "reproducers" / "conch-triton-kernels--gemma_rms_norm-fp32.py.txt"
    text = script.read_text()
    assert "tilewright" not in text
    assert "{{" not in text
    package = tmp_path / "conch" / "ops" / "normalization"
    package.mkdir(parents=True)
    (package / "gemma_rms_norm.py").write_text(GEMMA)
    answer = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""},
    )
    assert "WRONG" in answer.stdout
    assert "smallest case: {'name': 'llama3_8b', 'rows': 1, 'cols': 1}" in answer.stdout
    assert "output 1: largest error" in answer.stdout
