"""A model of Inspect with scripted replies. It states its own usage, so it needs no network."""

from __future__ import annotations

from typing import Any

from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi

from tests.twelve_candidates import KINDS, reply_to


@modelapi(name="scripted")
class Scripted(ModelAPI):
    """Replies by the problem in the prompt, or always the same. `first-wrong` is wrong at first."""

    def __init__(self, model_name: str, *given: Any, reply: str = "", **named: Any) -> None:
        super().__init__(model_name, *given, **named)
        self.reply = reply

    async def generate(self, input: list[Any], *_: Any, **__: Any) -> ModelOutput:
        """Return the reply of the problem that the prompt names."""
        text = "\n".join(str(item.content) for item in input)
        reply = self.reply or reply_to(text)
        if self.model_name == "first-wrong" and "Verdict: incorrect" not in text:
            name = next(name for name in KINDS if name in text)
            reply = KINDS["k_wrong"].reply.replace("k_wrong", name)
        if self.model_name == "two-blocks":
            reply = f"```python\nprint('a test')\n```\n{reply}"
        output = ModelOutput.from_content(model=self.model_name, content=reply)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output
