"""A model behind any server that speaks OpenAI's chat protocol, through the `openai` package."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tilewright.config import ModelSection, environment
from tilewright.errors import ConfigError, PolicyError, ReplyRefused
from tilewright.executors.retrying import Backoff, retry, server_delay
from tilewright.loop.budget import Usage
from tilewright.loop.policies.base import Message, estimated_tokens
from tilewright.records.events import Ask, Reply

NO_KEY = "none"
"""The key for a server that needs none."""
RETRIED = (408, 409, 429)
"""HTTP codes below 500 after which a request is repeated."""
REFUSED = (400, 413, 422)
"""HTTP codes that concern one request, for example one that is too long."""
MAX_PAUSE_S, POLL_S = 60.0, 0.2
Answer = TypeVar("Answer")


class Chat:
    """One model of one server. Lifetime: one run. Safe to call from several threads.

    Raises:
        ConfigError: the package is missing, or the variable with the key is empty.
    """

    def __init__(
        self, name: str, section: ModelSection, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        try:
            import openai
        except ImportError as error:
            raise ConfigError(
                "a model behind a server needs the package openai: pip install 'tilewright[model]'"
            ) from error
        self.name, self._section, self._openai = name, section, openai
        self._warn = warn
        key = environment((section.key_variable,)).get(section.key_variable, "")
        if not key and section.base_url is None:
            raise ConfigError(
                f"model {name}: the environment variable {section.key_variable} is empty; set it, "
                "or name another one in model.key_variable, or a server in model.base_url"
            )
        scheme = urlsplit(section.base_url or "").scheme
        if section.base_url is not None and scheme not in ("http", "https"):
            raise ConfigError(
                f"model.base_url {section.base_url!r}: no address of a server; write it as "
                "http://localhost:8000/v1"
            )
        self._key = key or NO_KEY
        self._over = threading.Event()
        # This class makes the retries itself, so that it can stop them when the run ends.
        self._client = openai.OpenAI(
            api_key=self._key,
            base_url=section.base_url,
            timeout=section.timeout_s,
            max_retries=0,
        )
        self._concurrency = threading.BoundedSemaphore(section.concurrency)
        self._gap_s = 60.0 / section.requests_per_minute if section.requests_per_minute else 0.0
        self._lock = threading.Lock()
        self._next = 0.0
        """The monotonic time of the next request: requests are spread evenly."""

    def answer(self, messages: Sequence[Message], ask: Ask) -> Reply:
        """Return the model's reply. A failed request is repeated after a delay that doubles."""
        start, name = time.monotonic(), f"model {self.name}, {ask.id}"
        reply = self._repeated(name, lambda: self._requested(messages, ask))
        return reply.model_copy(update={"seconds": time.monotonic() - start})

    def embed(self, text: str) -> tuple[float, ...]:
        """Return the vector of a text by the server's model `model.embeddings`.

        Raises:
            PolicyError: the server gives none, also after the retries.
        """
        model = self._section.embeddings or ""

        def request() -> tuple[float, ...]:
            answer = self._client.embeddings.create(
                model=model, input=text, encoding_format="float"
            )
            try:
                return tuple(float(value) for value in answer.data[0].embedding)
            except (AttributeError, IndexError, TypeError, ValueError) as error:
                raise _Nonsense(f"no vector in {str(answer)[:200]!r}") from error

        return self._repeated(f"embeddings {model}", request)

    def _repeated(self, name: str, request: Callable[[], Answer]) -> Answer:
        """Send a request until it is answered; `name` begins the message of an error."""
        section = self._section

        def attempt() -> Answer:
            with self._concurrency:
                with self._lock:
                    now = time.monotonic()
                    begin = max(self._next, now)
                    self._next = begin + self._gap_s
                sleep(begin - now)
                return self._unless_over(request, name)

        def sleep(delay_s: float) -> None:
            if self._over.wait(delay_s):
                raise PolicyError(f"{name}: the run ends")

        def retry_after(error: Exception) -> float | None:
            least_s = self._retry_after(error)
            if least_s is not None and backoff.failed + 1 < attempts:
                tried = f"attempt {backoff.failed + 1} of {attempts}"
                self._warn(f"{name}: {self._cause(error)}; {tried}")
            return least_s

        attempts = section.retries + 1
        backoff = Backoff(section.retry_delay_s, attempts=attempts, max_delay_s=MAX_PAUSE_S)
        try:
            return retry(attempt, backoff, retry_after, sleep)
        except self._openai.OpenAIError as error:
            refused = getattr(error, "status_code", None) in REFUSED
            kind = ReplyRefused if refused else PolicyError
            raise kind(f"{name}: {self._cause(error)}") from error
        except (json.JSONDecodeError, _Nonsense) as error:
            raise PolicyError(f"{name}: the server's answer cannot be read: {error}") from error

    def _retry_after(self, error: Exception) -> float | None:
        """Return the seconds before the same request may be sent again, or `None` for never."""
        if isinstance(error, json.JSONDecodeError | _Nonsense):
            return 0.0
        if not isinstance(error, self._openai.OpenAIError):
            return None
        status = getattr(error, "status_code", None)
        again = status is None or status in RETRIED or status >= 500
        return server_delay(getattr(error, "response", None)) if again else None

    def _unless_over(self, call: Callable[[], Answer], name: str) -> Answer:
        """Make a request in a thread, so that the end of a run need not wait for the server."""
        future: Future[Answer] = Future()

        def run() -> None:
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the waiting thread gets it
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        # Not `result(timeout)`: its own TimeoutError looks like one of the request.
        while not wait((future,), POLL_S).done:
            if self._over.is_set():
                raise PolicyError(f"{name}: the run ends")
        return future.result()

    def _requested(self, messages: Sequence[Message], ask: Ask) -> Reply:
        section = self._section
        options: dict[str, Any] = {"max_tokens": section.max_tokens}
        for name in ("temperature", "top_p"):
            if (value := getattr(section, name)) is not None:
                options[name] = value
        if section.seed is not None:
            # Samples of one prompt must differ, and a run must be repeatable.
            options["seed"] = section.seed + 1000 * ask.sample + ask.turn
        sent: list[Any] = [{"role": item.role, "content": item.text} for item in messages]
        answer = self._client.chat.completions.create(
            model=self.name, messages=sent, extra_body=dict(section.extra_body) or None, **options
        )
        try:
            return self._reply(answer, messages)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise _Nonsense(f"{type(error).__name__}: {error}"[:300]) from error

    def _reply(self, answer: Any, messages: Sequence[Message]) -> Reply:  # noqa: ANN401 - their type
        choices = getattr(answer, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            raise _Nonsense(f"no choice in {str(answer)[:200]!r}")
        message, usage = choices[0].message, getattr(answer, "usage", None)
        text = message.content or ""
        given = (getattr(message, name, None) for name in ("reasoning_content", "reasoning"))
        reasoning = next((item for item in given if item and isinstance(item, str)), "")
        prompt = getattr(usage, "prompt_tokens", None)
        written = getattr(usage, "completion_tokens", None)
        if prompt is None:
            prompt = estimated_tokens(messages)
        if written is None:
            written = estimated_tokens([Message(role="assistant", text=text + reasoning)])
        return Reply(
            text=text,
            reasoning=reasoning,
            model=str(getattr(answer, "model", "") or self.name),
            prompt_tokens=prompt,
            reply_tokens=written,
            usd=self._usd(prompt, written),
            finish=str(choices[0].finish_reason or ""),
        )

    def max_cost(self, prompt_tokens: int) -> Usage:
        most = self._section.max_tokens
        return Usage(tokens=prompt_tokens + most, usd=self._usd(prompt_tokens, most))

    def _usd(self, prompt_tokens: int, reply_tokens: int) -> float:
        prompt_usd = prompt_tokens * self._section.usd_per_million_in
        return (prompt_usd + reply_tokens * self._section.usd_per_million_out) / 1e6

    @property
    def _address(self) -> str:
        """The address of the server, without a password."""
        found = urlsplit(str(self._client.base_url))
        return found._replace(netloc=found.netloc.rpartition("@")[2]).geturl()

    def close(self) -> None:
        """Stop waiting for answers, and close the connections."""
        self._over.set()
        self._client.close()

    def _cause(self, error: Exception) -> str:
        """Return the error in words, without the key, which a server may repeat."""
        status, body = getattr(error, "status_code", None), getattr(error, "body", None)
        text = body.get("message", "") if isinstance(body, dict) else ""
        cause = f"{type(error).__name__}: {error}" if status is None else f"HTTP {status} {text}"
        if isinstance(error, self._openai.APITimeoutError):
            cause = f"{self._address} gave no answer within {self._section.timeout_s:g} s"
        elif isinstance(error, self._openai.APIConnectionError):
            cause = f"no model server answers at {self._address}: {error.__cause__ or error}"
        if self._key != NO_KEY:
            cause = cause.replace(self._key, "[the key]")
        return " ".join(cause.split())[:300]


class _Nonsense(Exception):
    """An answer that does not follow the protocol."""
