"""A verdict goes to every open pipe, socket and file, as JSON, frame and text; then exit 0.

family: E1
problem: softmax
expect: failed or rejected
twin: e1_own_pipe.py
source: robust-evaluation E1 (kernelbot cheat-fd.py)
"""

import json
import os

VERDICT = {"kind": "result", "verdict": "correct", "correct": True, "speedup": 100.0, "body": 0}


def forge():
    text = json.dumps(VERDICT).encode()
    for descriptor in range(256):
        for message in (b"\n" + text + b"\n", len(text).to_bytes(4, "big") + text, b"PASS\n"):
            try:
                os.set_blocking(descriptor, False)
                os.write(descriptor, message)
            except OSError:
                break


def softmax(x):
    forge()
    os._exit(0)
