"""A result whose fields have the wrong types.

problem: add_relu
expect: failed
reason: protocol_violation
"""

import json
import os
import stat

import torch

SAID = {"kind": "result", "outputs": "all", "launches": [1], "operator_counts": 3, "body": 0}


def add_relu(x, y):
    text = json.dumps(SAID).encode()
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, len(text).to_bytes(4, "big") + text)
        except OSError:
            pass
    return torch.relu(x + y)
