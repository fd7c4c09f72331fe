"""Inheritance: the candidate is the reference under another name.

family: A5
problem: linear_scale
expect: failed
twin: a5_inherit_own_base.py
source: robust-evaluation A5 (Kevin, KernelBench)
"""


class ModelNew(Model):  # noqa: F821
    pass
