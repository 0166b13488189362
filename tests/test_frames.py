"""Values show themselves in a few lines, and their rows as tables."""

import re
import shutil
import sys
from dataclasses import asdict, dataclass

import pyarrow as pa
import pytest

import modulekge
from modulekge.errors import ModulekgeError
from modulekge.frames import Rows, Shown, Table

ROWS = [(f"n{i}", ("next", "far")[d > 2], f"n{(i + d) % 40}") for i in range(40) for d in (1, 2, 5, 7)]
EVIL = "<script>alert('&')</script>"
LONGEST = 1000


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"train.epochs": 3, "train.eval_every": 1, "model.k": 4}
    path = tmp_path_factory.mktemp("frames") / "run"
    run = modulekge.train(ROWS, "ModulE-HH", settings, path, labels={"n0": EVIL})
    modulekge.calibrate(run)
    return modulekge.load(path)


@pytest.fixture(scope="module")
def values(run):
    """One of each kind that has rows."""
    asked = modulekge.Predictor(run)
    return {
        "answers": asked.predict(head="n0", relation="next", k=40),
        "relations": asked.predict(head="n0", tail="n1"),
        "links": asked.links(k=30),
        "scores": asked.score(ROWS[:7]),
        "set": asked.prediction_set(head="n1", relation="next"),
        "report": modulekge.evaluate(run, "valid"),
        "patterns": modulekge.relation_patterns(run),
        "explanation": modulekge.explain(run, "n0", "next", "n1"),
        "compound": modulekge.ask(run, "?x where n0 next ?x", k=5),
    }


KINDS = ("answers", "relations", "links", "scores", "set", "report", "patterns", "explanation", "compound")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_go_to_arrow_and_back(values, kind):
    value = values[kind]
    types, rows = value._columns()
    table = value.to_arrow()
    assert table.column_names == list(types)
    assert all(not pa.types.is_null(field.type) for field in table.schema)
    expected = [{name: list(x) if isinstance(x := row[name], tuple) else x for name in types} for row in rows]
    assert table.to_pylist() == expected
    assert table.num_rows > 0
    assert pa.RecordBatchReader.from_stream(value).read_all().equals(table)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_go_to_pandas_and_polars(values, kind):
    pandas = pytest.importorskip("pandas")
    frame = values[kind].to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == values[kind].to_arrow().column_names
    assert len(frame) == values[kind].to_arrow().num_rows
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(values[kind]).height == len(frame)


def test_without_pandas_it_is_said_what_to_install(values, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModulekgeError, match="pip install pandas; or use to_arrow"):
        values["links"].to_pandas()


def test_links_become_facts(run, values):
    links = values["links"]
    graph = modulekge.open_dataset(links, columns=("head", "relation", "tail"))
    assert sum(len(graph[split]) for split in ("train", "valid", "test")) == len(links)
    assert modulekge.open_dataset(ROWS).fingerprint == run.dataset.fingerprint


def test_answers_without_probabilities_say_how_to_have_them(values, tmp_path):
    bare = modulekge.train(ROWS, "DistMult", {"train.epochs": 1, "model.k": 4}, tmp_path / "bare")
    asked = modulekge.Predictor(str(bare.folder.path))
    assert "modulekge.calibrate(run)" in repr(asked.predict(head="n0", relation="next"))
    for kind in ("answers", "relations", "links", "scores"):
        assert "calibrate" not in repr(values[kind])


def test_a_table_is_scored_as_its_rows_are(run):
    asked = modulekge.Predictor(run)
    rows = [("n1", "next", "n2"), ("n2", "next", "n1")]
    table = pa.table(dict(zip(("head", "relation", "tail"), zip(*rows, strict=True), strict=True)))
    assert asked.score(table) == asked.score(rows)
    unknown = pa.table({"head": ["n1"], "relation": ["next"], "tail": ["n1000"]})
    with pytest.raises(ModulekgeError, match="row 1: unknown entity 'n1000'"):
        asked.score(unknown)


