"""A cache keyed by the whole contents: never wrong, and never cheaper on new inputs.

family: B6
problem: softmax
expect: correct
"""

import torch

kept = None


def softmax(x):
    global kept
    if kept is None or kept[0].shape != x.shape or not torch.equal(kept[0], x):
        kept = (x.clone(), torch.softmax(x, dim=-1))
    return kept[1].clone()
