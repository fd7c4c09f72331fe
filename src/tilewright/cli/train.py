"""`tilewright train`: learning from verdicts."""

from __future__ import annotations

import click

from tilewright.cli.train_replay import command as replay

__all__ = ["command"]


@click.group("train")
def command() -> None:
    """Train a model on verdicts."""


command.add_command(replay)
