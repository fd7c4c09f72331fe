"""A macro of a C++ source expands without end, so that its build never ends.

family: H
problem: h_scaled_sum
counterpart: none, it never answers
expect: failed
max_s: 40
settings: eval.limits.build_s=8
device: cpu
"""

import torch
from torch.utils.cpp_extension import load_inline

ROWS = "\n".join(f"#define A{n + 1} A{n} A{n} A{n} A{n}" for n in range(14))
SOURCE = f"""
#define A0 x += 1;
{ROWS}
#include <torch/csrc/utils/pybind.h>

int run(int x) {{ A14 return x; }}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("run", &run); }}
"""

extension = load_inline(name="h_build_loop", cpp_sources=SOURCE, no_implicit_headers=True)


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=extension.run(1))
