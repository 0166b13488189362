"""The HTTP API in process: what it answers, what it refuses, what it hides."""

import json
import time
from dataclasses import asdict, replace

import pytest
import torch
from rows import ONE_OF_EACH
from web import API, Client

from modulekge.answers.compound.asker import ask
from modulekge.answers.predictor import Predictor
from modulekge.errors import RunError
from modulekge.exports.formats import export
from modulekge.run.run import load
from modulekge.server.http import make_app
from modulekge.server.metrics import Metrics
from modulekge.server.service import ServedRun, Service


@pytest.fixture(scope="module")
def asked(folder):
    return Predictor(load(folder))


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


def test_an_entity_is_described_and_not_found_by_its_description(client):
    assert client.get(f"{API}/kin/entity", name="ada").json()["description"] == "Wrote a program."
    assert client.get(f"{API}/kin/entities", search="program").json()["items"] == []


def test_an_entity_with_its_facts_and_the_split_of_each(client):
    card = client.get(f"{API}/kin/entity", name="fay").json()
    assert (card["degree"], card["description"]) == (4, None)
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


def test_answers_and_links_of_fitting_types(drawn_run, family):
    """The three children of the first live in two places, which are no one's parents."""
    lives = torch.tensor([[1, 3, 8], [2, 3, 8], [3, 3, 9]])
    people = replace(family.entities, names=(*family.entities.names, "rome", "bonn"))
    relations = replace(family.relations, names=(*family.relations.names, "lives_in"))
    graph = replace(family, entities=people, relations=relations, train=torch.cat([family.train, lives]))
    served = ServedRun("run", drawn_run(graph, "ModulE-HH")).prepare()
    client = Client(make_app(Service({"run": served})))
    body = {"questions": [{"head": "bob", "relation": "lives_in"}], "k": 10}
    (every,) = client.post(f"{API}/run/predict", body).json()["answers"]
    (fitting,) = client.post(f"{API}/run/predict", {**body, "types": "constrained"}).json()["answers"]
    assert (len(every), {answer["name"] for answer in fitting}) == (10, {"rome", "bonn"})
    refused = client.post(
        f"{API}/run/predict", {"questions": [{"head": "ada", "tail": "bob"}], "types": "constrained"}
    )
    assert (refused.status_code, "without them" in refused.json()["error"]) == (400, True)
    assert client.post(f"{API}/run/predict", {**body, "types": "some"}).status_code == 422
    around = {"name": "bob", "known": 0, "predicted": 50}
    fitting, every = (
        {
            link["tail"]
            for link in client.get(f"{API}/run/neighbours", **around, **types).json()["links"]
            if (link["head"], link["relation"]) == ("bob", "lives_in")
        }
        for types in ({}, {"types": "any"})
    )
    assert fitting == {"bonn"}
    assert every & {*family.entities.names}
    served.close()


def test_more_answers_than_there_are_is_all_of_them(client):
    body = {"questions": [{"head": "ada", "relation": "parent"}, {"head": "ada", "tail": "bob"}], "k": 500}
    assert [len(answers) for answers in client.post(f"{API}/kin/predict", body).json()["answers"]] == [8, 3]
    assert client.post(f"{API}/kin/predict", {"questions": []}).json()["answers"] == []


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
        deadline = time.monotonic() + 300
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
    assert len(sizes) <= 2  # the first that came and the rest, or all of them
    assert sum(sizes) == len(bodies)
    assert metrics.batches.total == len(bodies)
    assert sum(metrics.batches.counts) == len(sizes)


def test_sets_scores_and_reasons(client, asked):
    found = client.post(
        f"{API}/kin/answer-set",
        {"head": "Ada Lovelace", "relation": "parent", "coverage": 0.5, "limit": 1},
    ).json()
    assert found["question"] == {"head": "ada", "relation": "parent", "tail": None}
    assert len(found["answers"]) == 1
    expected = asked.prediction_set(head="ada", relation="parent", coverage=0.5)
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
    assert {len(whole[column]) for column in ("names", "labels", "x", "y", "group")} == {8}
    assert max(map(abs, whole["x"] + whole["y"])) == pytest.approx(1)
    counts = [whole["group"].count(i) for i in range(len(whole["groups"]))]
    assert counts == [group["points"] for group in whole["groups"]]
    assert sum(counts) == 8
    assert client.get(f"{API}/kin/map", limit=2).json()["names"] == whole["names"][:2]


@pytest.mark.parametrize("name", ONE_OF_EACH)
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
    error = client.post(f"{API}/run/answer-set", question).json()["error"]
    assert error == "run: has no calibration yet; 'modulekge calibrate run' makes it"
    served.close()


def test_what_a_run_shared_without_facts_cannot_say_is_said_without_its_path(drawn_run, family, tmp_path):
    path = export(drawn_run(family, "ComplEx"), tmp_path / "bare", to="hub", without_facts=True).path
    served = ServedRun("bare", load(path)).prepare()
    client = Client(make_app(Service({"bare": served})))
    said = [
        client.get(f"{API}/bare/algebra"),
        client.post(f"{API}/bare/answer-set", {"head": "ada", "relation": "parent"}),
    ]
    served.close()
    missing = "family: shared without its facts, which this needs; use the run it is of"
    assert [response.json()["error"] for response in said] == [missing, missing]


