"""Messages about wrong words on the command line, and groups that suggest a sub-command."""

from __future__ import annotations

import click

from tilewright.errors import suggestion


class CommandGroup(click.Group):
    """A group of commands; a message about an unknown one names the most similar."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            hint = suggestion(name, known) or f"the commands are {', '.join(known)}"
            raise UnknownCommand(f"no such command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


class UnknownCommand(click.UsageError):
    """A group has no command of that name; the message is whole."""


def usage_text(error: click.UsageError) -> str:
    """Return what is wrong with a command line, and where its options are listed."""
    path = error.ctx.command_path if error.ctx is not None else "tilewright"
    if isinstance(error, UnknownCommand):
        return f"{error.message} ({path} --help lists every command)"
    return f"{_fault(error)} ({path} --help lists every option)"


def _fault(error: click.UsageError) -> str:
    params = error.ctx.command.params if error.ctx is not None else []
    if isinstance(error, click.NoSuchOption):
        known = [name for param in params for name in param.opts if name.startswith("--")]
        hint = suggestion(error.option_name, known)
        return "; ".join(filter(None, (f"no such option {error.option_name}", hint)))
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_name(error.param)} is missing"
    if isinstance(error, click.BadParameter) and error.param is not None:
        return f"{_name(error.param)}: {_sentence(error.message)}"
    return _sentence(error.format_message())


def _name(param: click.Parameter) -> str:
    """Return an option as it is written, or an argument as the help shows it."""
    if isinstance(param, click.Option):
        return param.opts[0]
    return param.metavar or (param.name or "").upper()


def _sentence(text: str) -> str:
    """Return a message of click as a part of a line of ours."""
    return text[:1].lower() + text[1:].rstrip(".")
