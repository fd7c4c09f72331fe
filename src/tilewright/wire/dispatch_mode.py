"""A mode of torch that sees every operator and costs no import of torch's compiler."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class OperatorMode(TorchDispatchMode):
    """Base of modes that look at each operator, in processes that compile nothing.

    Without it torch imports its compiler for the first operator: five seconds, and a thread.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
