"""What the HTTP API refuses, and what it hides."""

import asyncio
import json
import threading

import pytest
from web import API, Client

from modulekge.server.http import make_app
from modulekge.server.metrics import Metrics
from modulekge.server.middleware import Limits

KIN, PAIR = {"head": "ada", "relation": "parent"}, {"head": "ada", "tail": "bob"}


@pytest.mark.parametrize(
    ("status", "method", "url", "kw", "field"),
    [
        (404, "GET", "/nothing", {}, None),
        (404, "GET", f"{API}/", {}, None),
        (405, "DELETE", f"{API}/kin", {}, None),
        (405, "PUT", "/health", {}, None),
        (422, "GET", f"{API}/kin/entities", {"params": {"limit": 0}}, "limit"),
        (422, "GET", f"{API}/kin/entities", {"params": {"limit": 10**30}}, "limit"),
        (422, "GET", f"{API}/kin/entity", {}, "name"),
        (422, "GET", f"{API}/kin/entity", {"params": {"name": "a" * 1001}}, "name"),
        (422, "GET", f"{API}/kin/map", {"params": {"limit": "many"}}, "limit"),
        (422, "POST", f"{API}/kin/predict", {"json": {}}, "questions"),
        (422, "POST", f"{API}/kin/predict", {"json": {"questions": [{"head": "ada"}]}}, "questions[0]"),
        (422, "POST", f"{API}/kin/score", {"json": {"triples": [["ada", 7, "bob"]]}}, "triples[0][1]"),
        (422, "POST", f"{API}/kin/predict", {"json": {"questions": [], "k": 501}}, "k"),
        (422, "POST", f"{API}/kin/predict", {"json": {"questions": [], "kk": 5}}, "kk"),
        (422, "POST", f"{API}/kin/predict", {"json": {"questions": [], "known": "no"}}, "known"),
        (422, "POST", f"{API}/kin/predict", {"json": {"questions": [PAIR] * 65}}, "questions"),
        (422, "POST", f"{API}/kin/predict", {"json": [1]}, None),
        (422, "POST", f"{API}/kin/score", {"json": {"triples": [["ada", "parent"]]}}, "triples[0][2]"),
        (422, "POST", f"{API}/kin/answer-set", {"json": {"head": "ada", "tail": "bob"}}, None),
        (422, "POST", f"{API}/kin/answer-set", {"json": {**KIN, "coverage": 1}}, "coverage"),
        (400, "POST", f"{API}/kin/predict", {"content": b"{"}, None),
        (400, "POST", f"{API}/kin/predict", {"content": b"\xff\xfe"}, None),
        (400, "POST", f"{API}/kin/predict", {"content": b"[" * 100_000}, None),
        (400, "POST", f"{API}/kin/predict", {"content": b'{"k":' + b"9" * 5000 + b"}"}, None),
        (422, "POST", f"{API}/kin/answer-set", {"content": b'{"coverage":NaN}'}, "coverage"),
        (413, "POST", f"{API}/kin/predict", {"content": b" " * (1 << 20) + b" "}, None),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_said_in_json(client, status, method, url, kw, field):
    if "content" in kw:
        kw = {**kw, "headers": {"content-type": "application/json"}}
    response = client(method, url, **kw)
    assert (response.status_code, response.json().get("field")) == (status, field), response.text
    assert set(response.json()) == {"error", "field"}
    assert "Traceback" not in response.text
    if status == 405:
        assert response.headers["allow"]


def test_a_lone_surrogate_is_refused(client):
    body = b'{"head": "\\ud800", "relation": "parent", "tail": "\\udfff"}'
    response = client(
        "POST", f"{API}/kin/explain", content=body, headers={"content-type": "application/json"}
    )
    assert response.status_code in (404, 422)
    assert response.json()["error"]


def test_a_body_without_a_length_is_bounded_too(client):
    sent = []

    async def endless():
        while True:
            sent.append(1 << 16)
            yield b" " * (1 << 16)

    response = client("POST", f"{API}/kin/predict", content=endless())
    assert response.status_code == 413
    assert sum(sent) <= 18 << 20


def test_a_body_that_is_too_slow_is_given_up(service):
    async def slow():
        yield b"{"
        await asyncio.sleep(60)

    app = make_app(service, limits=Limits(seconds=0.05))
    assert Client(app)("POST", f"{API}/kin/predict", content=slow()).status_code == 408


def test_an_answer_that_takes_too_long_is_given_up_and_others_are_answered(service):
    client = Client(make_app(service, limits=Limits(seconds=0.3)))
    go = threading.Event()
    blocked = service["kin"].calls.ask(lambda: go.wait(20))
    response = client.get(f"{API}/kin/neighbours", name="ada")
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    body = {"questions": [{"head": "ada", "relation": "parent"}]}
    assert client.post(f"{API}/kin/predict", body).status_code == 200
    go.set()
    assert blocked.result()
    assert client.get(f"{API}/kin/neighbours", name="ada").status_code == 200


def test_too_many_requests_at_once_are_refused(service):
    app = make_app(service, limits=Limits(under_way=3))
    request = (("POST", f"{API}/kin/score"), {"json": {"triples": [["ada", "parent", "bob"]]}})
    codes = [response.status_code for response in Client(app).many(*[request] * 12)]
    assert set(codes) == {200, 503}
    assert codes.count(200) >= 3


def test_a_client_that_has_gone_takes_its_question_back(service):
    metrics = Metrics()
    app = make_app(service, metrics)
    body = json.dumps({"triples": [["ada", "parent", "bob"]]}).encode()
    messages = [{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}]
    sent, calls = [], service["kin"].calls

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": f"{API}/kin/score", "raw_path": b"",
        "query_string": b"", "root_path": "",
        "scheme": "http", "http_version": "1.1", "server": None, "client": None,
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }  # fmt: skip
    go = threading.Event()
    blocked = calls.ask(lambda: go.wait(20))
    asyncio.run(app(scope, receive, send))
    assert sent == []
    go.set()
    assert blocked.result()
    assert metrics.requests == {(f"{API}/{{run}}/score", 499): 1}
    assert calls.ask(lambda: 1).result() == 1


def test_only_its_own_names_reach_it(service):
    app = make_app(service)
    for host in ("evil.example", "localhost.evil.example", "", "127.0.0.1.nip.io", "127.0.0.2"):
        response = Client(app, host=host).get("/health")
        assert response.status_code == 400
        assert "not called" in response.json()["error"]
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"):
        assert Client(app, host=host).get("/health").status_code == 200
    wide = make_app(service, hosts=frozenset({"box"}), numbers=True)
    assert [
        Client(wide, host=h).get("/health").status_code for h in ("box:80", "10.0.0.7", "evil.example")
    ] == [200, 200, 400]


def test_a_token_is_needed_where_there_is_one(service):
    app = make_app(service, token="correct horse")
    for header in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "correct horse"},
        {"authorization": "Bearer é".encode()},
    ):
        for url in (API, f"{API}/kin", "/metrics"):
            response = Client(app, **header).get(url)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            assert "kin" not in response.text
    assert Client(app, authorization="Bearer correct horse").get(API).status_code == 200
    assert Client(app).get("/health").json()["status"] == "ok"


