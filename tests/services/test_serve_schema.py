"""Schemathesis against a server process: its answers follow its schema."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.test_serve import Server, asked, submit
from tilewright.serve.app import describe

pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")
pytest.importorskip("sqlalchemy")
# Not `positive_data_acceptance`: a schema cannot say which paths and references are sound.
CHECKS = (
    *("not_a_server_error", "status_code_conformance", "content_type_conformance"),
    *("response_schema_conformance", "response_headers_conformance", "unsupported_method"),
    *("negative_data_rejection", "missing_required_header", "use_after_free"),
)
RUN_BUDGET_S = 270
"""Seconds of one run. On two idle cores the longest takes 45 s, nearly all of it in schemathesis,
which derives 700 requests from the schema of an evaluation; the server needs 2 s of that."""
pytestmark = [pytest.mark.timeout(RUN_BUDGET_S + 30), pytest.mark.slow]
ENDLESS = "follow_v1_overview_events_get"
"""An operation whose answer has no end, for which schemathesis would wait until its timeout."""
SUBMISSIONS = ("submit_v1_tasks_post", "submit_many_v1_tasks_batch_post")
"""The operations whose bodies hold a whole evaluation; each has a run of its own."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("schema") / "home")
    yield made
    made.stop()


def schemathesis(server: Server, folder: Path, *words: str) -> None:
    beside = Path(sys.executable).parent / "schemathesis"
    program = str(beside) if beside.exists() else shutil.which("schemathesis")
    assert program
    command = [program, "run", f"{server.url}/openapi.json", "--checks", ",".join(CHECKS)]
    command += ["--exclude-operation-id", ENDLESS]
    command += ["--max-examples", "6", "--seed", "1", "--request-timeout", "30", "--no-color"]
    done = subprocess.run(
        [*command, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_BUDGET_S,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert asked(f"{server.url}/v1/health")[1]["status"] == "ok"


def test_every_endpoint_answers_fuzzed_requests_as_its_schema_states(server, tmp_path):
    # `schemathesis` asserts that the program found no violation.
    schemathesis(server, tmp_path, "--phases", "fuzzing")


# A batch is a list of what the other takes, whose wrong forms are sent there.
@pytest.mark.nightly
@pytest.mark.parametrize(
    "operations",
    [
        ("--include-operation-id", SUBMISSIONS[0]),
        ("--include-operation-id", SUBMISSIONS[1], "--mode", "positive"),
        tuple(word for name in SUBMISSIONS for word in ("--exclude-operation-id", name)),
    ],
    ids=["submit", "submit-many", "others"],
)
def test_every_endpoint_answers_each_case_of_its_schema_as_stated(server, tmp_path, operations):
    """test_every_endpoint_answers_fuzzed_requests_as_its_schema_states sends fewer cases."""
    schemathesis(server, tmp_path, "--phases", "coverage", *operations)
    known = describe().openapi()["paths"].values()
    assert set(SUBMISSIONS) < {row["operationId"] for path in known for row in path.values()}


def test_endpoints_of_an_existing_task_answer_as_their_schema_states(server, tmp_path):
    # A candidate that cannot be parsed costs no judge.
    assert submit(server, "def softmax(x:\n", name="known")[0] == 202
    assert asked(f"{server.url}/v1/tasks/known?wait_s=60")[1]["state"] == "done"
    config = '[parameters]\n"path.key" = "known"\n"path.name" = "known"\n'
    (tmp_path / "schemathesis.toml").write_text(config)
    words = ["--phases", "coverage,fuzzing", "--include-path-regex", r"\{(key|name)\}"]
    schemathesis(server, tmp_path, *words)
    assert asked(f"{server.url}/v1/tasks/known/report")[1]["verdict"] == "failed"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"request": NaN}', 422),
        (b'{"request": {"device": "\\ud800"}, "name": "\\ud800"}', 422),
        (b'{"a": 1e400, "b": -Infinity}', 422),
        (b'{"deadline_s": NaN}', 422),
        (b"\x00", 422),
        (b"[" * 200_000, 400),
        (b'"' + b"x" * 3_000_000 + b'"', 422),
    ],
)
def test_arbitrary_json_is_refused_with_a_short_answer(server, body, status):
    for path in ("/v1/tasks", "/v1/tasks/batch", "/evaluate", "/evaluate/batch"):
        found, text = asked(f"{server.url}{path}", body)
        assert found == status
        assert len(text) < 20_000


def test_lone_surrogates_are_refused_in_every_field(server):
    fields = {"reference_code": "\ud800" * 20, "kernel_code": "\udfff" * 20, "task_id": "a"}
    for body in (fields, {"tasks": [fields]}):
        path = "/evaluate" if "task_id" in body else "/evaluate/batch"
        assert asked(f"{server.url}{path}", json.dumps(body).encode())[0] == 422
