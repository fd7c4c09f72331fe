"""Requests of a runner for extensions that were not built: what may be asked, when, and how often.

A request makes the evaluation begin again. A candidate could use that to be judged on other inputs,
or to be timed anew. So it may request a build only before it has answered a first call of a size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from tilewright.evaluator.context import RequestedBuild
from tilewright.evaluator.runners.messages import SelfReported, Text
from tilewright.records.codes import FailureReason
from tilewright.wire.builder_calls import BuilderCall

MAX_REQUESTS = 8
"""Extensions that an implementation may ask for, each of which costs one more evaluation. Published
candidates build one or two."""
MAX_REQUEST_BYTES = 4 << 20
"""Bytes of a request, whose sources are text: it bounds what a hostile runner makes us parse."""
LOADING = "load"
"""Name of the time before the first call of a process, next to the names of cases."""
_Source = Annotated[str, Field(max_length=MAX_REQUEST_BYTES)]
_Listed = Annotated[list[_Source], Field(max_length=1024)]
_Named = Annotated[dict[Text, Text], Field(max_length=1024)]


class RequestedCall(SelfReported):
    """The schema of a request."""

    builder: Literal["load_inline", "load"]
    name: Annotated[str, Field(pattern=r"^\w[\w.-]{0,199}$")]
    arguments: Annotated[
        dict[Text, _Source | bool | int | _Listed | _Named | None], Field(max_length=32)
    ]
    files: Annotated[dict[Text, _Source], Field(max_length=256)]


class BuildRequested(Exception):
    """An evaluation has to begin again with one more build. It is control flow, not an error."""

    def __init__(self, build: RequestedBuild) -> None:
        super().__init__(f"extension {build.call.name!r} is built first")
        self.build = build


class BuildRequests:
    """The builds that one runner may request, and when. Lifetime: the runner."""

    def __init__(
        self,
        implementation: str,
        left: int = 0,
        built: Iterable[str] = (),
        *,
        always: bool = False,
    ) -> None:
        self._implementation, self._left, self._built = implementation, left, frozenset(built)
        self._always = self._accepted = always
        self._answered: set[str] = set()

    def begin(self, call: str) -> None:
        """Accept requests while a process is loaded, or makes its first call of a case."""
        self._accepted = self._always or call not in self._answered

    def end(self, call: str) -> None:
        """Accept no requests any more."""
        self._answered.add(call)
        self._accepted = self._always

    def refusal(self, body: bytes) -> tuple[FailureReason, str]:
        """Raise `BuildRequested` if the request in `body` is allowed; else say why it is not."""
        if len(body) > MAX_REQUEST_BYTES:
            text = (
                f"the sources of an extension have {len(body)} bytes, at most {MAX_REQUEST_BYTES}"
            )
            return FailureReason.BUILD, text
        try:
            call = read_call(body)
        except ValidationError as error:
            return FailureReason.PROTOCOL_VIOLATION, f"unbuilt: {error.errors()[0]['msg']}"
        if call.digest() in self._built:
            return FailureReason.PROTOCOL_VIOLATION, "it asked for an extension that it has"
        if not self._accepted:
            text = "at import, in the constructor or in the first call of a size"
            return FailureReason.BUILD, f"extension {call.name!r} must be built {text}"
        if self._left <= 0:
            text = f"it builds more than {MAX_REQUESTS} extensions after its import"
            return FailureReason.BUILD, text
        raise BuildRequested(RequestedBuild(self._implementation, call))


def read_call(body: bytes) -> BuilderCall:
    """Return the call in a request, or raise `ValidationError`."""
    return BuilderCall(**RequestedCall.model_validate_json(body).model_dump())
