"""Prompts: the problem, then some earlier turns with the feedback about them."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.languages.reply_parser import spoken
from tilewright.loop.policies.base import Message
from tilewright.records import Problem
from tilewright.records.events import Turn

WRITTEN_IN = {
    "triton": "Write its heavy part as Triton kernels (`@triton.jit`) that you launch yourself.",
    "cuda": "Write its heavy part as CUDA kernels, built with torch.utils.cpp_extension.load_inline"
    " from the same Python file.",
    "cpp": "Write its heavy part in C++, built with torch.utils.cpp_extension.load_inline from the "
    "same Python file.",
    "torch": "Write it in PyTorch.",
}
ANY = "Write it as you like: Triton, CUDA or C++ through load_inline, or plain PyTorch."
RULES = """Rules:
- It is judged on several sizes and contents of inputs, also some that you do not see.
- Its outputs must agree with the reference within what the dtype's rounding explains.
- Do the work in every call. Nothing may be kept of earlier inputs or outputs, inputs may not be \
overwritten, and no lower precision is allowed than the reference's.
- Speed is measured against the reference as PyTorch runs it, in other processes than yours.
- Reply with the whole file in one fenced code block. Think before it as much as you like."""
AGAIN = "Write a better version of the whole file, in one fenced code block."


def opening(problem: Problem, language: str | None) -> str:
    """Return the first message: the computation, and the form of an answer."""
    if problem.kind == "module":
        what = (
            f"a class `{problem.entry}` that takes the same arguments as `Model`, has parameters "
            "of the same names and shapes, and computes the same"
        )
    else:
        what = f"a function `{problem.entry}` that takes the same arguments as `reference`"
    how = ANY if language is None else WRITTEN_IN.get(language, ANY)
    return (
        f"Make this computation fast. Here is its reference:\n\n```python\n"
        f"{problem.source.text.strip()}\n```\n\nWrite a Python file that defines {what}. {how}\n\n"
        f"{RULES}"
    )


def conversation(
    problem: Problem,
    language: str | None,
    shown: Sequence[Turn],
    instruction: str = "",
    override: str = "",
) -> tuple[Message, ...]:
    """Return the messages of a prompt: the opening, then each shown turn and its feedback.

    The last message asks for an answer, and `instruction` is added to it. `Ask.prompt_override`
    holds the words of others, of the shown turns and of this one. It replaces our words.
    """
    messages, ours = list[Message](), opening(problem, language)
    for turn in shown:
        if turn.reply is None:
            continue
        messages.append(Message(role="user", text=turn.ask.prompt_override or ours))
        # Reasoning is not repeated: it is long, and the code holds its result.
        messages.append(Message(role="assistant", text=spoken(turn.reply.text).strip()))
        ours = f"{turn.feedback}\n\n{AGAIN}"
    last = "\n\n".join(filter(None, (override or ours, instruction)))
    return (*messages, Message(role="user", text=last))
