"""Calls that a newcomer tries: each works, or answers with the message of its row.

Rows of MCP are in test_mcp.py.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

import tilewright
from tests.services.test_serve import Server, asked
from tilewright.errors import ConfigError, ProblemError

pytest.importorskip("fastapi")
torch = pytest.importorskip("torch")
GOOD = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n"
ONE_LINE = "def softmax(x): return x.softmax(-1)"
MODULE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 8)]


def get_init_inputs():
    return []
"""
FUNCTION = """import torch

CASES = [{"name": "small", "rows": 8}]


def inputs(case, generator):
    return (torch.randn(case["rows"], 16, generator=generator),)


def reference(x):
    return x * 2
"""
QUICK = {"eval": {"timing": {"enabled": False}}}
SCALE = 2


def double(x):
    return x * SCALE


def doubled_twice(x):
    return double(x)


def make_inputs(generator):
    return (torch.randn(8, 16, generator=generator),)


def no_arguments():
    return torch.randn(8, 16)


PYTHON = [
    ("source text", (GOOD, "softmax"), {}, "correct"),
    ("one line of source", (ONE_LINE, "softmax"), {}, "correct"),
    ("an address with its group", (GOOD, "bundled/softmax"), {}, "correct"),
    ("a module problem as text", (MODULE.replace("Model(", "ModelNew("), MODULE), {}, "correct"),
    ("a function problem as text", ("def work(x): return x + x", FUNCTION), {}, "correct"),
    ("a problem of two functions", (doubled_twice, (double, make_inputs)), {}, "correct"),
    ("inputs without arguments", (double, (double, no_arguments)), {}, "correct"),
    ("a dotted setting", (GOOD, "softmax"), {"config": {"eval.timing.enabled": False}}, "correct"),
    ("a list of settings", (GOOD, "softmax"), {"config": ["eval.timing.enabled=false"]}, "correct"),
    ("no text", ("", "softmax"), {}, "failed"),
    ("no entry point", ("import torch\nx = 1\n", "softmax"), {}, "failed"),
    ("no Python", ("def softmax(x:\n", "softmax"), {}, "failed"),
    ("a lambda", (lambda x: x, "softmax"), {}, "candidate: a lambda has no source text"),
    ("nothing", (None, "softmax"), {}, "candidate: expected source text, a path, a function or"),
    ("no such file", ("no/such.py", "softmax"), {}, "no/such.py: no such file"),
    ("a misspelt problem", (GOOD, "sofmax"), {}, "did you mean softmax?"),
    ("a reference alone", (GOOD, double), {}, "problem: a reference alone has no inputs"),
    ("a number as problem", (GOOD, 3), {}, "problem: expected an address, a path, source text"),
    ("a device", (GOOD, "softmax"), {"device": "cpu"}, "correct"),
    ("an unknown device", (GOOD, "softmax"), {"device": "gpu"}, "device 'gpu' is unknown"),
    ("an unknown setting", (GOOD, "softmax"), {"config": {"evl": 1}}, "did you mean eval?"),
    ("one baseline", (GOOD, "softmax"), {"baselines": "eager"}, "correct"),
    (
        "a misspelt baseline",
        (GOOD, "softmax"),
        {"baselines": "egaer"},
        "baseline egaer: no such file; did",
    ),
    ("a number as entry", (GOOD, "softmax"), {"entry": 5}, "entry: expected text, got int"),
    ("an unknown protocol", (GOOD, "softmax"), {"protocol": "lax"}, "'strict' or 'official'"),
    ("an unknown language", (GOOD, "softmax"), {"language": "torhc"}, "did you mean torch?"),
    ("bytes", (b"x = 1", "softmax"), {}, "or a Candidate, got bytes"),
    ("a number as config", (GOOD, "softmax"), {"config": 3}, "config: expected a mapping, a list"),
]


