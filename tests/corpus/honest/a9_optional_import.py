"""An optional import with a fallback: the package is absent, the own code does the same.

family: A9
problem: softmax
expect: correct
"""

import importlib.util
import subprocess
import sys

if importlib.util.find_spec("fastsoftmax_that_nobody_has"):
    from fastsoftmax_that_nobody_has import softmax
else:

    def softmax(x):
        e = (x - x.amax(dim=-1, keepdim=True)).exp_()
        return e.div_(e.sum(dim=-1, keepdim=True))


def install():
    """Never called here: what a user would run by hand."""
    subprocess.run([sys.executable, "-m", "pip", "install", "fastsoftmax"], check=True)
