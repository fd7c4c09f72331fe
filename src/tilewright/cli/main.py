"""The entry point: verbs, exit codes, and one clear line for every error."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from tilewright._version import __version__
from tilewright.cli.output import print_error, print_line
from tilewright.cli.renamed_options import with_new_names
from tilewright.cli.usage_errors import CommandGroup, usage_text
from tilewright.errors import (
    FAILED_DISK,
    NO_ROOM,
    ConfigError,
    DiskFailed,
    TilewrightError,
    reason_of,
)

VERBS = (
    *("demo", "doctor", "eval", "explain", "problems", "bench", "optimize", "view", "mcp"),
    *("report", "compare", "data", "train", "serve", "knowledge", "host", "integrations"),
)
"""Each verb is a module of this package, which is imported when the verb is used."""
INTERRUPTED = 130


class Tool(CommandGroup):
    """A group whose errors are one line and whose exit codes are those of `tilewright.errors`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"tilewright.cli.{cmd_name}").command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments under the present names of options."""
        return super().parse_args(ctx, with_new_names(args))

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:  # noqa: ANN401
        """Run a verb; exit with its code, or return it where `standalone_mode` is off."""
        try:
            result: object = super().main(*args, standalone_mode=False, **extra)  # type: ignore[call-overload]
            code = result if isinstance(result, int) else 0
        except (click.Abort, KeyboardInterrupt):
            print_line("interrupted")
            code = INTERRUPTED
        except click.UsageError as error:
            print_error(usage_text(error))
            code = 2
        except click.ClickException as error:
            print_error(error.format_message())
            code = 2
        except TilewrightError as error:
            print_error(str(error))
            code = error.exit_code
        except OSError as error:
            # A file of the user that the system refuses. Any other error is our own.
            if error.filename is None:
                raise
            print_error(f"{error.filename}: {reason_of(error)}")
            passing = error.errno in (*NO_ROOM, *FAILED_DISK)
            code = DiskFailed.exit_code if passing else ConfigError.exit_code
        if standalone_mode:
            sys.exit(code)
        return code


@click.group("tilewright", cls=Tool, invoke_without_command=True)
@click.version_option(__version__, prog_name="tilewright", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Judge GPU kernels, improve them with a model, and train models to write them.

    The exit code is 0 if the result is correct or the work is done. It is 1 if a verdict is not
    correct, or a required speed-up was missed. Errors have a code each: 2 a setting, option or
    input, 3 the problem, 4 unjudged, 5 the model, 6 a record. An interrupt has code 130.
    """
    if sys.platform != "linux":
        usable = "explain, problems, records and reports work here; judging needs Linux"
        print_line(f"this is {sys.platform}: {usable}")
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> None:
    cli()


if __name__ == "__main__":
    main()
