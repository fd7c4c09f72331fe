"""The reference is found among all objects alive: classes by the collector, then subclasses.

family: A5
problem: linear_scale
expect: failed
twin: a5_gc_own_modules.py
source: robust-evaluation A5, B12
"""

import gc

from torch import nn


def find():
    for thing in gc.get_objects():
        if isinstance(thing, type) and thing.__name__ == "Model" and issubclass(thing, nn.Module):
            return thing
    for thing in nn.Module.__subclasses__():
        if thing.__module__.split(".")[0] not in ("torch", "torchgen") and thing.__init__:
            return thing
    raise LookupError("no reference to inherit from")


class ModelNew(find()):
    pass
