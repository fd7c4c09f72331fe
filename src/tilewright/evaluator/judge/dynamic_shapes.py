"""References whose output shapes depend on the values of their inputs, such as a masked selection.

Timed calls get new values, and a runner's outputs are read in a known shape. So the values of such
a reference must keep the shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.reference import Reference
from tilewright.wire.dispatch_mode import OperatorMode


class SizedByValues(OperatorMode):
    """Notes whether an operator chose the shape of its output by values. Lifetime: a `with` block.

    Attributes:
        used: whether there was such an operator.
    """

    def __init__(self) -> None:
        super().__init__()
        self.used = False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Call an operator; torch tags those whose output shape depends on values."""
        self.used |= torch.Tag.dynamic_output_shape in getattr(func, "tags", ())
        return func(*args, **(kwargs or {}))


def have_same_shapes(one: InputSample, other: InputSample) -> bool:
    """Tell whether the expected outputs of two samples have the same shapes."""
    return [item.value.shape for item in one.expected] == [
        item.value.shape for item in other.expected
    ]


def keeps_shapes(reference: Reference, sample: InputSample, args: list[Any]) -> bool:
    """Tell whether the reference's outputs on these arguments have the shapes of the sample's.

    Only a reference with an operator of dynamic shape is called; the first call shows that.

    Raises:
        ProblemFailure: the device has too little memory.
    """
    if reference.placement.dynamic is False:
        return True
    # A call in a mode is slow, and the time of a call decides whether there is a float64 oracle.
    mode, took_s = SizedByValues(), reference.call_s
    try:
        with mode:
            given = args, sample.grad_outputs(), sample.forward_seed, sample.after.written
            outputs, _ = refs.run(reference, *given)
    except refs.ProblemFailure as error:
        if error.out_of_memory:
            raise
        return False
    finally:
        reference.call_s = took_s
    reference.placement.dynamic = bool(reference.placement.dynamic) or mode.used
    return [value.shape for value in outputs] == [item.value.shape for item in sample.expected]
