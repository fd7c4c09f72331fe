"""os._exit(0) in the call.

problem: add_relu
expect: failed
reason: unexpected_exit
"""

import os


def add_relu(x, y):
    os._exit(0)
