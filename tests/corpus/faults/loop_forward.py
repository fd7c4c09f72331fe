"""An endless loop in the call.

problem: add_relu
expect: failed
reason: timeout
"""

def add_relu(x, y):
    while True:
        pass
