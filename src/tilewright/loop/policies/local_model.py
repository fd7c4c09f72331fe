"""A model in this process, through transformers: waiting requests are sampled in one batch.

While the model computes, it holds the lease of its device, like an evaluation. So no evaluation
runs on the device at the same time, and no measured time is affected.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tilewright.config import ModelSection
from tilewright.errors import ConfigError, PolicyError, ReplyRefused, TilewrightError, boundary
from tilewright.evaluator.devices.devices import find_device, plan_cores
from tilewright.evaluator.processes.host import lease_name
from tilewright.evaluator.processes.prefork import open_lock
from tilewright.loop.budget import Usage
from tilewright.loop.policies.base import Message
from tilewright.records import file_lock
from tilewright.records.events import Ask, Reply

Waiting = tuple[Sequence[Message], Ask, "Future[Reply]"]


OnWait = Callable[[bool], None]
"""Receives true when the wait for a device begins, and false when it ends."""


@contextmanager
def leased(device: str | None, on_wait: OnWait = lambda _: None) -> Iterator[None]:
    """Hold the lease of a device, as an evaluation does; `None`: no lease is needed.

    `on_wait` is called only if another process has the lease.
    """
    if device is None:
        yield
        return
    name = lease_name(find_device(device), plan_cores(list(os.sched_getaffinity(0))))
    with open_lock(name) as lease:
        if not file_lock.try_lock(lease):
            on_wait(True)
            file_lock.lock(lease)
            on_wait(False)
        yield


def load_causal_model(path: str, dtype: Any, failure: type[TilewrightError], what: str) -> Any:  # noqa: ANN401
    """Return the language model in a folder, and print nothing meanwhile.

    `what` names the folder in messages. `dtype` is that of the weights, or `auto`.

    Raises:
        TilewrightError: of the kind `failure`: no model can be loaded, or weights of it are absent.
    """
    import transformers

    printed = transformers.utils.logging
    bars, verbosity = printed.is_progress_bar_enabled(), printed.get_verbosity()
    printed.disable_progress_bar()
    printed.set_verbosity_error()
    try:
        with boundary(failure, what):
            model, report = transformers.AutoModelForCausalLM.from_pretrained(
                path, dtype=dtype, output_loading_info=True
            )
    finally:
        printed.set_verbosity(verbosity)
        if bars:
            printed.enable_progress_bar()
    # transformers fills absent weights with random numbers.
    if absent := sorted(report["missing_keys"]):
        raise failure(f"{what}: {len(absent)} of its weights are absent, such as {absent[0]}")
    return model


class LogprobRecorder:
    """Keeps the log-probability of each sampled token. Lifetime: one batch.

    A logits processor gets the distribution before its token is sampled, and the token one step
    later.
    """

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature
        self._before: Any = None
        self._kept: list[list[float]] = []

    def __call__(self, tokens: Any, scores: Any) -> Any:  # noqa: ANN401 - tensors
        """Keep the last sampled token; return `scores` unchanged.

        `tokens` is (batch, so far), int64; `scores` is (batch, vocabulary), the next logits.
        """
        self._note(tokens)
        self._before = (scores.float() / self._temperature).log_softmax(-1)
        return scores

    def _note(self, tokens: Any) -> None:  # noqa: ANN401
        if self._before is not None:
            sampled = self._before.gather(-1, tokens[:, -1:].to(self._before.device))
            self._kept.append(sampled[:, 0].tolist())

    def logprobs(self, sequences: Any) -> list[list[float]]:  # noqa: ANN401
        """Return the log-probabilities of each row; `sequences` are the complete outputs."""
        self._note(sequences)
        return [list(row) for row in zip(*self._kept, strict=True)]


class Local:
    """A causal language model in a folder. Lifetime: one run.

    Raises:
        ConfigError: transformers is not installed.
        PolicyError: the folder holds no model that it can load.
    """

    def __init__(self, path: str, section: ModelSection) -> None:
        if not Path(path).is_dir():
            # Before an import that takes seconds, and a look-up of the name in the network.
            raise PolicyError(f"model {path}: no such folder; local:PATH takes that of a model")
        try:
            import torch
            import transformers
        except ImportError as error:
            raise ConfigError(
                "a model in this process needs transformers: pip install 'tilewright[local]'"
            ) from error
        self.name = f"local:{path}"
        self._section = section
        self._set_seed, self._torch = transformers.set_seed, torch
        with boundary(PolicyError, f"model {path}"):
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path)
            self._tokenizer.padding_side = "left"
            if self._tokenizer.pad_token_id is None:
                self._tokenizer.pad_token = self._tokenizer.eos_token
            model = load_causal_model(path, "auto", PolicyError, f"model {path}")
            self._model = model.to(find_device(section.device).name).eval()
        self._lock, self._model_lock = threading.Lock(), threading.Lock()
        self._closed = False
        self._waiting: queue.Queue[Waiting | None] = queue.Queue()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def answer(self, messages: Sequence[Message], ask: Ask) -> Reply:
        future: Future[Reply] = Future()
        with self._lock:
            if self._closed:
                raise PolicyError(f"model {self.name}, {ask.id}: the run ends")
            self._waiting.put((messages, ask, future))
        return future.result()

    def score_choices(
        self, messages: Sequence[Message], choices: Sequence[str]
    ) -> tuple[tuple[float, ...], ...]:
        """Return the log-probabilities of each choice's tokens after a prompt, at temperature 1.

        Raises:
            PolicyError: the model cannot be evaluated on this prompt.
        """
        with (
            boundary(PolicyError, f"model {self.name}, choices"),
            self._model_lock,
            leased(self._section.device),
        ):
            return self._scored(self._text(messages), choices)

    def _scored(self, prompt: str, choices: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        special = self._tokenizer.chat_template is None
        head = self._tokenizer(prompt, add_special_tokens=special)["input_ids"]
        tails = [self._tokenizer(text, add_special_tokens=False)["input_ids"] for text in choices]
        rows = []
        for tail in tails:
            tokens = self._torch.tensor([[*head, *tail]], device=self._model.device)
            with self._torch.inference_mode():
                # The last token's own distribution predicts what would follow the choice.
                logits = self._model(tokens).logits[0, len(head) - 1 : -1]
            found = logits.float().log_softmax(-1)
            taken = tokens[0, len(head) :, None]
            rows.append(tuple(found.gather(-1, taken)[:, 0].tolist()))
        return tuple(rows)

    def max_cost(self, prompt_tokens: int) -> Usage:
        return Usage(tokens=prompt_tokens + self._section.max_tokens)

    def close(self) -> None:
        """Refuse the waiting requests, and end the thread that samples."""
        with self._lock:
            self._closed = True
            with suppress(queue.Empty):
                # The thread that samples takes requests meanwhile.
                while True:
                    if waiting := self._waiting.get_nowait():
                        waiting[2].set_exception(PolicyError(f"model {self.name}: the run ends"))
            self._waiting.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while first := self._waiting.get():
            batch = [first]
            while len(batch) < self._section.concurrency and not self._waiting.empty():
                more = self._waiting.get()
                if more is None:
                    # The thread ends after this batch.
                    self._waiting.put(None)
                    break
                batch.append(more)
            self._answer_all(batch)

    def _answer_all(self, batch: list[Waiting]) -> None:
        try:
            with (
                boundary(PolicyError, f"model {self.name}, {batch[0][1].id}"),
                self._model_lock,
                leased(self._section.device),
            ):
                replies = self._sampled([messages for messages, _, _ in batch], batch[0][1])
        except Exception as error:  # noqa: BLE001 - the caller gets it
            if len(batch) > 1:
                # One prompt may be too long; the others are sampled without it.
                for one in batch:
                    self._answer_all([one])
                return
            batch[0][2].set_exception(ReplyRefused(str(error)))
            return
        for (_, _, future), reply in zip(batch, replies, strict=True):
            future.set_result(reply)

    def _sampled(self, prompts: list[Sequence[Message]], ask: Ask) -> list[Reply]:
        start, section = time.monotonic(), self._section
        encoded = self._tokenizer(
            [self._text(messages) for messages in prompts],
            return_tensors="pt",
            padding=True,
            # A chat template writes the special tokens itself.
            add_special_tokens=self._tokenizer.chat_template is None,
        )
        names = ("input_ids", "attention_mask")
        encoded = {name: encoded[name].to(self._model.device) for name in names}
        if section.seed is not None:
            self._set_seed(section.seed + 1000 * ask.sample + ask.turn)
        sampling: dict[str, Any] = {"do_sample": bool(section.temperature)}
        if section.temperature:
            # Explicit, because a model's own defaults would cut the distribution.
            top_p = section.top_p or 1.0
            sampling |= {"temperature": section.temperature, "top_k": 0, "top_p": top_p}
        recorder = LogprobRecorder(section.temperature or 1.0)
        sequences = self._model.generate(
            **encoded,
            max_new_tokens=section.max_tokens,
            pad_token_id=self._tokenizer.pad_token_id,
            logits_processor=[recorder],
            **sampling,
        )
        scores = recorder.logprobs(sequences)
        seconds, length = time.monotonic() - start, encoded["input_ids"].shape[1]
        return [
            self._reply(row[length:].tolist(), probs, int(mask.sum()), seconds)
            for row, probs, mask in zip(sequences, scores, encoded["attention_mask"], strict=True)
        ]

    def _text(self, messages: Sequence[Message]) -> str:
        if self._tokenizer.chat_template is None:
            return "\n\n".join(item.text for item in messages) + "\n\n"
        sent = [{"role": item.role, "content": item.text} for item in messages]
        return str(
            self._tokenizer.apply_chat_template(sent, tokenize=False, add_generation_prompt=True)
        )

    def _reply(
        self, tokens: list[int], logprobs: list[float], prompt_tokens: int, seconds: float
    ) -> Reply:
        end = self._model.generation_config.eos_token_id
        ends = set(end if isinstance(end, list) else [end]) - {None}
        stop = next((place for place, token in enumerate(tokens) if token in ends), None)
        # The end token was sampled; the tokens after it are padding of the batch.
        count = len(tokens) if stop is None else stop + 1
        return Reply(
            text=self._tokenizer.decode(tokens[:count], skip_special_tokens=True),
            model=self.name,
            prompt_tokens=prompt_tokens,
            reply_tokens=count,
            seconds=seconds,
            finish="length" if stop is None else "stop",
            tokens=tuple(tokens[:count]),
            logprobs=tuple(logprobs[:count]),
        )
