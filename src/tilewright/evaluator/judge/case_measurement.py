"""The bytes, operations and memory that one call of the reference needs."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.evaluator.judge import ceilings, reference
from tilewright.evaluator.judge.number_formats import byte_size
from tilewright.evaluator.judge.reference import Reference
from tilewright.evaluator.judge_client.gpu_messages import CaseMeasured, MeasureCase
from tilewright.wire.tensors import Layout


def measure_case(
    problem: Reference, message: MeasureCase, started: Callable[[], None] = lambda: None
) -> CaseMeasured:
    """Call the reference once on a case. `started` is called when the inputs exist."""
    args = problem.arguments(message.params, message.seed)
    layout = Layout()
    with reference.problem_step("laying out the inputs"):
        layout.describe(args)
    started()
    (outputs, _), flops = ceilings.counted(lambda: reference.run(problem, args, [], 0))
    declared = problem.declared("FLOPS", message.params)
    weights = [] if problem.model is None else problem.model.state_dict().values()
    # This call computes no gradients, so their operations are not counted.
    counted = None if problem.grads else flops
    return CaseMeasured(
        moved=problem.declared("BYTES", message.params),
        inputs=layout.size,
        weights=sum(map(byte_size, weights)),
        outputs=sum(map(byte_size, outputs)),
        count=len(outputs),
        peak=None,
        flops=counted if declared is None else declared,
        precision=ceilings.precision_of(list(outputs)),
    )
