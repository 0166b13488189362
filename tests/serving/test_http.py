"""The HTTP API in process: what it answers, what it refuses, what it hides."""

import asyncio
import json
import threading
import time
from dataclasses import asdict

import httpx
import pytest
import torch

from modulekge import calibrate, evaluate
from modulekge.errors import RunError
from modulekge.models.table import MODELS
from modulekge.run.train import load, train
from modulekge.serving.guard import Limits
from modulekge.serving.http import make_app
from modulekge.serving.metrics import Metrics
from modulekge.serving.predictor import Predictor
from modulekge.serving.service import ServedRun, Service

SETTINGS = {"model.k": 8, "model.scalar_scale": 0.1, "train.epochs": 20, "train.batch": 8}
API = "/api/v1/runs"
KIN, PAIR = {"head": "ada", "relation": "parent"}, {"head": "ada", "tail": "bob"}


class Client:
    """Asks an application in this process, one request or many at once."""

    def __init__(self, app, **headers):
        self.app, self.headers = app, headers

    def many(self, *requests):
        async def ask():
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost", headers=self.headers
            ) as client:
                return await asyncio.gather(*(client.request(*args, **kw) for args, kw in requests))

        return asyncio.run(ask())

    def __call__(self, method, url, **kw):
        return self.many(((method, url), kw))[0]

    def get(self, url, **params):
        return self("GET", url, params=params or None)

    def post(self, url, body):
        return self("POST", url, json=body)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, family):
    run = train(family, "ModulE-HH", SETTINGS, tmp_path_factory.mktemp("runs") / "kin")
    run.folder.save_report(evaluate(run))
    calibrate(run)
    return run.folder.path


@pytest.fixture(scope="module")
def asked(folder):
    return Predictor(load(folder))


@pytest.fixture(scope="module")
def service(folder):
    service = Service.open([folder, folder], torch.device("cpu"))
    yield service
    service.close()


@pytest.fixture(scope="module")
def client(service):
    return Client(make_app(service))


def near(found, expected):
    """Compare answers: scores of a batch are those of a question alone, up to rounding."""
    exact = [
        [{key: value for key, value in one.items() if key not in ("score", "probability")} for one in side]
        for side in (found, expected)
    ]
    assert exact[0] == exact[1]
    for key in ("score", "probability"):
        numbers = [[-1.0 if one[key] is None else one[key] for one in side] for side in (found, expected)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-3, abs=1e-5)


def test_runs_have_the_names_of_their_folders_made_unique(client):
    runs = client.get(API).json()
    assert [run["name"] for run in runs] == ["kin", "kin-2"]
    assert (runs[0]["data"], runs[0]["model"], runs[0]["k"], runs[0]["triples"]) == (
        "family",
        "ModulE-HH",
        8,
        16,
    )
    assert runs[0]["calibrated"]


def test_a_run_with_all_that_was_measured_of_it(client):
    run = client.get(f"{API}/kin").json()
    assert run["settings"]["train.epochs"] == 20
    assert [point["epoch"] for point in run["curve"]] == list(range(1, 21))
    assert run["report"]["both"]["mrr"] == run["test_mrr"]
    assert [(part["name"], part["triples"]) for part in run["report"]["relations"]] == [("sibling", 1)]
    assert run["report"]["without_unseen"]
    assert run["calibration"]["measured"]["after"]["bins"]
    assert client.get(f"{API}/kin/algebra").json()["relations"] == 3


def test_relations_and_entities_page_by_page(client):
    assert client.get(f"{API}/kin/relations", limit=2).json() == {
        "total": 3,
        "items": [
            {"name": "parent", "label": "parent", "triples": 6},
            {"name": "child", "label": "child", "triples": 6},
        ],
    }
    everyone = client.get(f"{API}/kin/entities").json()
    assert everyone["total"] == 8
    assert [item["degree"] for item in everyone["items"]] == sorted(
        (item["degree"] for item in everyone["items"]), reverse=True
    )
    pages = [client.get(f"{API}/kin/entities", limit=3, offset=i).json()["items"] for i in (0, 3, 6, 9)]
    assert [item for page in pages for item in page] == everyone["items"]
    assert client.get(f"{API}/kin/entities", search="lovelace").json()["items"][0]["name"] == "ada"


