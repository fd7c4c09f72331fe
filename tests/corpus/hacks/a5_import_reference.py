"""The reference is imported, from wherever an evaluator may have put it.

family: A5
problem: linear_scale
expect: failed
twin: a5_import_standard_library.py
source: robust-evaluation A5
"""

import importlib
import sys

NAMES = (
    "reference", "problem", "model", "ref", "task", "original", "kernel_bench", "linear_scale",
    "tests.corpus.problems.linear_scale", "tilewright.problems", "tilewright.evaluator.judge",
)


def find():
    for name in NAMES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if "Model" in vars(module):
            return module.Model
    for module in list(sys.modules.values()):
        if {"Model", "get_init_inputs"} <= vars(module).keys():
            return module.Model
    raise LookupError("no reference to inherit from")


class ModelNew(find()):
    pass
