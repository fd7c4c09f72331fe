"""Rows in files, JSON lines and parquet, without a whole file in memory.

A row that cannot be read or written is named by file and place, and skipped.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Self

from tilewright.errors import ConfigError, writing
from tilewright.records.field_faults import json_damage
from tilewright.records.parquet import LeftOut, parquet_rows

Row = dict[str, Any]
ANY = "any"
"""In a shape: a scalar with the type of the first rows."""
BATCH = 256
"""Rows that are held at once."""
MAX_ERROR = 300


def read_rows(path: Path, left_out: LeftOut) -> Iterator[tuple[str, Row]]:
    """Yield the place of each row of a file (`FILE:LINE` or `FILE[ROW]`), and the row.

    A file is `.parquet`, or else JSON lines, in which NaN and infinity are read as `None`.
    `left_out` is called with each row, or range of rows, that cannot be read.

    Raises:
        ConfigError: there is no such file, or pyarrow is missing.
        RecordError: nothing of it can be read.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: no such file")
    if path.suffix == ".parquet":
        yield from parquet_rows(path, left_out)
        return
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                row = json.loads(line, parse_constant=lambda _: None)
            except (ValueError, RecursionError) as error:
                torn = "" if line.endswith(b"\n") else "cut off, "
                left_out(f"{where}: {torn}{json_damage(error)}"[:MAX_ERROR])
                continue
            if isinstance(row, dict):
                yield where, row
            else:
                left_out(f"{where}: not an object")


class RowWriter:
    """Writes rows to a file. Lifetime: one file, which appears after the last row.

    `path` is `FILE.jsonl`, `FILE.parquet`, or a folder that `datasets.load_from_disk` reads.
    A shape is a type of arrow (`string`, `double`, `int64`, `bool`), `ANY`, a list of one shape, or
    a mapping of shapes. JSON lines need none. `left_out` is called with each row of another shape.

    Raises:
        ConfigError: the suffix is unknown, a package is missing, or the file cannot be written.
    """

    def __init__(
        self, path: Path, shape: Mapping[str, Any], left_out: LeftOut = lambda _: None
    ) -> None:
        if path.suffix not in (".jsonl", ".parquet", ""):
            raise ConfigError(f"{path}: FILE.jsonl, FILE.parquet, or a folder without a suffix")
        self.count = 0
        self._path, self._shape, self._left_out = path, shape, left_out
        self._waiting: list[Row] = []
        self._table: Any = None
        suffix = path.suffix or ".parquet"
        for package, needed in (("pyarrow", suffix == ".parquet"), ("datasets", not path.suffix)):
            if needed and find_spec(package) is None:
                raise ConfigError(f"this file needs {package}: pip install 'tilewright[data]'")
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # A file can be moved from a folder next to it in one step.
            self._place = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        self._fresh = self._place / f"rows{suffix}"
        self._text: IO[str] | None = None
        if suffix == ".jsonl":
            self._text = open(self._fresh, "w", encoding="utf-8")  # noqa: SIM115 - see `__exit__`

    def write(self, row: Row, where: str = "") -> None:
        """Write a row.

        Raises:
            ConfigError: the disk is full.
        """
        if self._text is None:
            self._waiting.append(row)
            if len(self._waiting) >= BATCH:
                self._flush()
            return
        try:
            line = json.dumps(row, allow_nan=False)
        except (TypeError, ValueError) as error:
            self._left_out(f"{where or self.count}: {error}"[:MAX_ERROR])
            return
        with writing(self._path):
            self._text.write(f"{line}\n")
        self.count += 1

    def _flush(self) -> None:
        import pyarrow
        from pyarrow import parquet

        rows, self._waiting = self._waiting, []
        if self._table is None:
            schema = pyarrow.schema(_fields(self._shape, rows))
            self._table = parquet.ParquetWriter(self._fresh, schema)
        try:
            table = pyarrow.Table.from_pylist(rows, self._table.schema)
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            table = pyarrow.Table.from_pylist(
                [r for r in rows if self._fits(r)], self._table.schema
            )
        with writing(self._path):
            self._table.write_table(table)
        self.count += table.num_rows

    def _fits(self, row: Row) -> bool:
        import pyarrow

        try:
            pyarrow.Table.from_pylist([row], self._table.schema)
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
            self._left_out(f"{row.get('id', '')}: does not fit: {error}"[:MAX_ERROR])
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Move the file to its place, or remove it after an error."""
        try:
            if kind is None:
                with writing(self._path):
                    self._finish()
        finally:
            if self._text is not None:
                self._text.close()
            shutil.rmtree(self._place, ignore_errors=True)

    def _finish(self) -> None:
        if self._text is not None:
            self._text.close()
        else:
            # Without rows the file still has a schema.
            self._flush()
            self._table.close()
        if self._path.suffix:
            self._fresh.replace(self._path)
            return
        import datasets

        found = datasets.Dataset.from_parquet(str(self._fresh), cache_dir=str(self._place / "c"))
        found.save_to_disk(str(self._path))


def _fields(shape: Mapping[str, Any], rows: list[Row]) -> list[tuple[str, Any]]:
    return [(name, _arrow_type(part, [r.get(name) for r in rows])) for name, part in shape.items()]


def _arrow_type(shape: Any, values: list[Any]) -> Any:  # noqa: ANN401 - a shape, a type of arrow
    """Return the arrow type of a shape; the `values` decide the type of `ANY`."""
    import pyarrow

    if isinstance(shape, Mapping):
        rows = [value for value in values if isinstance(value, dict)]
        return pyarrow.struct(_fields(shape, rows))
    if isinstance(shape, list):
        inner = [item for value in values if isinstance(value, list) for item in value]
        return pyarrow.list_(_arrow_type(shape[0], inner))
    if shape == ANY:
        kinds = {type(value) for value in values if value is not None}
        names = {bool: "bool", int: "int64", float: "double"}
        shape = names.get(kinds.pop(), "string") if len(kinds) == 1 else "string"
    return pyarrow.type_for_alias(shape)
