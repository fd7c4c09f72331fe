"""Python files written from templates of jinja2, which the base install lacks."""

from __future__ import annotations

import ast
from contextlib import suppress
from pathlib import Path

from tilewright.errors import ConfigError


def require_templates(what: str) -> None:
    """Raise a ConfigError unless jinja2 is installed; `what` names the file to be written."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"{what} is written with jinja2, which is not installed: "
            "pip install 'tilewright[templates]'"
        ) from error


def render_python(template: Path, **values: object) -> str:
    """Return the text of a template with `values` in it.

    A value is inserted as it is. The filter `literal` makes a Python literal of it, and `source`
    a readable literal of a source text.
    """
    require_templates(template.stem)
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"literal": repr, "source": quoted}
    return environment.from_string(template.read_text(encoding="ascii")).render(values)


def quoted(text: str) -> str:
    """Return a literal of `text`, in a readable form if possible."""
    for mark in ('"""', "'''"):
        raw = f"r{mark}{text}{mark}"
        with suppress(SyntaxError, ValueError):
            if ast.literal_eval(raw) == text:
                return raw
    lines = text.splitlines(keepends=True) or [""]
    return "(\n" + "".join(f"        {line!a}\n" for line in lines) + "    )"