def test_an_entity_with_its_facts_and_the_split_of_each(client):
    card = client.get(f"{API}/kin/entity", name="fay").json()
    assert card["degree"] == 4
    groups = {(group["relation"]["name"], group["direction"]): group for group in card["facts"]}
    assert set(groups) == {("parent", "out"), ("child", "in")}
    ends = {item["name"]: item["split"] for item in groups["parent", "out"]["items"]}
    assert ends == {"gil": "valid", "hal": "train"}
    page = client.get(f"{API}/kin/entity", name="fay", relation="parent", direction="out", limit=1, offset=1)
    assert [
        (group["total"], [item["name"] for item in group["items"]]) for group in page.json()["facts"]
    ] == [(2, ["hal"])]


@pytest.mark.parametrize("known", ["mark", "exclude"])
@pytest.mark.parametrize(
    "question",
    [
        {"head": "ada", "relation": "parent"},
        {"relation": "child", "tail": "fay"},
        {"head": "bob", "tail": "cid"},
    ],
)
def test_answers_are_those_of_the_library(client, asked, question, known):
    body = {"questions": [question], "k": 3, "known": known}
    (answers,) = client.post(f"{API}/kin/predict", body).json()["answers"]
    near(answers, [asdict(answer) for answer in asked.predict(**question, k=3, known=known)])


def test_more_answers_than_there_are_is_all_of_them(client):
    body = {"questions": [{"head": "ada", "relation": "parent"}, {"head": "ada", "tail": "bob"}], "k": 500}
    assert [len(answers) for answers in client.post(f"{API}/kin/predict", body).json()["answers"]] == [8, 3]
    assert client.post(f"{API}/kin/predict", {"questions": []}).json() == {"answers": []}


def test_questions_that_arrive_together_make_one_matmul(folder):
    metrics, sizes = Metrics(), []
    run = load(folder)
    served = ServedRun("kin", run, watch=lambda taken: metrics.add_batch(taken.size, taken.seconds)).prepare()
    people = run.dataset.entities.names
    alone = {name: served.predictor.predict(head=name, relation="parent", k=3) for name in people}
    bodies = [
        {"questions": [{"head": name, "relation": "parent"}], "k": k} for name in people for k in (1, 3)
    ]
    scores = run.model.scores

    def counted(queries, *rest):
        """Answer the first when all others wait."""
        deadline = time.monotonic() + 20
        while (
            not sizes and len(queries) + served.answers.queued < len(bodies) and time.monotonic() < deadline
        ):
            time.sleep(0.001)
        sizes.append(len(queries))
        return scores(queries, *rest)

    run.model.scores = counted
    client = Client(make_app(Service({"kin": served}), metrics))
    found = client.many(*((("POST", f"{API}/kin/predict"), {"json": body}) for body in bodies))
    served.close()
    for response, body in zip(found, bodies, strict=True):
        (answers,) = response.json()["answers"]
        near(answers, [asdict(a) for a in alone[body["questions"][0]["head"]][: body["k"]]])
    assert len(sizes) == 2
    assert sum(sizes) == len(bodies)
    assert metrics.batches.total == len(bodies)
    assert sum(metrics.batches.counts) == 2


def test_sets_scores_and_reasons(client, asked):
    found = client.post(
        f"{API}/kin/answer-set", {"head": "ada", "relation": "parent", "coverage": 0.5}
    ).json()
    expected = asked.answer_set(head="ada", relation="parent", coverage=0.5)
    assert (found["size"], found["candidates"]) == (len(expected.answers), expected.candidates)
    links = client.post(f"{API}/kin/score", {"triples": [["Ada Lovelace", "parent", "bob"]]}).json()["links"]
    assert links[0]["split"] == "train"
    assert links[0]["head"] == "ada"
    why = client.post(f"{API}/kin/explain", {"head": "ada", "relation": "parent", "tail": "bob"}).json()
    assert why["triple"]["labels"] == ["Ada Lovelace", "parent", "bob"]


def test_a_neighbourhood_has_its_facts_and_new_links(client, service):
    drawn = client.get(f"{API}/kin/neighbours", name="ada", known=3, predicted=2).json()
    assert drawn["nodes"][0]["name"] == "ada"
    assert [link["known"] for link in drawn["links"]] == [True] * 3 + [False] * 2
    names = {node["name"] for node in drawn["nodes"]}
    dataset = service["kin"].run.dataset
    for link in drawn["links"]:
        assert {link["head"], link["tail"]} <= names
        ids = (
            dataset.entities.find(link["head"]),
            dataset.relations.find(link["relation"]),
            dataset.entities.find(link["tail"]),
        )
        assert (dataset.split_of(ids) is not None) == link["known"]
        assert link["known"] == (link["probability"] is None)


