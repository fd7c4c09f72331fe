"""The first message of every prompt: the computation, the rules, and the form of an answer."""

from __future__ import annotations

from tilewright.records import Problem

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
