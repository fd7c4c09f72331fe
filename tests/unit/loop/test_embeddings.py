"""The deterministic embedding: what changes a vector, and what does not."""

from __future__ import annotations

import math
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from tilewright.loop.embeddings import DIMENSIONS, embed

CODE = """
import torch

def candidate(x):
    total = x.sum(dim=-1)
    return total * 2
"""
CUDA = "__global__ void add(float* a, int n) { int i = threadIdx.x; if (i < n) a[i] += 1.0f; }"


def test_names_comments_and_blank_lines_change_nothing():
    other = CODE.replace("total", "result").replace("    return", "\n    # twice\n    return")
    assert embed(other) == embed(CODE)
    assert embed(f"// add one\n{CUDA}") == embed(CUDA)


def test_a_larger_change_is_farther():
    notch = embed(CODE.replace("* 2", "* 4"))
    other = embed(CODE.replace("x.sum(dim=-1)", "x.float().softmax(dim=0).max(dim=-1).values"))
    assert 0 < math.dist(embed(CODE), notch) < math.dist(embed(CODE), other)
    assert math.dist(embed(CUDA), embed(CUDA.replace("1.0f", "2.0f"))) > 0


@given(st.text())
def test_any_text_has_a_vector_of_length_one_or_zero(text):
    vector = embed(text)
    assert len(vector) == DIMENSIONS
    length = math.hypot(*vector)
    assert length == 0 or math.isclose(length, 1.0)


def test_a_vector_depends_on_no_hash_seed():
    script = "import sys; from tilewright.loop.embeddings import embed; print(embed(sys.argv[1]))"
    found = {
        subprocess.run(
            [sys.executable, "-c", script, CODE],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(found) == 1
