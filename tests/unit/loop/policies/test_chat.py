"""The policy `chat` against a real HTTP server that fails in every usual way."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tilewright.config import ModelSection
from tilewright.errors import ConfigError, PolicyError
from tilewright.loop.policies.base import Message, digest_of
from tilewright.loop.policies.chat import Chat
from tilewright.records.events import Ask

pytest.importorskip("openai")
SECRET = "sk-very-secret"
ASK = Ask(id="p#2.3", problem="p", sample=2, turn=3)
PROMPT = (Message(role="user", text="Make it fast."),)


def answer(text="hello", **message):
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "served-model",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


class Server(ThreadingHTTPServer):
    """Answers each request by the next step of its script; the last one repeats."""

    daemon_threads = True

    def __init__(self, *script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = list(script)
        self.asked: list[dict] = []
        self.keys: list[str] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers["content-length"]))
        with server.lock:
            server.asked.append(json.loads(body))
            server.keys.append(self.headers.get("authorization", ""))
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
            step = server.script.pop(0) if len(server.script) > 1 else server.script[0]
        try:
            step(self)
        finally:
            with server.lock:
                server.at_once -= 1

    def log_message(self, *_):
        pass

    def reply(self, status, body, headers=()):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def says(document, status=200, headers=()):
    return lambda handler: handler.reply(status, json.dumps(document).encode(), headers)


def fails(status, headers=()):
    return says({"error": {"message": f"status {status}"}}, status, headers)


def slow(document, seconds):
    def step(handler):
        time.sleep(seconds)
        handler.reply(200, json.dumps(document).encode())

    return step


def broken_json(handler):
    handler.reply(200, b'{"choices": [')


def no_choice(handler):
    handler.reply(200, b'{"choices": []}')


def cut_off(handler):
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", "10000")
    handler.end_headers()
    handler.wfile.write(b'{"choices"')
    handler.close_connection = True


@pytest.fixture
def serve():
    servers = []

    def start(*script):
        server = Server(*script)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setenv("SOME_KEY", SECRET)

    def make(server, **settings):
        fields = {"base_url": server.url, "key_variable": "SOME_KEY", "retry_delay_s": 0.01}
        return Chat("some-model", ModelSection(**{**fields, **settings}))

    return make


@pytest.mark.reads_settings
def test_a_reply_has_text_tokens_and_price(serve, model):
    server = serve(says(answer("```python\n```", reasoning_content="let me think")))
    policy = model(server, usd_per_million_in=1.0, usd_per_million_out=10.0, seed=5)
    reply = policy.answer(PROMPT, ASK)
    assert (reply.text, reply.reasoning) == ("```python\n```", "let me think")
    assert (reply.prompt_tokens, reply.reply_tokens) == (11, 7)
    assert reply.usd == pytest.approx((11 + 70) / 1e6)
    assert (reply.model, reply.finish) == ("served-model", "stop")
    asked = server.asked[0]
    assert asked["messages"] == [{"role": "user", "content": "Make it fast."}]
    assert (asked["model"], asked["temperature"], asked["seed"]) == ("some-model", 1.0, 2008)
    assert server.keys == [f"Bearer {SECRET}"]


@pytest.mark.parametrize("step", [fails(429), fails(500), fails(503), broken_json, no_choice,
                                  cut_off])  # fmt: skip
def test_a_transient_error_is_retried(serve, model, step):
    server = serve(step, step, says(answer()))
    assert model(server).answer(PROMPT, ASK).text == "hello"
    assert len(server.asked) == 3


@pytest.mark.parametrize("step", [fails(429), broken_json, no_choice, cut_off])
def test_a_lasting_error_names_model_and_turn(serve, model, step):
    server = serve(step)
    with pytest.raises(PolicyError, match=r"some-model, p#2\.3") as caught:
        model(server, retries=2).answer(PROMPT, ASK)
    assert len(server.asked) == 3
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refused_request_is_not_retried(serve, model, status):
    server = serve(fails(status))
    with pytest.raises(PolicyError, match=f"HTTP {status}"):
        model(server).answer(PROMPT, ASK)
    assert len(server.asked) == 1


def test_the_retry_after_header_is_respected(serve, model):
    server = serve(fails(429, [("retry-after", "0.3")]), says(answer()))
    start = time.monotonic()
    model(server).answer(PROMPT, ASK)
    assert time.monotonic() - start >= 0.3


def test_a_server_that_does_not_answer_is_retried(serve, model):
    server = serve(slow(answer("late"), 1.0), says(answer("in time")))
    assert model(server, timeout_s=0.2).answer(PROMPT, ASK).text == "in time"


def test_a_server_that_is_not_there_is_named_with_every_attempt():
    said: list[str] = []
    url = "http://someone:password@127.0.0.1:9/v1"
    section = ModelSection(base_url=url, retries=2, retry_delay_s=0.01)
    with pytest.raises(PolicyError) as caught:
        Chat("some-model", section, said.append).answer(PROMPT, ASK)
    where = "model some-model, p#2.3: no model server answers at http://127.0.0.1:9/v1/: "
    assert str(caught.value).startswith(where)
    assert [text.rpartition("; ")[2] for text in said] == ["attempt 1 of 3", "attempt 2 of 3"]
    assert all(text.startswith(where) for text in said)
    assert "password" not in " ".join([*said, str(caught.value)])


def test_concurrent_requests_stay_within_the_limit(serve, model):
    server = serve(slow(answer(), 0.05))
    policy = model(server, concurrency=2)
    threads = [threading.Thread(target=policy.answer, args=(PROMPT, ASK)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.asked) == 8
    assert server.most_at_once <= 2


def test_requests_keep_the_configured_interval(serve, model):
    server = serve(says(answer()))
    policy = model(server, requests_per_minute=600)
    start = time.monotonic()
    for _ in range(4):
        policy.answer(PROMPT, ASK)
    assert time.monotonic() - start >= 0.3


def test_a_reply_without_content_is_an_empty_one(serve, model):
    document = answer(None)
    del document["usage"]
    reply = model(serve(says(document))).answer(PROMPT, ASK)
    assert reply.text == ""
    assert reply.prompt_tokens > 0


def test_a_missing_api_key_is_a_config_error(monkeypatch):
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(ConfigError, match="SOME_KEY is empty"):
        Chat("some-model", ModelSection(key_variable="SOME_KEY"))


def test_a_self_hosted_server_needs_no_api_key(serve, monkeypatch):
    monkeypatch.delenv("SOME_KEY", raising=False)
    section = ModelSection(base_url=serve(says(answer())).url, key_variable="SOME_KEY")
    assert Chat("some-model", section).answer(PROMPT, ASK).text == "hello"


def test_the_maximum_cost_of_a_reply_is_known_in_advance(serve, model):
    policy = model(serve(says(answer())), max_tokens=100, usd_per_million_out=10.0)
    most = policy.max_cost(50)
    assert (most.tokens, most.usd) == (150, pytest.approx(100 * 10 / 1e6))


def test_a_prompt_digest_depends_on_the_roles():
    one = digest_of((Message(role="user", text="a"), Message(role="assistant", text="b")))
    two = digest_of((Message(role="assistant", text="a"), Message(role="user", text="b")))
    assert one != two


ODD = [
    {"content": "\ud800"},
    {"content": ["a", "list"]},
    {"content": 5},
]


@pytest.mark.parametrize("message", ODD)
def test_an_unusual_message_becomes_text_or_is_retried(serve, model, message):
    document = answer()
    document["choices"][0]["message"] |= message
    server = serve(says(document), says(answer("hello")))
    reply = model(server).answer(PROMPT, ASK)
    assert reply.text in ("hello", "?")


@pytest.mark.parametrize("usage", [{"prompt_tokens": -1}, {"prompt_tokens": "x"}, [], 7])
def test_invalid_usage_numbers_do_not_end_the_run(serve, model, usage):
    document = answer()
    document["usage"] = usage
    server = serve(says(document), says(answer("hello")))
    assert model(server).answer(PROMPT, ASK).text == "hello"


def test_an_api_key_repeated_by_a_server_is_not_shown(serve, model):
    server = serve(says({"error": {"message": f"bad key {SECRET}"}}, 401))
    with pytest.raises(PolicyError) as caught:
        model(server).answer(PROMPT, ASK)
    assert SECRET not in str(caught.value)
    assert "[the key]" in str(caught.value)


@pytest.mark.parametrize("step", [slow(answer(), 20.0), fails(503)])
def test_an_ending_run_does_not_wait_for_the_server(serve, model, step):
    policy = model(serve(step), retry_delay_s=30.0)
    threading.Timer(0.3, policy.close).start()
    start = time.monotonic()
    with pytest.raises(PolicyError, match="the run ends"):
        policy.answer(PROMPT, ASK)
    assert time.monotonic() - start < 5


def test_an_ending_run_does_not_wait_for_the_request_rate(serve, model):
    server = serve(says(answer()))
    policy = model(server, requests_per_minute=1)
    policy.answer(PROMPT, ASK)
    threading.Timer(0.1, policy.close).start()
    start = time.monotonic()
    with pytest.raises(PolicyError, match="the run ends"):
        policy.answer(PROMPT, ASK)
    assert time.monotonic() - start < 30
    assert len(server.asked) == 1


def vector(*values):
    data = [{"object": "embedding", "index": 0, "embedding": list(values)}]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return {"object": "list", "data": data, "model": "e", "usage": usage}


@pytest.mark.reads_settings
def test_a_server_embeds_a_text_also_after_a_failure(serve, model):
    server = serve(fails(503), says(vector(0.5, -1.0)))
    policy = model(server, embeddings="small")
    assert policy.embed("x = 1") == (0.5, -1.0)
    assert server.asked[-1]["model"] == "small"
    assert server.asked[-1]["input"] == "x = 1"


def test_an_answer_without_a_vector_ends_with_its_cause(serve, model):
    policy = model(serve(says({"object": "list", "data": []})), embeddings="small", retries=1)
    with pytest.raises(PolicyError, match="embeddings small"):
        policy.embed("x = 1")