def test_a_map_has_the_best_connected_first(client):
    whole = client.get(f"{API}/kin/map").json()
    assert len(whole["points"]) == 8
    assert max(abs(point["x"]) for point in whole["points"]) == pytest.approx(1)
    assert {point["group"] for point in whole["points"]} <= {group["name"] for group in whole["groups"]}
    assert sum(group["points"] for group in whole["groups"]) == 8
    assert client.get(f"{API}/kin/map", limit=2).json()["points"] == whole["points"][:2]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_row_is_served(drawn_run, family, name):
    run = drawn_run(family, name)
    served = ServedRun("run", run).prepare()
    client = Client(make_app(Service({"run": served})))
    urls = [
        "",
        "/run",
        "/run/algebra",
        "/run/entities?search=a",
        "/run/entity?name=ada",
        "/run/neighbours?name=ada",
        "/run/map",
    ]
    assert [client.get(API + url).status_code for url in urls] == [200] * len(urls)
    question = {"head": "ada", "relation": "parent"}
    answers = client.post(
        f"{API}/run/predict", {"questions": [question, {"relation": "parent", "tail": "bob"}], "k": 4}
    )
    near(answers.json()["answers"][0], [asdict(a) for a in served.predictor.predict(**question, k=4)])
    assert client.post(f"{API}/run/explain", {**question, "tail": "bob"}).status_code == 200
    assert "calibrate" in client.post(f"{API}/run/answer-set", question).json()["error"]
    served.close()


def test_names_with_everything_in_them(drawn_run, odd):
    served = ServedRun("odd", drawn_run(odd, "ComplEx")).prepare()
    client = Client(make_app(Service({"odd": served})))
    for name in odd.entities.names:
        assert client.get(f"{API}/odd/entity", name=name).json()["name"] == name
        body = {"questions": [{"head": name, "relation": "lies in"}]}
        assert client.post(f"{API}/odd/predict", body).status_code == 200
    served.close()


def test_names_that_are_not_there_are_found_out_with_the_nearest(client):
    body = {"questions": [{"head": "ada", "relation": "parent"}, {"head": "lovelaec", "relation": "parent"}]}
    response = client.post(f"{API}/kin/predict", body)
    assert response.status_code == 404
    assert response.json() == {
        "error": "unknown entity 'lovelaec'; did you mean Ada Lovelace?",
        "field": "questions[1].head",
    }
    response = client.post(f"{API}/kin/score", {"triples": [["ada", "parnt", "bob"]]})
    assert response.json() == {
        "error": "unknown relation 'parnt'; did you mean parent?",
        "field": "triples[0].relation",
    }
    assert client.get(f"{API}/kni").json()["error"] == "unknown run 'kni'; did you mean kin?"
    assert client.get(f"{API}/kin/entity", name="zzz").status_code == 404


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
    assert sum(sent) <= (1 << 20) + (1 << 17)


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
    monkeypatch.setattr("modulekge.serving.lookup.Lookup.entities", lambda *_: 1 / 0)
    response = Client(make_app(service)).get(f"{API}/kin/entities")
    assert response.status_code == 500
    assert response.json() == {"error": "internal error; the server's log has a line about it", "field": None}
    assert capsys.readouterr().err == "internal error: ZeroDivisionError: division by zero\n"


def test_weights_that_are_no_numbers_are_refused(drawn_run, family):
    run = drawn_run(family, "ComplEx")
    with torch.no_grad():
        run.model.entity_scalar[0] = torch.nan
    with pytest.raises(RunError, match="weights that are no numbers; train it anew"):
        ServedRun("run", run).prepare()


def test_scores_too_large_for_numbers_are_null(drawn_run, family):
    run = drawn_run(family, "DistMult")
    with torch.no_grad():
        run.model.entity_scalar.fill_(1e30)
    served = ServedRun("run", run).prepare()
    response = Client(make_app(Service({"run": served}))).post(
        f"{API}/run/predict", {"questions": [{"head": "ada", "relation": "parent"}]}
    )
    assert response.status_code == 200
    assert {answer["score"] for answer in response.json()["answers"][0]} <= {None}
    served.close()
