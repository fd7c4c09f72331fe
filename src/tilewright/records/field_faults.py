"""Faults of the values of a record, in words of ours: no text of the validator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from tilewright.errors import reason_of

MAX_VALUE = 80
"""Most characters of a wrong value that a message quotes."""
_KINDS = {
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "fields"),
    **dict.fromkeys(("string_type", "string_unicode"), "text"),
    **dict.fromkeys(("path_type", "path_parsing"), "a path"),
    "finite_number": "a finite number",
}
_LIMITS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}


def fault_text(fault: Mapping[str, Any], *, quotes: bool = True) -> str:
    """Return what is wrong with one value; `fault` is a row of `ValidationError.errors()`.

    `quotes` tells whether the text may hold the value.
    """
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "value_error":
        return str(context.get("error", fault["msg"]))
    expected = _expected(kind, context)
    if not expected:
        return str(fault["msg"])
    return f"expected {expected}" + (f", got {quoted(fault['input'])}" if quotes else "")


def _expected(kind: str, context: Mapping[str, Any]) -> str:
    limits = [f"{words} {_shown(context[key])}" for key, words in _LIMITS.items() if key in context]
    unit = "characters" if kind.startswith("string_") else "items"
    counts = [
        f"{words} {context[key]} {unit}"
        for key, words in (("min_length", "at least"), ("max_length", "at most"))
        if key in context
    ]
    return _KINDS.get(kind) or context.get("expected") or " and ".join(limits or counts)


def _shown(limit: object) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def quoted(value: object) -> str:
    """Return a value as Python writes it, cut to a length that a message can hold."""
    text = repr(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."


def damage_of(error: Exception) -> str:
    """Return why a row or line cannot be used, whatever its reader raised, in words."""
    if isinstance(error, ValidationError):
        return first_fault(error)
    if isinstance(error, KeyError):
        return f"the field `{error.args[0]}` is missing"
    if isinstance(error, OSError | ValueError | RecursionError):
        return reason_of(error)
    return str(error)


def json_damage(error: ValueError | RecursionError) -> str:
    """Return why a text cannot be parsed as JSON."""
    text = reason_of(error)
    says_so = isinstance(error, json.JSONDecodeError | UnicodeDecodeError)
    return text if says_so else f"not JSON: {text}"


def first_fault(error: ValidationError, names: Mapping[str, str] | None = None) -> str:
    """Return the first fault of a document, with the path of its field.

    `names` maps fields to the names that the author of the document knows.
    """
    fault = error.errors()[0]
    parts = [(names or {}).get(part, part) for part in map(str, fault["loc"])]
    return with_path(".".join(parts), fault)


def with_path(path: str, fault: Mapping[str, Any], *, quotes: bool = True) -> str:
    """Return a fault and the field that has it."""
    if fault["type"] == "missing":
        return f"the field `{path}` is missing"
    if fault["type"] == "extra_forbidden":
        return f"there is no field `{path}`"
    if fault["type"] == "json_invalid":
        return "not JSON"
    text = fault_text(fault, quotes=quotes)
    return f"{path}: {text}" if path else text
