"""How the API answers, whatever it answers: HEAD, tables, tags of files, origins, its own description."""

import csv
import io
import json

import pytest
from web import API, Client

from modulekge.errors import ConfigError
from modulekge.server.http import make_app
from modulekge.server.server import Bind

PAGE = "https://example.org"


def test_files_of_the_page_are_packed_and_sent_once(client):
    whole = client("GET", "/static/app.js", headers={"accept-encoding": "identity"})
    packed = client("GET", "/static/app.js", headers={"accept-encoding": "gzip"})
    assert (packed.headers["content-encoding"], packed.content) == ("gzip", whole.content)
    assert int(packed.headers["content-length"]) < len(whole.content)
    again = client("GET", "/static/app.js", headers={"if-none-match": whole.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "url", ["/", "/health", f"{API}/kin/entities?search=a", f"{API}/kin/entity?name=nobody"]
)
def test_head_is_get_without_its_body(client, url):
    got, head = client("GET", url), client("HEAD", url)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-length"] == got.headers["content-length"]


def test_a_mistyped_parameter_is_refused(client):
    found = client.get(f"{API}/kin/entities", serach="ada")
    assert (found.status_code, found.json()["field"]) == (422, "serach")
    assert "limit, offset, search" in found.json()["error"]


def test_answers_come_as_tables_where_they_are_asked_for(client):
    body = {"questions": [{"head": "ada", "relation": "parent"}, {"head": "ada", "tail": "bob"}], "k": 2}
    answers = client.post(f"{API}/kin/predict", body).json()["answers"]
    plain = {"json": body, "headers": {"accept": "text/csv"}}
    rows = list(csv.DictReader(io.StringIO(client("POST", f"{API}/kin/predict", **plain).text)))
    assert [(int(row["question"]), row["name"]) for row in rows] == [
        (i, answer["name"]) for i, found in enumerate(answers) for answer in found
    ]
    assert (rows[0]["head"], rows[0]["tail"], rows[3]["tail"]) == ("ada", "", "bob")
    lines = client(
        "GET", f"{API}/kin/relations", headers={"accept": "application/x-ndjson"}
    ).text.splitlines()
    assert [json.loads(line) for line in lines] == client.get(f"{API}/kin/relations").json()["items"]


def test_facts_of_an_entity_and_of_a_relation_come_as_tables(client):
    def table(path):
        got = client("GET", f"{API}/kin/{path}", headers={"accept": "text/csv"})
        assert got.headers["content-type"].startswith("text/csv")
        return [tuple(row.values()) for row in csv.DictReader(io.StringIO(got.text))]

    page = client.get(f"{API}/kin/relation", name="parent", limit=3).json()
    assert table("relation?name=parent&limit=3") == [
        (fact["head"]["name"], "parent", fact["tail"]["name"], fact["split"]) for fact in page["facts"]
    ]
    rows = table("entity?name=ada")
    groups = client.get(f"{API}/kin/entity", name="ada").json()["facts"]
    assert {group["direction"] for group in groups} == {"out", "in"}
    for group in groups:
        end, other = ("tail", "head") if group["direction"] == "in" else ("head", "tail")
        found = [
            dict(zip(("head", "relation", "tail", "split"), row, strict=True))
            for row in rows
            if row[1] == group["relation"]["name"]
        ]
        named = [row[other] for row in found if row[end] == "ada"]
        assert set(named) >= {item["name"] for item in group["items"]}
    assert len(rows) == sum(len(group["items"]) for group in groups)


def test_pages_of_named_origins_may_ask(service):
    client = Client(make_app(service, token="a-token-of-ours", origins=frozenset({PAGE})))
    ask = client("OPTIONS", f"{API}/kin/predict", headers={"origin": PAGE})
    assert (ask.status_code, ask.headers["access-control-allow-origin"]) == (204, PAGE)
    assert "authorization" in ask.headers["access-control-allow-headers"]
    refused = client("GET", API, headers={"origin": PAGE})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE)
    other = client("GET", "/health", headers={"origin": "https://elsewhere.org"})
    assert "access-control-allow-origin" not in other.headers
    assert other.headers["cross-origin-resource-policy"] == "same-origin"
    with pytest.raises(ConfigError, match="--cors"):
        Bind(origins=("*",))


def test_the_api_describes_itself(client):
    document = client.get("/openapi.json").json()
    routes = [route for methods in document["paths"].values() for route in methods.values()]
    names = [route["operationId"] for route in routes]
    assert len(set(names)) == len(names)
    assert {"predict", "links", "judge", "ask", "relation"} <= set(names)
    assert {tag for route in routes for tag in route["tags"]} == {tag["name"] for tag in document["tags"]}
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert document["components"]["schemas"]["Predict"]["properties"]["questions"]["examples"]


def test_held_out_facts_that_are_found_and_links_that_are_new(client, service):
    dataset = service["kin"].run.dataset
    found = client.get(f"{API}/kin/examples").json()["links"]
    assert all((link["tail_rank"], link["split"]) == (1, "test") for link in found)
    links = client.get(f"{API}/kin/links", relation="parent", limit=5).json()["links"]
    assert {(link["relation"], link["split"]) for link in links} == {("parent", None)}
    assert [link["probability"] for link in links] == sorted(
        (link["probability"] for link in links), reverse=True
    )
    card = client.get(f"{API}/kin/relation", name="parent", limit=4, offset=1).json()
    assert (card["triples"], len(card["facts"]), card["n_heads"]) == (6, 4, 4)
    entities, parent = dataset.entities, dataset.relations.find("parent")
    for fact in card["facts"]:
        ids = entities.find(fact["head"]["name"]), parent, entities.find(fact["tail"]["name"])
        assert dataset.split_of(ids) == fact["split"]
