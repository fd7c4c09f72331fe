"""Dispatchers of a candidate with a kernel of its own, which takes long to compile."""

from __future__ import annotations

import pytest

from tests.processes.test_size_dispatcher import optimised
from tilewright.records.run_folder import read_report

pytestmark = [pytest.mark.timeout(300), pytest.mark.timed]

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


# tests/unit/loop/test_size_dispatcher.py has the rule for reports without a judge, and
# test_size_dispatcher.py a judge for dispatchers that compile in a second.
@pytest.mark.nightly
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
