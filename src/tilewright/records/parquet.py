"""Rows of parquet files, without a whole file in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tilewright.errors import ConfigError, RecordError

LeftOut = Callable[[str], None]
"""Called with each skipped line, row or range of rows, and the reason."""
BATCH = 256
"""Rows in memory at the same time."""
MAX_ERROR = 300


def parquet_rows(path: Path, left_out: LeftOut) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each row of a parquet file (`FILE[ROW]`), and the row.

    NaN and infinity are read as `None`.

    Raises:
        ConfigError: pyarrow is missing.
        RecordError: the file is not parquet, or incomplete.
    """
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigError(
            f"{path}: reading parquet needs pyarrow: pip install 'tilewright[data]'"
        ) from error
    try:
        file = parquet.ParquetFile(path)
    except Exception as error:
        # pyarrow has its own exceptions for each kind of damage.
        raise RecordError(f"{path}: not parquet: {error}"[:MAX_ERROR]) from error
    with file:
        first = 0
        for group in range(file.num_row_groups):
            after = first + file.metadata.row_group(group).num_rows
            try:
                for batch in file.iter_batches(batch_size=BATCH, row_groups=[group]):
                    for row in batch.to_pylist():
                        yield f"{path}[{first}]", _finite(row)
                        first += 1
            except Exception as error:  # noqa: BLE001 - as above
                left_out(f"{path}[{first}..{after - 1}]: cannot be read: {error}"[:MAX_ERROR])
            first = after


def _finite(value: Any) -> Any:  # noqa: ANN401 - whatever parquet holds
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
