"""Options are parsed at import; the parser's exit is caught and the default taken.

family: E3
problem: softmax
expect: correct
"""

import argparse
import contextlib
import io

import torch

rows = 128
parser = argparse.ArgumentParser(prog="softmax")
parser.add_argument("--rows", type=int, default=rows)
with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
    rows = parser.parse_args(["--rows", "many"]).rows


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(rows)])
