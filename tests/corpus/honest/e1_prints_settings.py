"""Settings are printed as JSON, to stdout and stderr, while the results are right.

family: E1
problem: softmax
expect: correct
"""

import json
import sys

import torch

print(json.dumps({"kind": "settings", "rows": 128, "correct": "rounding to nearest"}), flush=True)
print("softmax: a warning that means nothing", file=sys.stderr)


def softmax(x):
    return torch.softmax(x, dim=-1)