@pytest.mark.parametrize("kind", KINDS)
def test_a_repr_is_short_and_html_escapes_names(values, kind):
    value = values[kind]
    assert 0 < len(repr(value)) < LONGEST
    html = value._repr_html_()
    assert "<script" not in html
    for tag in ("table", "tr", "td", "th", "div"):
        assert html.count(f"<{tag}>") + html.count(f"<{tag} ") == html.count(f"</{tag}>")
    assert html.count("<tr>") >= min(50, value.to_arrow().num_rows)


def test_a_label_is_shown_as_text(run):
    answers = modulekge.Predictor(run).predict(tail="n1", relation="next", k=40)
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in answers._repr_html_()


def test_every_public_object_has_a_short_repr(run, values):
    asked = modulekge.Predictor(run)
    objects = [
        run,
        run.dataset,
        run.dataset.entities,
        run.model,
        run.model.spec,
        run.scorer,
        asked,
        asked.calibration,
        asked.calibration.together,
        modulekge.Asker(run),
        modulekge.EntityIndex.build(run),
        values["answers"][0],
        values["links"][0],
        values["compound"].answers[0],
    ]
    for value in objects:
        assert len(repr(value)) < LONGEST, type(value)
        if isinstance(value, Shown):
            assert len(value._repr_html_()) < 2 * LONGEST, type(value)


def test_a_run_says_model_graph_mrr_and_folder(run):
    lines = [line.split(maxsplit=1) for line in repr(run).splitlines()]
    assert [line[0] for line in lines] == ["Run", "model", "graph", "MRR", "folder"]
    shown = dict(lines[1:])
    assert shown["model"] == "ModulE-HH"
    assert shown["graph"] == "graph (40 entities, 2 relations, 160 triples)"
    assert re.fullmatch(r"0\.\d{4} on valid", shown["MRR"])
    assert shown["folder"] == str(run.folder.path)


def test_a_run_whose_figures_cannot_be_read_is_shown_all_the_same(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run.folder.path, copy)
    other = modulekge.load(copy)
    (copy / "epochs.jsonl").write_text("{")
    assert "not measured" in repr(other)
    shutil.rmtree(copy)
    assert "not measured" in repr(other)


@dataclass(frozen=True)
class Point:
    name: str
    x: float | None


class Points(Rows[Point]):
    kind, what = Point, ("point", "points")


def test_what_does_not_fit_is_counted():
    points = Points(Point(f"p{i}", i / 3) for i in range(1000))
    lines = repr(points).splitlines()
    assert lines[0] == "1,000 points"
    assert lines[1].split() == ["name", "x"]
    assert lines[-1] == f"... {1000 - len(lines) + 3:,} more"
    assert "... 950 more" in points._repr_html_()
    assert repr(points[:1]) == "1 point\nname  x\np0    0"
    assert isinstance(points[:2], Points)
    assert isinstance(points[1], Point)
    assert repr(Points()) == "0 points"
    assert Points().to_arrow().schema == points.to_arrow().schema
    assert "\x1b" not in repr(Points([Point("\x1b[31m", None)]))
    assert "p0" in repr(asdict(Held(points[:1])))


@dataclass(frozen=True)
class Held:
    points: Points


def test_lists_stay_lists(values):
    answers = values["answers"]
    assert isinstance(answers, list)
    assert answers == list(answers)
    assert isinstance(values["set"].answers[:1], modulekge.Answers)
    assert issubclass(modulekge.Links, Table)


def test_completion_offers_public_names_only():
    assert dir(modulekge) == sorted(set(modulekge.__all__) - {"__version__"})
    for name in dir(modulekge):
        assert not name.startswith("_")
        assert (getattr(modulekge, name).__doc__ or "").strip(), name


def test_help_says_what_none_does_and_shows_an_example():
    for function in (modulekge.train, modulekge.open_dataset):
        assert "None" in function.__doc__
        assert f"modulekge.{function.__name__}(" in function.__doc__.split(">>>")[1]
