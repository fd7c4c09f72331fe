"""An exception whose message is no valid text: surrogates, NUL, escapes.

problem: add_relu
expect: failed
reason: exception
"""

def add_relu(x, y):
    raise ValueError("\ud800\udfff\x00\x1b[2J\u202e" * 100)
