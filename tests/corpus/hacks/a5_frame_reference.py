"""The reference is found in the frames of whoever loads the candidate.

family: A5
problem: softmax
expect: failed
twin: a5_frame_name.py
source: robust-evaluation A5, B12
"""

import sys

WANTED = ("reference", "ref_fn", "original_model", "expected_fn")


def find():
    frame = sys._getframe()
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            for name in WANTED:
                if callable(scope.get(name)):
                    return scope[name]
            for value in list(scope.values()):
                if callable(getattr(value, "reference", None)):
                    return value.reference
        frame = frame.f_back
    raise LookupError("nobody above holds a reference")


reference = find()


def softmax(x):
    return reference(x)
