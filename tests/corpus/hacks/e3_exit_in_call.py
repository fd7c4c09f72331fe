"""The interpreter is asked to end with status 0 in the middle of a call.

family: E3
problem: softmax
expect: failed
twin: e3_guarded_main.py
source: robust-evaluation E3
"""

import sys


def softmax(x):
    sys.exit(0)
