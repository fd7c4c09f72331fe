"""The loop of the judge's process: one answer to each request, or a failure of the problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tilewright.evaluator.judge.reference import ProblemFailure, is_out_of_memory
from tilewright.evaluator.judge_client import messages
from tilewright.evaluator.judge_client.messages import Answer, ProblemFailed, Request, fields_of
from tilewright.wire.frames import Channel, ChannelClosed, Frame, FrameError


def answer_requests(
    channel: Channel,
    applied: dict[str, str],
    handlers: Mapping[type[Request[Any]], Callable[[Any], Answer]],
    receive: Callable[[], Frame],
) -> None:
    """Report the isolation layers `applied`, then answer requests until the supervisor is gone."""
    channel.send("ready", {"applied": applied})
    while True:
        try:
            frame = receive()
        except ChannelClosed:
            return
        request = messages.decode(frame)
        try:
            channel.send("answer", fields_of(handlers[type(request)](request)))
            continue
        except ProblemFailure as error:
            failed = ProblemFailed(str(error), error.out_of_memory)
        except torch.OutOfMemoryError as error:
            text = f"{frame.kind}: it needs more memory than the device has: {str(error)[:300]}"
            failed = ProblemFailed(text, out_of_memory=True)
        except torch.AcceleratorError as error:
            if is_out_of_memory(error):
                text = f"{frame.kind}: {str(error)[:300]}"
                channel.send(messages.PROBLEM_FAILED, vars(ProblemFailed(text, out_of_memory=True)))
                continue
            # No other process's fault reaches this one, and the judge's own code launches nothing
            # that could fault. The device context is unusable now.
            text = f"{frame.kind}: the problem's own code faulted the device: {str(error)[:300]}"
            channel.send(messages.PROBLEM_FAILED, vars(ProblemFailed(text, out_of_memory=False)))
            return
        except FrameError as error:
            text = f"it has more tensors or values than a frame can name: {error}"
            failed = ProblemFailed(text, out_of_memory=False)
        channel.send(messages.PROBLEM_FAILED, vars(failed))
