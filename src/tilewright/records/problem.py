"""A problem: its cases, and the source of its reference."""

from __future__ import annotations

import base64
import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from tilewright.records.base import Record, digest_json

NEWER_FIELDS = ("tolerances", "licence", "candidate_files")
"""Fields that came after the first stored verdicts. A problem without them keeps its digest."""
MAX_NAME_CHARS, MAX_PATH_CHARS = 200, 400
Scalar = bool | int | float | str
_NAME = r"[A-Za-z0-9_.\-](?:[A-Za-z0-9_.\- ]*[A-Za-z0-9_.\-])?"
_SAFE_PATH = re.compile(rf"^{_NAME}(/{_NAME})*$")


class SourceFile(Record):
    """One file of source text or data, by a relative path without `..`."""

    path: str
    text: str
    encoding: Literal["utf-8", "base64"] = "utf-8"
    """How `text` holds the bytes of the file. Only a data file that is not UTF-8 is in base64."""

    @classmethod
    def of_bytes(cls, path: str, data: bytes) -> Self:
        """Return a file with these bytes: as text if they are UTF-8, else in base64."""
        try:
            return cls(path=path, text=data.decode("utf-8"))
        except UnicodeDecodeError:
            return cls(path=path, text=base64.b64encode(data).decode("ascii"), encoding="base64")

    @property
    def data(self) -> bytes:
        """Return the bytes of the file."""
        return base64.b64decode(self.text) if self.encoding == "base64" else self.text.encode()

    @field_validator("text")
    @classmethod
    def _text_can_be_written(cls, value: str) -> str:
        # Models write halves of surrogate pairs, which have no UTF-8 encoding.
        return value.encode("utf-8", "replace").decode()

    @field_validator("path")
    @classmethod
    def _path_is_relative(cls, value: str) -> str:
        if not _SAFE_PATH.match(value) or ".." in value.split("/"):
            raise ValueError(f"{value!r} is not a plain relative path")
        if max(map(len, value.split("/"))) > MAX_NAME_CHARS or len(value) > MAX_PATH_CHARS:
            raise ValueError(f"{value[:60]!r}... is longer than a file name may be")
        return value

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        # One content has one form, hence one digest; and no source hides from those who read it.
        if self.encoding == "base64":
            try:
                data = base64.b64decode(self.text, validate=True)
            except ValueError as error:
                raise ValueError(f"{self.path!r} is not base64: {error}") from error
            if base64.b64encode(data).decode("ascii") != self.text:
                raise ValueError(f"{self.path!r} is not in the usual form of base64")
            if _is_utf8(data):
                raise ValueError(f"{self.path!r} is text: its encoding is utf-8, not base64")
        return self


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


BY_SUMS = ("by_dtype", "runs")
"""Comparisons of benchmarks whose speed-up over cases is a ratio of sums."""


class Case(Record):
    """One size of a problem: a name and the parameters handed to its input generator."""

    name: str
    params: dict[str, Scalar] = Field(default_factory=dict)


class Problem(Record):
    """A reference and the cases on which a candidate must agree with it.

    `kind` is `module` (KernelBench: `Model`, `get_inputs`, `get_init_inputs`) or `function`
    (`reference`, `inputs`, `CASES`). Only the judge runs the source.
    """

    id: str
    revision: str = ""
    category: str = ""
    """Kind of operator, if the benchmark names it."""
    description: str = ""
    """Text of the task in the benchmark, by which prediction files identify the problem."""
    kind: Literal["module", "function"]
    source: SourceFile
    entry: str
    """The name a candidate must export: `ModelNew`, or the function's name."""
    cases: tuple[Case, ...] = Field(min_length=1)
    mode: Literal["train", "eval"] = "train"
    """Whether modules run as `.train()` (the benchmark's default) or `.eval()`."""
    precision: Literal["fp32", "tf32", "fp16", "bf16"] = "tf32"
    grads: tuple[str, ...] = ()
    """Arguments of the reference whose gradients are also outputs."""
    writable_inputs: tuple[str, ...] = ()
    """Arguments that a candidate may overwrite; the judge restores them. It may also overwrite the
    arguments that the reference overwrites on the same inputs."""
    compares_overwritten: bool = False
    """Whether arguments that the reference overwrites are outputs too. They always are where it
    returns no tensor."""
    buffers: tuple[str, ...] = ()
    """Buffers of the reference that a candidate receives through `load_state_dict`, by name or by a
    pattern of `fnmatch`: quantised weights. `strict` changes their order first."""
    keyword_args: tuple[str, ...] = ()
    """Arguments passed by name: the last ones of the inputs, in this order."""
    input_variations: tuple[str, ...] | None = None
    """Input variations that the problem allows; `None`: all of them."""
    size_ranges: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """Case parameters that may vary, with inclusive bounds, for hidden sizes."""
    tolerance: float | None = Field(default=None, gt=0)
    """The benchmark's published absolute and relative tolerance, for `official`."""
    official_comparison: Literal["allclose", "by_dtype", "elementwise", "runs"] = "allclose"
    """How `official` compares. `allclose` uses `tolerance` on five inputs (KernelBench). `by_dtype`
    uses the tolerances of KernelBench-X on one input. `elementwise` uses `tolerances` element by
    element, where NaN equals NaN (GPU MODE). `runs` compares nothing: TritonBench
    compares printed text, and these tests print nothing."""
    thresholds: tuple[float, float, float] | None = None
    """Limits of a quantization task of KernelBench-X: the smallest cosine, the largest relative L1
    distance, and the largest root mean square error. They replace other tolerances."""
    tolerances: tuple[float, float] | None = None
    """Relative and absolute tolerance of the comparison `elementwise`."""
    licence: str = ""
    """Licence of the source, if it restricts what users may do with it."""
    candidate_files: tuple[SourceFile, ...] = ()
    """Modules that a candidate may import; it gets those that it names."""
    aliases: tuple[str, ...] = ()
    """Other names that the benchmark accepts for `entry`."""

    def digest(self) -> str:
        """Return the sha256 of the problem's canonical JSON (sorted keys, no spaces).

        A field of `NEWER_FIELDS` with its default is left out.
        """
        payload, fields = self.model_dump(mode="json"), type(self).model_fields
        unused = {name for name in NEWER_FIELDS if getattr(self, name) == fields[name].default}
        return digest_json({name: value for name, value in payload.items() if name not in unused})
