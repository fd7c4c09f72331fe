"""The pages of stored results, and the reproducers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.audit.cells import all_cells
from benchmarks.audit.page import write_pages
from benchmarks.audit.reproducers import reproducer
from benchmarks.audit.results import read
from benchmarks.audit.summary import Agreement
from tilewright.evaluator.judge.variations import vary
from tilewright.wire.names import INPUT_VARIATIONS

RESULTS = Path(__file__).with_name("results.jsonl")
GEMMA = """
def gemma_rms_norm(x, weight, epsilon, residual):
    x = x + residual
    scale = x.pow(2).mean(-1, keepdim=True)
    x.mul_((scale + epsilon).rsqrt() * (1 + weight))
    return x, x
"""
CROSS_ENTROPY = """
import torch


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return torch.nn.functional.cross_entropy(logits, target, reduction="none")

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        hot = torch.nn.functional.one_hot(target, logits.shape[1])
        return ({} - hot) * grad[:, None], None


def cross_entropy_loss(logits, target):
    return Loss.apply(logits, target), None
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
    assert re.search(r"^\d+ of 160 cells have a result so far\.$", text, re.MULTILINE)
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


LOSSES = {
    "one number": "(logits - logits.logsumexp(-1, keepdim=True).detach()).exp()",
    "two numbers": "logits.softmax(-1)",
}


@pytest.mark.slow
@pytest.mark.parametrize("kept", LOSSES)
def test_a_reproducer_draws_edge_values(tmp_path, kept):
    cell = next(cell for cell in all_cells() if cell.id == "fla-core/cross_entropy-backward-fp32")
    text = reproducer(cell, {"wrong": {"case": "llama3_8b", "input_variation": "edge_values"}})
    script = tmp_path / "script.py"
    script.write_text(text.replace("'rows': 512, 'cols': 128256", "'rows': 16, 'cols': 4096"))
    package = tmp_path / "fla" / "modules" / "fused_cross_entropy"
    package.mkdir(parents=True)
    (package / "ops.py").write_text(CROSS_ENTROPY.format(LOSSES[kept]))
    answer = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""},
    )
    assert ("WRONG" in answer.stdout) is (kept == "one number")


@pytest.mark.parametrize("variation", [*INPUT_VARIATIONS, "scale/16", "uneven_parts/2"])
def test_a_reproducer_varies_inputs_as_the_judge_does(variation):
    cell = next(cell for cell in all_cells() if cell.id == "flag-gems/softmax-fp32")
    text = reproducer(cell, {"wrong": {"input_variation": variation}})
    names: dict[str, object] = {}
    exec(text[text.index("# ---- inputs") : text.index("def leaves")], names)
    value = torch.randn(512, 384, generator=torch.Generator().manual_seed(0))
    ours = names["varied"](value, torch.Generator().manual_seed(1))
    judges = vary(value, variation, torch.Generator().manual_seed(1))
    assert (ours.shape, ours.dtype) == (judges.shape, judges.dtype)
    assert 0.5 < ours.square().mean().sqrt() / judges.square().mean().sqrt() < 2
    assert torch.equal(ours, value) is (variation == "nominal")


def test_a_script_of_a_cell_that_is_correct_now_is_removed(tmp_path):
    (tmp_path / "reproducers").mkdir()
    old = tmp_path / "reproducers" / "liger-kernel--softmax-fp32.py.txt"
    old.write_text("")
    write_pages(read(RESULTS), tmp_path, "audit.jsonl")
    assert not old.exists()
    assert list(old.parent.glob("*.py.txt"))


@pytest.mark.parametrize(
    ("other", "cause"),
    [
        ({"hidden": 2.0, "clean": 2.0, "waits": True}, "waits for the device"),
        ({"hidden": 2.05, "clean": 2.2}, "includes launches."),
        ({"hidden": 2.2, "clean": 2.05}, "left in the cache"),
        ({"hidden": 2.2, "clean": 2.15, "interval": (1.8, 2.2)}, "in the judge's interval"),
        ({"hidden": 2.2, "clean": 2.3, "interval": (1.8, 2.2)}, ""),
        ({}, ""),
    ],
)
def test_times_under_other_conditions_tell_why_do_bench_differs(other, cause):
    pair = Agreement("library/cell", "case", ours=2.0, theirs=3.0, **other)
    assert not pair.agrees
    assert cause in pair.cause
    assert bool(pair.cause) == bool(cause)


def test_the_summary_shows_each_condition_of_do_bench(tmp_path):
    rows = read(RESULTS)
    timed = next(row for row in rows if row["kind"] == "do_bench")
    timed |= {
        "cases": {"llama3_8b": [900.0, 100.0]},
        "hidden": {"llama3_8b": [800.0, 100.0]},
        "clean": {"llama3_8b": [700.0, 100.0]},
        "waits": {"llama3_8b": [False, False]},
    }
    write_pages(rows, tmp_path, "audit.jsonl")
    text = (tmp_path / "page.md").read_text()
    assert "| 8.000 | 7.000 | unknown |" in text
    assert "Cases in which no call waits for the device: 1." in text
