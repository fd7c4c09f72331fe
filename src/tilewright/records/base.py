"""The base of every record: immutable, without unknown fields, NaN or infinity."""

from __future__ import annotations

import hashlib
import json
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from tilewright.errors import RecordError
from tilewright.records.field_faults import first_fault
from tilewright.records.version1 import upgrade

SCHEMA_VERSION: Final = 2


def is_text(value: str) -> bool:
    """Tell whether a string can be encoded as UTF-8, unlike some file names and JSON texts."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def digest_text(text: str) -> str:
    """Return the sha256 of `text` in UTF-8, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_json(payload: object) -> str:
    """Return the sha256 of canonical JSON (sorted keys, no spaces)."""
    return digest_text(json.dumps(payload, sort_keys=True, separators=(",", ":")))


_OF_PYDANTIC = {name for name in dir(BaseModel) if not name.startswith("_")}


class Record(BaseModel):
    """Base of all records. It refuses unknown fields, NaN and infinity."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="strings"
    )

    def __dir__(self) -> list[str]:
        """Return the names without those of pydantic, so that completion shows the record's."""
        return [name for name in super().__dir__() if name not in _OF_PYDANTIC]

    def digest(self) -> str:
        """Return the sha256 of the record's canonical JSON (sorted keys, no spaces)."""
        return digest_json(self.model_dump(mode="json"))

    def to_json(self, *, indent: int | None = None) -> str:
        """Return JSON that `from_json` turns back into an equal record."""
        return self.model_dump_json(indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a record.

        Raises:
            RecordError: the text is not JSON, not this record, or of a newer schema.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            return cls._from_older(text, error)

    @classmethod
    def _from_older(cls, text: str | bytes, error: ValidationError) -> Self:
        """Read a document of another version: upgrade an older one, refuse every other one."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict):
            version = document.get("schema_version")
            if isinstance(version, int) and version > SCHEMA_VERSION:
                raise RecordError(newer(version)) from error
            try:
                return cls.model_validate_json(json.dumps(upgrade(cls, document)))
            except ValidationError as again:
                error = again
        raise RecordError(f"damaged: {first_fault(error)}") from error


def newer(version: int) -> str:
    """Return why a document of a newer schema is refused."""
    reads = f"this tilewright reads up to {SCHEMA_VERSION}"
    return f"written with schema version {version}, {reads}; upgrade tilewright to read it"
