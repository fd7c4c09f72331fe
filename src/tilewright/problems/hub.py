"""Datasets from the Hugging Face Hub, at the commit that a revision names at that time."""

from __future__ import annotations

from pathlib import Path

from tilewright.errors import ConfigError, ProblemError
from tilewright.problems.sets.base import Hub


def fetch(hub: Hub, revision: str, folder: Path) -> str:
    """Copy the parquet files of a dataset into `folder`; return revision and commit as one name."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import RevisionNotFoundError
    except ImportError as error:
        raise ConfigError(
            "fetching from the Hub needs the package huggingface_hub: "
            "pip install 'tilewright[data]'; or give a clone or a file of rows with --from PATH"
        ) from error
    api = HfApi()
    try:
        try:
            commit = str(api.dataset_info(hub.dataset, revision=revision).sha)
        except RevisionNotFoundError as error:
            refs = api.list_repo_refs(hub.dataset, repo_type="dataset")
            names = ", ".join(item.name for item in (*refs.branches, *refs.tags))
            text = f"--revision {revision}: {hub.dataset} has {names}, and whole commits"
            raise ProblemError(text) from error
        api.snapshot_download(
            hub.dataset,
            repo_type="dataset",
            revision=commit,
            allow_patterns="*.parquet",
            local_dir=folder,
        )
    except ProblemError:
        raise
    except Exception as error:
        # The package has an exception each for network, proxy, rights and a moved dataset.
        raise ProblemError(
            f"{hub.dataset} cannot be fetched ({type(error).__name__}: {str(error)[:200]}); "
            "without network give a clone or a file of its rows with --from PATH"
        ) from error
    return f"{revision}-{commit[:12]}"
