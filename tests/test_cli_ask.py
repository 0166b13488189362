"""Asking a run, as a user does."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from program import call
from pyarrow import parquet

GRAPH = "".join(f"e{i % 40}\tr{i % 3}\te{(5 * i + i // 40) % 40}\n" for i in range(360))
SMALL = ["--set", "model.k=4", "--set", "train.epochs=4", "--set", "train.batch=64"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("place")
    (place / "graph.tsv").write_text(GRAPH)
    done = call("train", "graph.tsv", "--model", "ComplEx", "--out", "run", *SMALL, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "calibrated on" in done.stderr
    assert (place / "run" / "calibration.json").exists()
    shutil.copytree(place / "run", place / "bare")
    (place / "bare" / "calibration.json").unlink()
    return place


def lines(done) -> list[dict]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_predict_asks_for_whichever_is_left_out(place):
    tails = lines(call("predict", "run", "--head", "e0", "--relation", "r0", "--json", cwd=place))
    assert len(tails) == 10
    assert set(tails[0]) == {"rank", "name", "label", "score", "probability", "split", "known"}
    assert all(0 <= a["probability"] <= 1 for a in tails if a["split"] != "train")
    heads = lines(
        call("predict", "run", "--tail", "e0", "--relation", "r0", "-k", 3, "--new", "--json", cwd=place)
    )
    assert [(a["rank"], a["known"]) for a in heads] == [(1, False), (2, False), (3, False)]
    relations = lines(call("predict", "run", "--head", "e0", "--tail", "e5", "--json", cwd=place))
    assert {a["name"] for a in relations} == {"r0", "r1", "r2"}
    table = call("predict", "run", "--head", "e0", "--relation", "r0", cwd=place).stdout
    assert "probability" in table
    assert "%" in table


def test_without_a_calibration_there_are_scores_and_a_word_how_to_get_more(place):
    done = call("predict", "bare", "--head", "e0", "--relation", "r0", cwd=place)
    assert done.returncode == 0
    assert done.stderr == "no probabilities: 'modulekge calibrate bare' makes them\n"
    assert "probability" not in done.stdout


def test_of_what_was_never_trained_on_it_is_said_that_answers_are_guesses(tmp_path):
    for split, rows in {"train": GRAPH, "valid": "e0\tr1\te2\n", "test": "late\tr0\te1\n"}.items():
        (tmp_path / f"{split}.txt").write_text(rows)
    done = call("train", ".", "--model", "ComplEx", "--out", "../late-run", *SMALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    caution = "'late' is in no training fact: its row is as it was drawn, its answers are guesses\n"
    run = tmp_path.parent / "late-run"
    assert call("predict", run, "--head", "late", "--relation", "r0", cwd=tmp_path).stderr == caution
    assert call("explain", run, "late", "r0", "e1", cwd=tmp_path).stderr == caution
    assert call("predict", run, "--head", "e1", "--relation", "r0", cwd=tmp_path).stderr == ""


def test_what_needs_facts_says_that_a_shared_run_has_none(place):
    assert call("export", "run", "hub", "--to", "hub", "--without-facts", cwd=place).returncode == 0
    for command in ("evaluate", "calibrate", "links", "sharpen", "relations"):
        done = call(command, "hub", cwd=place)
        assert done.returncode == 2
        assert "shared without its facts, which this needs; use the run it is of" in done.stderr
    done = call("explain", "hub", "e0", "r0", "e5", cwd=place)
    assert (done.returncode, "shared without its facts" in done.stderr) == (0, True)


def test_prediction_sets(place):
    shown = call("predict", "run", "--head", "e0", "--relation", "r0", "--coverage", 0.5, cwd=place).stdout
    promise = r"if a fact is missing, it is among these \d+ of \d+ candidates in about 50 of 100 cases \(by"
    assert re.search(promise, shown)
    shown = call("predict", "run", "--head", "e0", "--relation", "r0", "--coverage", 0.9, cwd=place).stdout
    share = json.loads((place / "run" / "calibration.json").read_text())["measured"]["sets"]["share"]
    assert f"; measured on test: {share:.1%})" in shown
    everything = call(
        "predict", "run", "--head", "e0", "--relation", "r0", "--coverage", 0.9999, cwd=place
    ).stdout
    assert "too uncertain to narrow down: all" in everything
    assert "more; --out or --json gives them all" in everything
    rows = lines(
        call("predict", "run", "--head", "e0", "--relation", "r0", "--coverage", 0.5, "--json", cwd=place)
    )
    assert rows
    assert not any(row["known"] for row in rows)


CANDIDATES = "type constraints: 4,800 of 4,800 triples are candidates\n"  # every entity answers everything
MEANING = "probability: that the link is a missing fact, if as many are missing as valid held out\n"


def test_links_of_an_older_calibration_say_what_their_probability_is(place, tmp_path):
    shutil.copytree(place / "run", tmp_path / "run")
    file = tmp_path / "run" / "calibration.json"
    fields = json.loads(file.read_text())
    del fields["links"]
    file.write_text(json.dumps(fields))
    shown = call("links", "run", "-k", 2, cwd=tmp_path)
    assert shown.returncode == 0
    assert shown.stderr.endswith("misses one; 'modulekge calibrate run' makes that of links\n")


def test_links_to_a_table_lines_and_files(place, tmp_path):
    shown = call("links", "run", "-k", 5, cwd=place)
    assert (shown.returncode, shown.stderr) == (0, CANDIDATES + MEANING)
    assert len(shown.stdout.splitlines()) == 6
    rows = lines(call("links", "run", "--head", "e1", "--head", "e0", "-k", 200, "--json", cwd=place))
    assert {row["head"] for row in rows} == {"e0", "e1"}
    of_all = lines(call("links", "run", "-k", 9999, "--json", cwd=place))
    same = [row for row in of_all if row["head"] in ("e0", "e1")][: len(rows)]
    chances = [row.pop("probability") for row in same]
    assert chances == pytest.approx([row.pop("probability") for row in rows], rel=1e-5)
    assert same == rows
    rows = lines(call("links", "run", "--relation", "r1", "--relation", "r2", "-k", 7, "--json", cwd=place))
    assert len(rows) == 7
    assert {row["relation"] for row in rows} <= {"r1", "r2"}
    facts = {tuple(line.split("\t")) for line in GRAPH.splitlines()}
    assert not {(row["head"], row["relation"], row["tail"]) for row in rows} & facts
    for ending in ("csv", "jsonl", "parquet"):
        done = call("links", place / "run", "-k", 5, "--out", f"new.{ending}", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "")
        told = done.stderr.removeprefix(CANDIDATES).splitlines()
        assert told[0] == f"5 rows in new.{ending}" and told[1].startswith("probability: that the link")
    with (tmp_path / "new.csv").open(newline="") as file:
        assert [row["head"] for row in csv.DictReader(file)] == [
            row["head"] for row in parquet.read_table(tmp_path / "new.parquet").to_pylist()
        ]


def test_links_and_answers_are_of_fitting_types_unless_told_and_where_told(tmp_path):
    """Twenty workers at five firms, each firm in one of two towns: no firm is a worker, no town a firm."""
    works = [(f"w{i}", "works_at", f"f{(i + j) % 5}") for i in range(20) for j in range(2)]
    lies = [(f"f{i}", "in", f"t{i % 2}") for i in range(5)]
    valid, test = ([("w0", "works_at", f)] for f in ("f3", "f4"))
    for split, rows in {"train": [*works, *lies], "valid": valid, "test": test}.items():
        (tmp_path / f"{split}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    done = call("train", ".", "--model", "ComplEx", "--out", "../run", *SMALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    of_any = call("links", "../run", "--any-type", "-k", 9999, "--json", cwd=tmp_path)
    fitting = call("links", "../run", "-k", 9999, "--json", cwd=tmp_path)
    assert of_any.stderr == ""
    assert fitting.stderr == "type constraints: 110 of 1,458 triples are candidates\n"  # 20 * 5 + 5 * 2

    def ends(rows):
        return {row["head"][0] + row["tail"][0] for row in rows}

    assert ends(lines(fitting)) == {"wf", "ft"}
    assert ends(lines(of_any)) > {"wf", "ft"}
    ask = ("predict", "../run", "--head", "w1", "--relation", "works_at", "-k", 27, "--json")
    done = call(*ask, "--typed", cwd=tmp_path)
    assert {row["name"] for row in lines(done)} == {f"f{i}" for i in range(5)}
    assert done.stderr == "type constraints: 5 of 27 entities are candidates\n"
    assert len(lines(call(*ask, cwd=tmp_path))) > 5


def test_scores_of_a_file(place, tmp_path):
    (tmp_path / "some.csv").write_text("kind,from,to\nr0,e0,e0\nr1,e1,nobody\nr0,e3,e4\n")
    given = ("score", place / "run", "some.csv", "--columns", "from,kind,to", "--json")
    done = call(*given, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: some.csv:3: unknown entity 'nobody'")
    done = call(*given, "--skip-unknown", cwd=tmp_path)
    rows = lines(done)
    assert done.stderr == (
        "some.csv: 1 of 3 triples left out: their names are unknown, or labels of several\n"
    )
    assert [(row["head"], row["tail"]) for row in rows] == [("e0", "e0"), ("e3", "e4")]
    assert all(1 <= row["tail_rank"] <= 40 and 1 <= row["head_rank"] <= 40 for row in rows)


def test_calibrate_shows_measures_and_draws(place, tmp_path):
    pytest.importorskip("matplotlib")
    done = call("calibrate", place / "bare", "--figure", "r.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "all questions" in done.stdout
    assert "answer sets of 90% hold" in done.stdout
    assert (tmp_path / "r.svg").read_text().startswith("<?xml")
    found = json.loads(call("calibrate", place / "bare", "--json", cwd=tmp_path).stdout)
    assert found == json.loads((place / "bare" / "calibration.json").read_text())
    (place / "bare" / "calibration.json").unlink()


def test_training_on_drops_the_calibration_of_the_weights_before_and_makes_it_anew(place, tmp_path):
    run = shutil.copytree(place / "run", tmp_path / "run")
    (run / "calibration.json").write_text("of older weights")
    done = call("resume", "run", "--set", "train.epochs=9", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "together" in json.loads((run / "calibration.json").read_text())


ASK = ["predict", "run", "--head", "e0", "--relation", "r0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*ASK, "-k", 41], "k = 41: the graph has 40 entities; ask for 40 at most"),
        (["predict", "run", "--head", "e0", "--tail", "e1", "-k", 4], "k = 4: the graph has 3 relations"),
        ([*ASK, "--tail", "e1"], "leave out exactly one"),
        ([*ASK, "--coverage", 90], "between 0 and 1"),
        ([*ASK, "--coverage", 0.9, "-k", 3], "leave -k and --typed out"),
        ([*ASK, "--coverage", 0.9, "--typed"], "leave -k and --typed out"),
        (["predict", "run", "--head", "e0", "--tail", "e1", "--typed"], "ask for relations without them"),
        ([*ASK, "--out", "a.xlsx"], "a.xlsx: expected a file that ends in .csv, .jsonl or .parquet"),
        ([*ASK, "--out", "graph.csv"], "graph.csv: exists already"),
        (["links", "run", "-k", 0], "at least one link"),
        (["links", "run", "--relation", "r7"], "unknown relation 'r7'"),
        (["links", "bare"], "no calibration yet; 'modulekge calibrate bare' makes it"),
        (["score", "run", "absent.tsv"], "absent.tsv"),
        (["calibrate", "run", "--figure", "a.pdf"], "a.pdf: expected a file that ends in .png or .svg"),
        (["calibrate", "nowhere"], "not a run folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(place, arguments, message):
    (place / "graph.csv").write_text("mine")
    done = call(*arguments, cwd=place)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert (place / "graph.csv").read_text() == "mine"


@pytest.mark.parametrize("command", ["links", "score", "calibrate"])
def test_help_has_an_example(command, tmp_path):
    done = call(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "Example: modulekge" in " ".join(done.stdout.split())


def test_a_compound_question_is_answered_with_its_reasons(place):
    question = "?c where e0 r0 ?x and ?x r1 ?c and not ?c r2 e1"
    done = call("ask", "run", question, "-k", 3, cwd=place)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.splitlines()
    assert shown[0] == question
    assert shown[1].split() == ["answer", "probability", "because"]
    assert "calibrated probabilities, product; what is below 0.001 counts as impossible" in shown[-1]
    found = json.loads(call("ask", "run", question, "-k", 3, "--json", cwd=place).stdout)
    assert set(found) == {"answers", "possible", "probabilities", "t_norm", "threshold"}
    assert [a["rank"] for a in found["answers"]] == [1, 2, 3]
    chances = [a["probability"] for a in found["answers"]]
    assert chances == sorted(chances, reverse=True)
    assert {"head", "relation", "tail", "probability", "known", "negated", "names"} == set(
        found["answers"][0]["links"][0]
    )
    sparql = "SELECT ?c { :e0 :r0 ?x . ?x :r1 ?c . FILTER NOT EXISTS { ?c :r2 :e1 } }"
    assert json.loads(call("ask", "run", sparql, "-k", 3, "--json", cwd=place).stdout) == found
    new = json.loads(
        call("ask", "run", question, "--new", "--t-norm", "godel", "--any-type", "--json", cwd=place).stdout
    )
    assert new["t_norm"] == "godel"
    assert new["answers"]
    assert not any(a["known"] for a in new["answers"])


def test_answers_to_a_compound_question_in_a_file(place, tmp_path):
    question, file = "?c where e0 r0 ?x and ?x r1 ?c", tmp_path / "answers.csv"
    done = call("ask", "run", question, "-k", 3, "--out", file, cwd=place)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "3 rows in" in done.stderr
    kept = list(csv.DictReader(file.read_text("utf-8").splitlines()))
    found = json.loads(call("ask", "run", question, "-k", 3, "--json", cwd=place).stdout)["answers"]
    assert [row["name"] for row in kept] == [answer["name"] for answer in found]
    assert [float(row["probability"]) for row in kept] == [answer["probability"] for answer in found]
    assert all(row["because"] for row in kept)
    again = call("ask", "run", question, "--out", file, cwd=place)
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_a_wrong_word_of_a_compound_question_is_pointed_at(place):
    done = call("ask", "run", "?c where e0 r0 ?x and ?x rr1 ?c", cwd=place)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: unknown relation 'rr1'; did you mean 'r1'?",
        "  ?c where e0 r0 ?x and ?x rr1 ?c",
        "                           ^^^",
    ]
    done = call("ask", "run", "?c where e0 r0 ?c", "--t-norm", "minimum", cwd=place)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "unknown t-norm 'minimum'; choose one of product, godel, lukasiewicz" in done.stderr


def test_of_probabilities_that_are_fitted_to_nothing_it_is_said(place):
    done = call("ask", "bare", "?c where e0 r0 ?c", cwd=place)
    assert (
        done.stderr
        == "probabilities are a softmax, fitted to nothing; 'modulekge calibrate bare' fits them\n"
    )
    assert "softmax probabilities" in done.stdout
    none = call(
        "ask",
        "run",
        "?c where e0 r0 ?c and e0 r1 ?c and e1 r2 ?c and e3 r1 ?c",
        "--t-norm",
        "lukasiewicz",
        cwd=place,
    )
    assert none.returncode == 0
