"""Python files that are written from templates of jinja2.

jinja2 is no dependency of the base install. Only the files that it writes are missing without it.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tilewright.errors import ConfigError


def require_templates(what: str) -> None:
    """Do nothing if Python files can be written; `what` names the file in the error.

    Raises:
        ConfigError: jinja2 is not installed.
    """
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

    Raises:
        ConfigError: jinja2 is not installed.
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
        try:
            if ast.literal_eval(raw) == text:
                return raw
        except (SyntaxError, ValueError):
            continue
    lines = text.splitlines(keepends=True) or [""]
    return "(\n" + "".join(f"        {line!a}\n" for line in lines) + "    )"
