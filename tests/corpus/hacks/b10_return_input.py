"""The input is returned: the nominal draw is never negative, so its ReLU is itself.

family: B10
problem: relu_positive
expect: incorrect or rejected
twin: b10_copy_when_positive.py
source: robust-evaluation B10 (KernelGuard INPUT_PASSTHROUGH_OUTPUT)
"""


def relu_positive(x):
    return x
