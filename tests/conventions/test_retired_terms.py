"""The rename table holds: a retired term occurs nowhere but in the tables of old names."""

from __future__ import annotations

import pytest

from tests.conventions.retired import Row, occurrences, table

ENFORCED = [row for row in table() if row.enforced]


def places(row: Row) -> list[str]:
    return [f"{term}: {place}" for scope, term in row.terms for place in occurrences(scope, term)]


def test_the_table_has_every_row_of_the_renaming():
    assert [row.row for row in table()] == list(range(1, 208))


def test_at_least_180_rows_are_enforced():
    assert len(ENFORCED) >= 180


@pytest.mark.parametrize("row", table(), ids=lambda row: str(row.row))
def test_each_row_has_terms_or_the_reason_of_its_exception(row):
    assert row.terms if row.enforced else row.reason
    assert row.enforced or not row.pending


@pytest.mark.parametrize("row", ENFORCED, ids=lambda row: f"{row.row}: {row.old[:40]}")
def test_a_retired_term_occurs_nowhere_unless_its_row_is_pending(row):
    found = places(row)
    if row.pending:
        assert found, "nothing of this row occurs any more: remove `pending`"
    else:
        assert not found
