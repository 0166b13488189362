"""Tools for agents, asked by the official client in this process."""

import asyncio
import json
import re
import shutil
import threading

import pytest
import torch
from agents import Agent
from mcp import Client
from web import API
from web import Client as WebClient

import modulekge
from modulekge.run.train import train
from modulekge.server import tools
from modulekge.server.growing import GrowingRun
from modulekge.server.http import make_app
from modulekge.server.mcp import make_server
from modulekge.server.problems import INTERNAL
from modulekge.server.service import Service

READERS = ["search", "predict", "ask", "explain", "links", "neighbourhood"]


@pytest.fixture
def served():
    """Serve a run to an agent; whatever run it is of by then, its threads end with the test."""
    opened = []

    def serve(path, writable=False):
        growing = GrowingRun(Service.open([path], torch.device("cpu"))[path.name])
        opened.append(growing)
        return Agent(make_server(growing, writable))

    yield serve
    for growing in opened:
        growing.served.close()


@pytest.fixture(scope="module")
def paths(family, tmp_path_factory):
    """A run of paths, which facts can be added to in no time."""
    settings = {"train.epochs": 2, "train.batch": 8, "model.k": 4}
    run = train(family, "Paths", settings, tmp_path_factory.mktemp("runs") / "paths")
    modulekge.calibrate(run)
    return run.folder.path


@pytest.fixture
def bare(folder, tmp_path):
    """A run without a calibration."""
    run = shutil.copytree(folder, tmp_path / "bare")
    (run / "calibration.json").unlink()
    return run


def test_every_tool_has_schemas_and_an_example_that_it_takes(served, folder):
    listed = served(folder, writable=True).tools()
    assert [tool.name for tool in listed] == [*READERS, "add_fact"]
    for tool in listed:
        example = json.loads(re.search(r"Example: (\{.*\})\.$", tool.description)[1])
        tools.TOOLS[tool.name].takes.model_validate(example)
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert tool.annotations.read_only_hint == (tool.name != "add_fact")
    assert [tool.name for tool in served(folder).tools()] == READERS


def test_search_finds_entities_and_relations(served, folder):
    agent = served(folder)
    values, text = agent("search", text="ada")
    assert values["entities"][0] == {"name": "ada", "label": "Ada Lovelace", "degree": 4}
    assert text.startswith("entities (1): Ada Lovelace [ada] (4 facts)")
    assert agent("search", text="paren")[0]["relations"][0]["name"] == "parent"
    assert agent("search", text="", limit=2)[0]["total_entities"] == 8
    assert "nothing is called so" in agent("search", text="zzzzzz")[1]


def test_answers_are_those_of_the_http_api(served, folder, service):
    agent, web = served(folder), WebClient(make_app(service))
    asked = {"head": "ada", "relation": "parent"}
    body = {"questions": [asked], "k": 5}
    values, text = agent("predict", **asked, k=5)
    assert values["answers"] == web.post(f"{API}/kin/predict", body).json()["answers"][0]
    assert text.splitlines()[0] == "ada  parent  ?"
    assert len(text.splitlines()) == 6
    triple = {**asked, "tail": "dan"}
    values, text = agent("explain", **triple)
    assert values["explanation"] == web.post(f"{API}/kin/explain", triple).json()
    (link,) = web.post(f"{API}/kin/score", {"triples": [list(triple.values())]}).json()["links"]
    assert values["link"] == link
    assert f"{link['probability']:.1%}" in text
    question = {"question": "?y where ada parent ?x and ?x parent ?y", "k": 3}
    values, text = agent("ask", **question)
    said = web.post(f"{API}/kin/ask", question).json()
    assert said.pop("question") == question["question"]  # HTTP repeats what was asked, an agent knows it
    assert values == {**said, "notes": []}
    assert "because Ada Lovelace parent bob (known)" in text
    drawn = web.get(f"{API}/kin/neighbours", name="ada", known=2, predicted=2).json()
    values, text = agent("neighbourhood", name="ada", known=2, predicted=2)
    assert values == {**drawn, "notes": []}
    assert text.startswith("Ada Lovelace [ada] is in 4 facts, such as:")
    best = modulekge.Predictor(modulekge.load(folder)).links(["parent"], k=3)
    values, text = agent("links", relations=["parent"], k=3)
    assert [(link["head"], link["tail"]) for link in values["links"]] == [(x.head, x.tail) for x in best]
    # the server asks other numbers of questions at once, which moves the last bit
    assert [link["probability"] for link in values["links"]] == pytest.approx([x.probability for x in best])
    assert values["links"] == web.get(f"{API}/kin/links", relation="parent", limit=3).json()["links"]
    assert text.count("\n") == 2


