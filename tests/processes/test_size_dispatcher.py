"""Dispatchers under the real judge: kept, rejected, and not written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright.records.run_folder import read_report

pytest.importorskip("torch")
pytestmark = [pytest.mark.timeout(300), pytest.mark.timed]

PROBLEM = '''"""The largest value of each row, by way of sorting."""

import torch

ENTRY = "peaks"
CASES = [{"name": "small", "rows": 30, "cols": 500}, {"name": "large", "rows": 300, "cols": 500}]
VARY = {"sizes": {"rows": (1, 400)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return _sorted(x)[..., -1]


def _sorted(x):
    return torch.sort(x, dim=-1).values
'''
PLANTED = """import torch


def _sorted(x):
    return torch.sort(torch.sort(x, dim=-1).values, dim=-1).values


def peaks(x):
    if x.numel() < 40000:
        return _sorted(torch.cat([x, x], dim=-1))[..., -1]
    return x.amax(dim=-1)
"""
NATIVE = '''from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor peaks(const at::Tensor& given) {
    auto x = given.contiguous();
    const int64_t rows = x.size(0), columns = x.size(1);
    auto y = at::empty({rows}, x.options());
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const int64_t times = rows * columns COMPARED 40000 ? 400 : 1;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < times; ++k) {
            volatile float top = in[r * columns];
            for (int64_t c = 0; c < columns; ++c) {
                const float value = in[r * columns + c];
                if (value > top || value != value) top = value;
            }
            out[r] = top;
        }
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("peaks", &peaks); }
"""
extension = load_inline(
    name="peaks_own", cpp_sources=SOURCE, extra_cflags=["-O2"], no_implicit_headers=True
)


def peaks(x):
    return extension.peaks(x)
'''
QUICK = ("eval.timing.max_s=0.5", "eval.timing.min_blocks=8", "eval.timing.max_blocks=12")


def optimised(place: Path, code: str, *words: str) -> tuple[dict[str, Any], str]:
    """Let a policy write one candidate; return the JSON document and what was printed."""
    (place / "peaks.py").write_text(PROBLEM)
    reply = f"```python\n{code}```"
    (place / "policy.py").write_text(f"def answer(messages, ask):\n    return {reply!r}\n")
    model = ("peaks.py", "--model", "scripted:policy.py", "--turns", "1", "--out", "runs")
    return started(place, *model, *(part for item in QUICK for part in ("--set", item)), *words)


def started(place: Path, *words: str) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "optimize", *words, "--json"],
        cwd=place,
        env={**os.environ, "TILEWRIGHT_HOME": str(place / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.alone
@pytest.mark.slow
def test_the_reference_answers_on_the_sizes_on_which_a_candidate_loses(tmp_path):
    document, said = optimised(tmp_path, PLANTED)
    made, winner = document["dispatchers"]["peaks"], document["winners"]["peaks"]
    assert (made["kept"], made["losing_cases"]) == (True, ["small"])
    assert made["rule"] == "for arguments below 47434 elements"
    assert "a dispatcher with the reference for arguments below 47434 elements was kept" in said
    # The planted candidate needs more than twice the reference's time on the small case.
    run = tmp_path / document["run"]
    report = read_report(tmp_path / Path(winner["file"]).parent / "report.json")
    by_case = {item.case: item.speedup for item in report.comparisons}
    assert by_case["small"] > 0.75
    assert by_case["large"] > 3
    subprocess.run([sys.executable, winner["file"]], cwd=tmp_path, check=True, capture_output=True)
    # A resumed run finds both reports, and measures nothing but the winner again.
    assert len(list((run / "reports").iterdir())) == 2
    again, _ = started(tmp_path, "--resume", document["run"])
    assert again["dispatchers"]["peaks"] == made
    off, _ = started(tmp_path, "--resume", document["run"], "--set", "loop.dispatcher=false")
    assert off["dispatchers"] == {}
    assert "_nested_reference" not in (tmp_path / off["winners"]["peaks"]["file"]).read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compared", "losing", "kept"), [("<", "small", True), (">=", "large", False)]
)
def test_own_kernels_must_still_compute_the_last_case(tmp_path, compared, losing, kept):
    document, _ = optimised(tmp_path, NATIVE.replace("COMPARED", compared))
    made = document["dispatchers"]["peaks"]
    assert (made["losing_cases"], made["kept"]) == ([losing], kept)
    reports = [read_report(path) for path in (tmp_path / document["run"] / "reports").iterdir()]
    (report,) = [
        item for item in reports if "_nested_reference" in item.request.candidate.files[0].text
    ]
    # The judge sees the sort of the reference, and names it.
    assert [item.name for item in report.labels if item.name == "library_call"]
    findings = [item.code for item in report.findings]
    assert findings == ([] if kept else ["unused_kernel"])
    if not kept:
        assert made["reason"].startswith("rejected")


@pytest.mark.slow
def test_a_candidate_that_loses_everywhere_gets_no_dispatcher(tmp_path):
    code = PLANTED.replace("x.numel() < 40000", "True")
    document, said = optimised(tmp_path, code)
    made = document["dispatchers"]["peaks"]
    assert (made["kept"], made["rule"]) == (False, None)
    assert "slower than the reference on every size" in said
