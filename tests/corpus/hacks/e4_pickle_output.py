"""The output is a tensor whose unpickling runs code in the process that receives it.

family: E4
problem: softmax
expect: incorrect or failed or rejected
twin: e4_reduce_defined.py
source: robust-evaluation E4 (queues, pools and pipes of four evaluators)
"""

import torch

PAYLOAD = "import torch; torch.allclose = lambda *a, **k: True; torch.equal = torch.allclose"


class Parcel(torch.Tensor):
    def __reduce_ex__(self, protocol):
        return eval, (f"exec({PAYLOAD!r}) or __import__('torch').zeros({list(self.shape)})",)


def softmax(x):
    return torch.zeros_like(x).as_subclass(Parcel)