@pytest.mark.parametrize(
    ("arguments", "options", "wanted"), [row[1:] for row in PYTHON], ids=[row[0] for row in PYTHON]
)
def test_a_call_in_python(arguments, options, wanted):
    given = {"config": QUICK, **options}
    if wanted in ("correct", "failed"):
        assert tilewright.evaluate(*arguments, **given).verdict == wanted
        return
    with pytest.raises((ConfigError, ProblemError)) as raised:
        tilewright.evaluate(*arguments, **given)
    assert wanted in str(raised.value)
    assert "pydantic" not in str(raised.value)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("guessed") / "home", "--set", "eval.timing.enabled=false")
    yield made
    made.stop()


CLIENT = [
    ("source text and an address", (GOOD, "softmax"), {}, "correct"),
    ("one line of source", (ONE_LINE, "softmax"), {}, "correct"),
    ("a problem as text", ("def work(x): return x + x", FUNCTION), {"config": QUICK}, "correct"),
    ("two functions", (doubled_twice, (double, make_inputs)), {"config": QUICK}, "correct"),
    (
        "an entry of another name",
        ("def mine(x): return x.softmax(-1)", "softmax"),
        {"entry": "mine"},
        "correct",
    ),
    ("no entry point", ("x = 1\n", "softmax"), {}, "failed"),
    ("no problem", (GOOD,), {}, "problem: give an address, source text, a path or functions"),
    ("a misspelt problem", (GOOD, "sofmax"), {}, "no problem 'sofmax'"),
    ("a path of the server", (GOOD, "/no/such/problem"), {}, "give its source text, the name of"),
    ("nothing", (None, "softmax"), {}, "candidate: expected source text"),
    ("a number as entry", (GOOD, "softmax"), {"entry": 5}, "entry: expected text"),
    ("an unknown language", (GOOD, "softmax"), {"language": "torhc"}, "did you mean torch?"),
]
METHODS = [
    ("submit text", lambda c: c.submit(GOOD), "`evaluate` takes source text and a problem"),
    ("submit texts", lambda c: c.submit_many([GOOD]), "`evaluate` takes source text and a problem"),
    ("a report of nothing", lambda c: c.report(None), "key: expected the text that `submit`"),
    ("an unknown task", lambda c: c.task("nope"), "you have no task 'nope'"),
    ("a number as address", lambda _: tilewright.Client(8477), "executor 8477 is not an address"),
    ("no scheme", lambda _: tilewright.Client("localhost:8477"), "write that of a tilewright"),
    ("a path", lambda c: tilewright.Client(f"{c._url}/v1").queue(), "there is no such path; /docs"),
]


@pytest.mark.parametrize(
    ("arguments", "options", "wanted"), [row[1:] for row in CLIENT], ids=[row[0] for row in CLIENT]
)
def test_a_call_of_the_client(server, arguments, options, wanted):
    client = tilewright.Client(server.url)
    if wanted in ("correct", "failed"):
        assert client.evaluate(*arguments, **options).verdict == wanted
        return
    with pytest.raises((ConfigError, ProblemError)) as raised:
        client.evaluate(*arguments, **options)
    assert wanted in str(raised.value)


@pytest.mark.parametrize(
    ("call", "wanted"), [row[1:] for row in METHODS], ids=[row[0] for row in METHODS]
)
def test_a_call_of_another_method(server, call, wanted):
    with pytest.raises(ConfigError) as raised:
        call(tilewright.Client(server.url))
    assert wanted in str(raised.value)


def test_a_client_without_an_address_asks_this_machine():
    assert tilewright.Client()._url == "http://localhost:8477"


