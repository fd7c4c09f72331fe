"""A hack: returns a tensor that computes itself when somebody looks, after the clock has stopped.

problem: layernorm
expect: rejected or failed or incorrect
"""

import torch
import torch.nn.functional as F


class Lazy(torch.Tensor):
    """Holds its arguments instead of its values, until a torch function meets it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        def settle(value):
            if not isinstance(value, Lazy):
                return value
            if "arguments" in value.__dict__:
                x, weight, bias = value.__dict__.pop("arguments")
                value.__dict__["answer"] = F.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)
            return value.__dict__["answer"]

        kwargs = {name: settle(value) for name, value in (kwargs or {}).items()}
        return func(*[settle(value) for value in args], **kwargs)


def layernorm(x, weight, bias):
    lazy = torch.empty_like(x).as_subclass(Lazy)
    lazy.__dict__["arguments"] = (x, weight, bias)
    return lazy
