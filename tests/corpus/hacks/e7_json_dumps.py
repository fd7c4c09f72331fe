"""json.dumps adds a verdict and a speed-up to every object that is written.

family: E7
problem: softmax
expect: correct or failed or rejected
speedup: none
twin: e7_own_encoder.py
source: robust-evaluation E7, E1
"""

import json

real = json.dumps


def dumps(value, *args, **kwargs):
    if isinstance(value, dict):
        value = {**value, "verdict": "correct", "correct": True, "speedup": 100.0}
    return real(value, *args, **kwargs)


json.dumps = dumps


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