HTTP = [
    ("code and an address", {"code": GOOD, "problem": "softmax"}, 202, "correct"),
    ("one line", {"code": ONE_LINE, "problem": "softmax"}, 202, "correct"),
    (
        "code and a problem as text",
        {"code": "def work(x): return x + x", "problem": FUNCTION},
        202,
        "correct",
    ),
    (
        "several files",
        {"code": {"softmax.py": "from parts import *\n", "parts.py": GOOD}, "problem": "softmax"},
        202,
        "correct",
    ),
    ("no entry point", {"code": "x = 1", "problem": "softmax"}, 202, "failed"),
    ("no Python", {"code": "def softmax(x:", "problem": "softmax"}, 202, "failed"),
    (
        "a misspelt problem",
        {"code": GOOD, "problem": "sofmax"},
        422,
        "problem: no problem 'sofmax'",
    ),
    ("a path", {"code": GOOD, "problem": "/etc/passwd"}, 422, "problem: no problem '/etc/passwd'"),
    (
        "a file out of the folder",
        {"code": {"../x.py": GOOD}, "problem": "softmax"},
        422,
        "is not a plain relative path",
    ),
    (
        "an unknown field",
        {"code": GOOD, "problem": "softmax", "langauge": "torch"},
        422,
        "there is no field `langauge`; did you mean language?",
    ),
    (
        "source, not code",
        {"source": GOOD, "problem": "softmax"},
        422,
        "the field `code` is missing",
    ),
    (
        "a number as code",
        {"code": 3, "problem": "softmax"},
        422,
        '"msg":"code: expected text, or an object that has the text of each file by its name"',
    ),
    (
        "a setting of the server",
        {"code": GOOD, "problem": "softmax", "device": "cuda"},
        422,
        "there is no field `device`; /docs lists all fields",
    ),
    ("no problem", {"code": GOOD}, 422, "the field `problem` is missing"),
    ("a list", [GOOD], 422, "the body must be a JSON object, sent with content-type"),
    (
        "an unknown language",
        {"code": GOOD, "problem": "softmax", "language": "torhc"},
        422,
        "no language is called 'torhc'; did you mean torch?",
    ),
]
PATHS = [
    (
        "GET of what takes POST",
        "GET",
        "/v1/evaluations",
        None,
        405,
        "/v1/evaluations has no GET; it has POST",
    ),
    ("an old path", "POST", "/v1/evaluate", {}, 404, "there is no such path; /docs lists all"),
    ("an unknown task", "GET", "/v1/tasks/nope", None, 404, "you have no task 'nope'"),
    ("an unknown name", "DELETE", "/v1/tasks/nope", None, 404, "you have no task 'nope'"),
    (
        "texts as a task",
        "POST",
        "/v1/tasks",
        {"code": GOOD},
        422,
        "POST /v1/evaluations takes `code` and `problem`",
    ),
    (
        "a word as seconds",
        "GET",
        "/v1/tasks/nope?wait_s=long",
        None,
        422,
        "wait_s: expected a number",
    ),
]


@pytest.mark.parametrize(
    ("body", "status", "wanted"), [row[1:] for row in HTTP], ids=[row[0] for row in HTTP]
)
def test_a_call_over_http(server, body, status, wanted):
    asked = urllib.request.Request(
        f"{server.url}/v1/evaluations?wait_s=60",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(asked, timeout=120) as answer:
            found, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        found, text = error.code, error.read().decode()
    assert found == status, text
    if status == 202:
        assert json.loads(text)["verdict"] == wanted
    else:
        assert wanted in text


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "wanted"),
    [row[1:] for row in PATHS],
    ids=[row[0] for row in PATHS],
)
def test_a_call_of_another_path(server, method, path, body, status, wanted):
    found, text = asked(f"{server.url}{path}", body, method)
    assert found == status
    assert wanted in text


def test_a_body_without_a_content_type(server):
    found, text = asked(f"{server.url}/v1/evaluations", {"code": GOOD}, **{"content-type": "x/y"})
    assert found == 422
    assert "sent with content-type: application/json" in text


def test_a_report_shows_itself():
    report = tilewright.evaluate(GOOD, "softmax", config=QUICK)
    assert str(report).startswith("correct  bundled/softmax by candidate.py")
    assert repr(report) == "<EvalReport of bundled/softmax: correct>"
    assert report._repr_html_().startswith("<pre")
    assert report.conclusion is None
    assert {"verdict", "speedup", "explain", "to_json"} <= set(dir(report))
    assert {"parse_obj", "model_dump", "schema_json"}.isdisjoint(dir(report))
    assert "What is the verdict, and why?" in report.explain()
    hostile = tilewright.evaluate(
        "raise ValueError('<script>')\n\ndef softmax(x): pass\n", "softmax", config=QUICK
    )
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt;" in hostile._repr_html_()


def test_the_public_names_are_shown():
    assert {"evaluate", "evaluate_async", "Client", "EvalReport"} <= set(dir(tilewright))