@pytest.mark.parametrize(
    "question", [{"head": "ada", "relation": None}, dict.fromkeys(("head", "relation", "tail"))]
)
def test_null_is_as_good_as_nothing(client, question):
    problem = client.post(f"{API}/kin/predict", {"questions": [question]}).json()
    assert problem["error"] == "leave out exactly one of head, relation and tail; see /docs"
    assert problem["field"] == "questions[0]"
    found = client.post(
        f"{API}/kin/predict", {"questions": [{"head": "ada", "relation": "parent", "tail": None}]}
    )
    assert found.status_code == 200


def test_nobody_is_meant_by_an_empty_name(client):
    problem = client.post(f"{API}/kin/predict", {"questions": [{"head": " _", "relation": "parent"}]}).json()
    assert problem["error"] == "unknown entity ' _'; there are 8, such as 'Ada Lovelace', 'bob', 'cid'"


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
    problem = {
        "error": "unknown entity 'lovelaec'; did you mean 'Ada Lovelace'?",
        "field": "questions[1].head",
    }
    found = client.post(f"{API}/kin/predict", body).json()  # the other question is answered
    assert (found["errors"], [len(answers) for answers in found["answers"]]) == ([None, problem], [8, 0])
    assert found["questions"][0] == {"head": "ada", "relation": "parent", "tail": None}
    response = client.post(f"{API}/kin/predict", {"questions": body["questions"][1:]})
    assert (response.status_code, response.json()["field"]) == (404, "questions[0].head")
    response = client.post(f"{API}/kin/score", {"triples": [["ada", "parnt", "bob"]]})
    assert response.json() == {
        "error": "unknown relation 'parnt'; did you mean 'parent'?",
        "field": "triples[0].relation",
    }
    score = {"triples": [["ada", "parent", "bob"], ["ada", "parent", "bbo"]]}
    scored = client.post(f"{API}/kin/score", score).json()  # the other triple is scored
    assert [link and link["tail"] for link in scored["links"]] == ["bob", None]
    assert [error and error["field"] for error in scored["errors"]] == [None, "triples[1].tail"]
    like = client.get(f"{API}/kin/alike", name="ada", limit=3).json()
    likeness = [item["likeness"] for item in like["items"]]
    assert (like["name"], len(likeness), likeness) == ("ada", 3, sorted(likeness, reverse=True))
    assert client.get(f"{API}/kni").json()["error"] == "unknown run 'kni'; did you mean kin?"
    assert client.get(f"{API}/kin/entity", name="zzz").status_code == 404


def test_weights_that_are_no_numbers_are_refused(drawn_run, family):
    run = drawn_run(family, "ComplEx")
    with torch.no_grad():
        run.model.entity_scalar[0] = torch.nan
    run.folder.save_weights(run.model)
    with pytest.raises(RunError, match="weights that are no numbers; train it anew"):
        Service.open([run.folder.path], torch.device("cpu"))


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


def test_compound_questions(client, folder):
    url, question = f"{API}/kin/ask", "?y where ada parent ?x and ?x parent ?y"
    found = client.post(url, {"question": question, "k": 3}).json()
    assert found.pop("question") == question
    assert found == json.loads(json.dumps(asdict(ask(load(folder), question, k=3))))  # tuples are lists
    assert [a["name"] for a in found["answers"][:2]] == ["dan", "eve"]
    sparql = {"question": "SELECT ?y { :ada :parent ?x . ?x :parent ?y }", "k": 3}
    answer = client.post(url, sparql).json()
    assert (answer.pop("question"), answer) == (sparql["question"], found)
    rows = client("POST", url, json=sparql, headers={"accept": "text/csv"}).text.splitlines()
    assert (rows[0], len(rows)) == ("rank,name,label,probability,known", 4)
    everything = client.post(
        url, {"question": question, "k": 500, "known": "exclude", "t_norm": "godel", "types": "any"}
    )
    assert not any(a["known"] for a in everything.json()["answers"])


@pytest.mark.parametrize(
    ("body", "status", "error", "field"),
    [
        (
            {"question": "?y where adda parent ?y"},
            404,
            "character 10: unknown entity 'adda'; did you",
            "question",
        ),
        (
            {"question": "?y where ada parent"},
            400,
            "character 20: expected an entity or a variable",
            "question",
        ),
        ({"question": "?y where ada parent ?y", "k": 0}, 422, "k: Input should be", "k"),
        ({"question": "?y where ada parent ?y", "t_norm": "min"}, 422, "t_norm: Input should be", "t_norm"),
        ({}, 422, "question: Field required", "question"),
    ],
)
def test_compound_questions_that_are_refused(client, body, status, error, field):
    found = client.post(f"{API}/kin/ask", body)
    assert found.status_code == status
    assert found.json()["error"].startswith(error)
    assert found.json()["field"] == field