def test_what_is_too_unlikely_is_left_out_and_said(served, folder):
    agent = served(folder)
    values, text = agent("predict", head="ada", relation="parent", known="exclude", min_probability=1)
    assert values["answers"] == []
    assert "no new answer has a probability of 1 or more; the best, " in text
    every = agent("predict", head="ada", relation="sibling", k=8, known="exclude")[0]["answers"]
    least = sorted(answer["probability"] for answer in every)[3]
    kept = agent("predict", head="ada", relation="sibling", k=8, known="exclude", min_probability=least)
    assert kept[0]["answers"] == [answer for answer in every if answer["probability"] >= least]
    assert agent("links", min_probability=1)[1] == "no new link has a probability of 1 or more"
    question = "?y where ada parent ?x and ?x parent ?y"
    values, text = agent("ask", question=question, known="exclude", min_probability=1)
    assert (values["answers"], text) == ([], "no answer has a probability of 1 or more")


def test_of_a_run_without_probabilities_it_is_said(served, bare):
    agent = served(bare)
    caution = "the run bare has no probabilities: it is not calibrated, and scores only rank"
    for tool, arguments in {
        "predict": {"head": "ada", "relation": "parent"},
        "explain": {"head": "ada", "relation": "parent", "tail": "dan"},
        "neighbourhood": {"name": "ada"},
    }.items():
        values, text = agent(tool, **arguments)
        assert values["notes"] == [caution]
        assert text.endswith(caution)
    assert "softmax, fitted to nothing" in agent("ask", question="?x where ada parent ?x")[1]
    said = agent.refused("predict", head="ada", relation="parent", min_probability=0.5)
    assert said == f"min_probability: {caution}; leave it out"
    said = agent.refused("links")
    assert said == "bare: has no calibration yet; 'modulekge calibrate bare' makes it"


def test_errors_are_in_the_words_of_the_http_api(served, folder, service):
    agent, web = served(folder), WebClient(make_app(service))
    triple = {"head": "adda", "relation": "parent", "tail": "dan"}
    said = web.post(f"{API}/kin/explain", triple).json()["error"]
    assert said == "unknown entity 'adda'; did you mean 'Ada Lovelace'?"
    assert agent.refused("explain", **triple) == said
    question = {"question": "?x where ada paren ?x"}
    assert agent.refused("ask", **question) == web.post(f"{API}/kin/ask", question).json()["error"]
    said = web.post(f"{API}/kin/ask", {**question, "k": 0}).json()["error"]
    assert agent.refused("ask", **question, k=0) == said.replace("/docs", "the schema of the tool")
    assert agent.refused("predict", head="ada").startswith("leave out exactly one of head, relation and tail")
    assert agent.refused("links", relations=["parnt"]).endswith("did you mean 'parent'?")
    assert agent.refused("serch", text="") == "unknown tool 'serch'; did you mean search?"
    said = agent.refused("add_fact", head="ada", relation="parent", tail="eve")
    assert said.startswith("unknown tool 'add_fact'")  # of a run that is not writable


def test_an_error_of_ours_is_a_line_in_the_log_and_no_traceback(served, folder, monkeypatch, capsys):
    agent = served(folder)

    def fail(*_):
        raise RuntimeError("of\nours")

    monkeypatch.setattr("modulekge.server.lookup.Lookup.entities", fail)
    assert agent.refused("search", text="ada") == INTERNAL
    assert capsys.readouterr().err == "internal error: RuntimeError: of ours\n"


