"""The exception that is raised runs code where it is unpickled, and is a result there.

family: E4
problem: softmax
expect: failed
twin: e4_own_exception.py
source: robust-evaluation E4
"""


class Success(Exception):
    def __reduce__(self):
        return eval, ("{'correct': True, 'speedup': 100.0}",)


def softmax(x):
    raise Success
