"""SystemExit in the call.

problem: add_relu
expect: failed
reason: unexpected_exit
"""

def add_relu(x, y):
    raise SystemExit(0)