def test_a_long_answer_keeps_nobody_else_waiting(served, folder, monkeypatch):
    agent, go_on = served(folder), threading.Event()
    monkeypatch.setattr("modulekge.server.service.explain_ids", lambda *_: go_on.wait(30) and None)

    async def converse():
        async with Client(agent.server) as client:
            triple = {"head": "ada", "relation": "parent", "tail": "dan"}
            slow = asyncio.create_task(client.call_tool("explain", triple))
            found = await client.call_tool("predict", {"head": "ada", "relation": "parent"})
            late = slow.done()
            go_on.set()
            await slow
            return found.is_error, late

    assert asyncio.run(converse()) == (False, False)


def test_facts_make_one_new_run_that_answers(served, paths, tmp_path):
    run = shutil.copytree(paths, tmp_path / "kin")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    agent = served(run, writable=True)
    fact = {"head": "zoe", "relation": "sibling", "tail": "ada"}
    assert "unknown entity 'zoe'" in agent.refused("add_fact", **fact)
    values, text = agent("add_fact", **fact, new_names=True)
    assert values == {
        "run": "kin-2", "facts": 1, "entities": 1, "relations": 0, "moved": True, "notes": [],
    }  # fmt: skip
    assert text == "added with 1 new entity; answers come from the run kin-2 from now on"
    values, text = agent("add_fact", head="zoe", relation="parent", tail="gil")
    assert (values["run"], values["facts"], values["moved"]) == ("kin-2", 2, True)
    assert agent.refused("add_fact", **fact) == "family: the 1 fact is known; there is nothing to add"
    tails = agent("predict", head="zoe", relation="parent")[0]["answers"]
    assert [answer["name"] for answer in tails if answer["split"] == "train"] == ["gil"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kin", "kin-2"]
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    kept = modulekge.load(tmp_path / "kin-2").dataset
    assert len(kept.train) == len(modulekge.load(run).dataset.train) + 2


def test_facts_that_are_added_at_once_are_all_kept(served, folder, tmp_path):
    agent = served(shutil.copytree(folder, tmp_path / "kin"), writable=True)
    facts = [{"head": "ada", "relation": "sibling", "tail": tail} for tail in ("dan", "eve")]
    asked = ("predict", {"head": "ada", "relation": "sibling"})
    results = agent.many(*(("add_fact", fact) for fact in facts), asked)
    assert not any(result.is_error for result in results)
    assert not results[0].structured_content["moved"]  # both are old, and so are their rows
    assert "the model has not learnt from it" in results[0].content[0].text
    answers = agent("predict", head="ada", relation="sibling", k=8)[0]["answers"]
    assert sorted(answer["name"] for answer in answers if answer["split"]) == ["dan", "eve"]


@pytest.mark.parametrize("kind", ["paths", pytest.param("mixture", marks=pytest.mark.integration)])
def test_runs_of_paths_and_mixtures_answer_too(served, paths, folder, tmp_path, kind):
    run = shutil.copytree(paths, tmp_path / "paths")
    if kind == "mixture":
        mixed = modulekge.mix([run, folder], tmp_path / "mixture")
        modulekge.calibrate(mixed)
        run = mixed.folder.path
    agent = served(run, writable=True)
    assert len(agent("predict", head="ada", relation="parent", k=3)[0]["answers"]) == 3
    assert agent("ask", question="?y where ada parent ?x and ?x parent ?y")[0]["answers"]
    why, text = agent("explain", head="ada", relation="parent", tail="dan")
    speaks = modulekge.load(run).member(0).name
    assert why["explanation"]["model"] == speaks
    assert (f"explained by {speaks}, the member" in text) == (kind == "mixture")
    assert agent("links", k=2)[0]["links"]
    assert agent("neighbourhood", name="ada")[0]["nodes"]
    assert agent("add_fact", head="zoe", relation="sibling", tail="ada", new_names=True)[0]["moved"]
    assert agent("search", text="zoe")[0]["entities"][0]["degree"] == 1


def test_links_that_would_keep_others_waiting_are_refused(served, folder, monkeypatch):
    monkeypatch.setattr("modulekge.server.links._MOST_SCORES", 100)
    said = served(folder).refused("links")
    assert re.fullmatch(
        r"\d+ questions would have to be asked, and 12 may be; name fewer relations, .*", said
    )
