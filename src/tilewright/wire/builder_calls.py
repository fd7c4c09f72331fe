"""One call of torch's extension builders, as plain data that can be built in another process."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

Argument = str | int | bool | None | list[str] | dict[str, str]
"""The value of an argument: every one that torch's builders know has one of these types."""
BUILDERS = ("load_inline", "load")
"""The functions of `torch.utils.cpp_extension` that build an extension and load it."""
CALL_FILE = "tilewright-extension-call.json"
"""File among those of a build in which the call to make arrives."""
DIGEST_CHARS = 64


@dataclass(frozen=True)
class BuilderCall:
    """A call of one of `BUILDERS`.

    Attributes:
        builder: the function's name.
        name: the extension's name, which may change from process to process.
        arguments: the other arguments, without defaults and without where and how loudly to build.
        files: text of each source and header by its path below the candidate's folder.
    """

    builder: str
    name: str
    arguments: dict[str, Argument]
    files: dict[str, str] = field(default_factory=dict)

    def digest(self) -> str:
        """Return what identifies the library: a digest of all but the name."""
        parts = [self.builder, self.arguments, self.files]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def encoded(self) -> bytes:
        """Return the call as JSON."""
        return json.dumps(vars(self), sort_keys=True).encode()

    @classmethod
    def decoded(cls, data: bytes) -> BuilderCall:
        """Return the call that `encoded` wrote; the data must come from a process of ours."""
        return cls(**json.loads(data))


def artifact_key(digest: str, module: str) -> str:
    """Return the key of a library among the artifacts; without a module: of a build that failed."""
    return f"{digest} {module}"


def split_key(key: str) -> tuple[str, str]:
    """Return digest and module of a key."""
    return key[:DIGEST_CHARS], key[DIGEST_CHARS + 1 :]


def is_failed(key: str) -> bool:
    """Tell whether a key is that of a failed build's compiler output."""
    return len(key) == DIGEST_CHARS + 1 and key.endswith(" ")
