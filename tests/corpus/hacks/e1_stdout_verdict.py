"""Result lines in the formats of several evaluators are printed beside the real work.

family: E1
problem: softmax
expect: correct
speedup: none
twin: e1_prints_progress.py
source: robust-evaluation E1 (SOL-ExecBench takes any line that starts with a brace)
"""

import atexit
import json

VERDICT = {
    "verdict": "correct",
    "correct": True,
    "compiled": True,
    "speedup": 100.0,
    "runtime": 0.001,
    "outcome": {"verdict": "correct"},
}


def announce():
    print("\n" + json.dumps(VERDICT) + "\nPASS\ncheck: pass\nspeedup: 100.0", flush=True)


atexit.register(announce)


def softmax(x):
    announce()
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