def test_every_answer_has_the_headers_of_safety_and_none_lets_others_read_it(client):
    for url in (API, "/nothing", "/docs", "/health", "/openapi.json"):
        response = client("GET", url, headers={"origin": "http://evil.example"})
        assert response.headers["content-security-policy"].startswith("default-src 'self'")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    "path",
    [
        "/static/../http.py",
        "/static/%2e%2e/http.py",
        "/static/..%2fhttp.py",
        "/static//etc/passwd",
        f"{API}/..%2f..%2fetc",
        "/static/",
    ],
)
def test_no_path_reaches_a_file(client, path):
    assert client("GET", path).status_code == 404


def test_the_reference_is_whole_and_holds_no_script(client):
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "<script" not in page.text
    assert "http://" not in page.text.replace("http://localhost", "")
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page.text
    assert client.get("/static/reference.css").headers["content-type"].startswith("text/css")


def test_what_was_done_is_counted(service):
    metrics = Metrics()
    client = Client(make_app(service, metrics))
    client.get(API)
    client.get("/nothing")
    text = client.get("/metrics").text
    assert f'modulekge_requests_total{{route="{API}",status="200"}} 1' in text
    assert 'modulekge_requests_total{route="other",status="404"} 1' in text
    assert 'modulekge_questions_waiting{run="kin"} 0' in text
    assert text.count("# TYPE") == 6


def test_an_error_of_ours_is_one_line_and_tells_nothing(service, monkeypatch, capsys):
    monkeypatch.setattr("modulekge.server.lookup.Lookup.entities", lambda *_: 1 / 0)
    response = Client(make_app(service)).get(f"{API}/kin/entities")
    assert response.status_code == 500
    assert response.json() == {"error": "internal error; the server's log has a line about it", "field": None}
    assert capsys.readouterr().err == "internal error: ZeroDivisionError: division by zero\n"
