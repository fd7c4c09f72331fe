"""Rows survive import and export; damage affects only the rows that it hits."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tilewright.loop.table_input import RowWriter, read_rows
from tilewright.rl.data import drkernel_rows
from tilewright.rl.data.exports import FORMATS, ExportPlan, export
from tilewright.rl.data.imports import import_rows
from tilewright.rl.data.programs import MIN_SIMILARITY, SeenPrograms, canonical, similarity, sketch

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
WORDS = TEXT.filter(bool)
SOURCE = st.integers(0, 3).map(
    lambda n: (
        f"class Model:\n    def forward(self, x):\n        return x + {n}\n\n\n"
        "def get_inputs():\n    return [1]\n"
    )
)
NUMBER = st.integers(-(2**62), 2**62)
REAL = st.none() | st.floats(allow_nan=False, allow_infinity=False)


def talk(turns):
    said = [item for asked, answer in turns for item in (("user", asked), ("assistant", answer))]
    return [{"role": role, "content": text} for role, text in said]


COLDSTART = st.fixed_dictionaries(
    {
        "messages": st.lists(st.tuples(WORDS, TEXT), min_size=1, max_size=5).map(talk),
        "uuid": st.integers(0, 4),
        "entry_point": st.just("Model"),
        "repo_name": TEXT,
        "module_name": TEXT,
        "final_speedup": REAL,
        "num_rounds": NUMBER,
        "original_python_code": SOURCE,
        "best_round": st.none() | st.integers(1, 5),
        "timestamp": REAL,
        "conversion_mode": TEXT,
        "enable_thinking": st.booleans(),
    }
)


def asking(extra):
    return st.fixed_dictionaries(
        {
            "data_source": TEXT,
            "prompt": WORDS.map(lambda text: [{"role": "user", "content": text}]),
            "ability": TEXT,
            "reward_model": st.fixed_dictionaries({"ground_truth": SOURCE, "style": TEXT}),
            "extra_info": extra,
        }
    )


RL = asking(
    st.fixed_dictionaries(
        {
            "entry_point": TEXT,
            "level": st.none() | NUMBER,
            "module_name": TEXT,
            "ops": TEXT,
            "original_prompt": st.none() | TEXT,
            "repo_name": TEXT,
            "type": st.none() | TEXT,
            "uuid": st.integers(0, 4),
        }
    )
)
VALIDATION = asking(
    st.fixed_dictionaries({"difficulty": st.none(), "name": TEXT, "problem_id": st.integers(0, 4)})
)
ROWS = {"drkernel-coldstart": COLDSTART, "drkernel-rl": RL, "drkernel-validation": VALIDATION}


def plain(row):
    return json.dumps(row, sort_keys=True)


def read(path):
    return [row for _, row in read_rows(path, pytest.fail)]


def write(path, kind, rows):
    with RowWriter(path, FORMATS[kind], pytest.fail) as writer:
        for row in rows:
            writer.write(row)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("kind", drkernel_rows.FORMATS)
@settings(max_examples=12)
@given(data=st.data())
def test_drkernel_rows_survive_import_and_export(kind, suffix, data):
    rows = data.draw(st.lists(ROWS[kind], min_size=1, max_size=4))
    with tempfile.TemporaryDirectory() as place:
        given_, made, run = (Path(place) / name for name in (f"a{suffix}", f"b{suffix}", "run"))
        run.mkdir()
        write(given_, kind, rows)
        assert read(given_) == rows
        import_rows(read_rows(given_, pytest.fail), run, "a", kind, pytest.fail)
        export(ExportPlan(sources=(str(run),), target=made, format=kind), pytest.fail)
        # Rows of one problem stand together where problems are told apart by their number.
        assert sorted(map(plain, read(made))) == sorted(map(plain, rows))


@settings(max_examples=50)
@given(rows=st.lists(COLDSTART, min_size=1, max_size=3), damage=st.data())
def test_a_damaged_byte_skips_its_own_row_only(rows, damage):
    lines = [json.dumps(row).encode() for row in rows]
    place = damage.draw(st.integers(0, len(lines) - 1))
    cut = damage.draw(st.integers(1, len(lines[place]) - 1))
    broken = [line if n != place else line[:cut] for n, line in enumerate(lines)]
    left_out = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(b"\n".join(broken))
        found = [row for _, row in read_rows(path, left_out.append)]
        assert found == [row for n, row in enumerate(rows) if n != place]
        assert len(left_out) == 1
        assert left_out[0].startswith(f"{path}:{place + 1}: ")


JUNK = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("kind", drkernel_rows.FORMATS)
@settings(max_examples=30)
@given(data=st.data())
def test_an_unusual_row_is_left_out_or_survives(kind, data):
    row = data.draw(ROWS[kind])
    field = data.draw(st.sampled_from(sorted(row)))
    row = {**row, field: data.draw(JUNK)}
    left_out = []
    with tempfile.TemporaryDirectory() as place:
        run, made = Path(place) / "run", Path(place) / "b.jsonl"
        run.mkdir()
        done = import_rows([("a:1", row)], run, "a", kind, left_out.append)
        export(ExportPlan(sources=(str(run),), target=made, format=kind), left_out.append)
        assert len(left_out) == 1 - done.rows
        assert len(read(made)) == done.rows


PROGRAM = st.lists(st.sampled_from(["x = f(y)", "y += 2", "z = x @ y", "g(z)"]), min_size=1).map(
    "\n".join
)


@given(text=PROGRAM | TEXT)
@example(text="\x1f")
@example(text="x = 1 \x1f\n\n")
def test_canonical_text_is_a_fixed_point_and_has_no_comments(text):
    assert canonical(canonical(text)) == canonical(text)
    seen = SeenPrograms(MIN_SIMILARITY)
    assert seen.is_new("p", text)
    assert not seen.is_new("p", text)


@given(text=PROGRAM)
def test_a_comment_does_not_change_the_canonical_program(text):
    assert canonical(f"# said\n{text}  # again\n") == canonical(text)


@given(one=PROGRAM, other=PROGRAM)
def test_similarity_is_symmetric_and_between_zero_and_one(one, other):
    found = similarity(sketch(one), sketch(other))
    assert 0.0 <= found <= 1.0
    assert found == similarity(sketch(other), sketch(one))
    assert similarity(sketch(one), sketch(one)) == 1.0
