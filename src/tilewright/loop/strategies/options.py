"""Reading a strategy's own options, with an error that says what there is."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tilewright.errors import ConfigError

__all__ = ["Options"]


class Options(BaseModel):
    """Base of the options of one strategy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def read(cls, strategy: str, given: dict[str, Any]) -> Any:  # noqa: ANN401 - of the caller's class
        """Return the options that were given, with defaults for the rest.

        Raises:
            ConfigError: one is unknown or out of range.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            known = ", ".join(cls.model_fields) or "none"
            raise ConfigError(
                f"strategy {strategy}, option {name!r}: {first['msg']}; its options: {known}"
            ) from error
