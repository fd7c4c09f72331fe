"""Datasets from the Hugging Face Hub, at the commit that a revision stands for on that day."""

from __future__ import annotations

import json
from pathlib import Path

from tilewright.errors import ConfigError, ProblemError
from tilewright.problems.sets.base import Hub

__all__ = ["fetch"]


def fetch(hub: Hub, revision: str, folder: Path) -> tuple[Path, str]:
    """Write the rows of a dataset as JSON lines into `folder`.

    Returns the file, and a name of what was fetched: the revision, and the commit that it was.

    Raises:
        ConfigError: the package `datasets` is not installed.
        ProblemError: the Hub cannot be reached, or has no such dataset or revision.
    """
    try:
        from datasets import load_dataset
        from huggingface_hub import HfApi
    except ImportError as error:
        raise ConfigError(
            "fetching from the Hub needs the package datasets: pip install 'tilewright[data]'; "
            "or give a clone or a file of rows with --from PATH"
        ) from error
    path = folder / "rows.jsonl"
    try:
        commit = str(HfApi().dataset_info(hub.dataset, revision=revision).sha)
        with open(path, "w", encoding="utf-8") as file:
            for split in hub.splits:
                for row in load_dataset(hub.dataset, split=split, revision=commit):
                    file.write(json.dumps(row) + "\n")
    except Exception as error:
        # Network, proxy, rights, a moved dataset: the packages have an exception for each.
        raise ProblemError(
            f"{hub.dataset} cannot be fetched ({type(error).__name__}: {str(error)[:200]}); "
            "without network give a clone or a file of its rows with --from PATH"
        ) from error
    return path, f"{revision}-{commit[:12]}"
