import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest

import modulekge
from modulekge import render
from modulekge.config import RerankConfig
from modulekge.errors import ModulekgeError, RunError
from modulekge.evaluation.evaluate import evaluate
from modulekge.evaluation.report import Report
from modulekge.evaluation.seeds import difference_over_seeds
from modulekge.run.comparison import compare, write_comparison
from modulekge.run.listing import Order, find_runs, list_runs
from modulekge.run.plan import resolve
from modulekge.run.plotting import latex_table
from modulekge.run.rerank import rerank_with
from modulekge.run.train import continue_run, train

SMALL = {"model.k": 4, "train.epochs": 4, "train.batch": 7, "train.eval_every": 2, "train.patience": 0}
LOWER = {**SMALL, "train.epochs": 3, "train.lr": 0.05}


@pytest.fixture(scope="module")
def made(family, tmp_path_factory) -> Path:
    """Two finished runs, one of them evaluated and one in a folder below."""
    place = tmp_path_factory.mktemp("made")
    first = train(family, "ModulE-HH", SMALL, place / "first")
    first.folder.save_report(modulekge.evaluate(first))
    train(family, "DistMult", LOWER, place / "more" / "second")
    return place


@pytest.fixture
def place(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs"))


def by_name(place, order=Order.time):
    return {line.name: line for line in list_runs(place, order)}


def rewrite(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_line_says_what_the_run_is_and_how_good(place):
    line = by_name(place)["first"]
    run = modulekge.load(place / "first")
    assert (line.data, line.model, line.k, line.epochs, line.asked) == ("family", "ModulE-HH", 4, 4, 4)
    assert line.valid_mrr == pytest.approx(modulekge.evaluate(run, "valid").both["mrr"])
    assert line.test_mrr == modulekge.evaluate(run).both["mrr"]
    assert line.seconds == pytest.approx(sum(r.seconds for r in run.folder.records()))
    assert line.state == "finished"
    assert by_name(place)["more/second"].test_mrr is None


def test_no_data_set_and_no_tensors_are_read(place, monkeypatch):
    for reader in ("graph", "checkpoint"):
        monkeypatch.setattr(
            f"modulekge.run.{reader}.read_tensors", lambda *_: pytest.fail("tensors were read")
        )
    assert {line.state for line in list_runs(place)} == {"finished"}
    compare([place / "first", place / "more" / "second"])


def test_the_order(place):
    rewrite(place / "first" / "run.json", started="2026-01-02T00:00:00+00:00")
    rewrite(place / "more" / "second" / "run.json", started="2026-01-01T00:00:00+00:00")
    assert list(by_name(place)) == ["first", "more/second"]
    rewrite(place / "more" / "second" / "run.json", started="2026-01-03T00:00:00+00:00")
    assert list(by_name(place)) == ["more/second", "first"]
    assert list(by_name(place, Order.name)) == ["first", "more/second"]
    best = max(by_name(place).values(), key=lambda line: line.valid_mrr)
    assert next(iter(by_name(place, Order.mrr))) == best.name
    (place / "first" / "epochs.jsonl").unlink()
    assert list(by_name(place, Order.mrr)) == ["more/second", "first"]


def test_states(place, family):
    folder = modulekge.load(place / "first").folder
    assert by_name(place)["first"].state == "finished"
    events = continue_run(folder, [{"train": {"epochs": 100}}])
    next(events)
    assert by_name(place)["first"].state == "training"
    events.close()
    assert by_name(place)["first"].state == "stopped"
    new = folder.create(place / "new", resolve(family, "DistMult"), family)
    line = by_name(place)["new"]
    assert (line.state, line.epochs, line.valid_mrr, line.seconds) == ("no weights yet", 0, None, 0.0)
    assert next(continue_run(new))  # asking for the lock has not taken it


def test_a_run_that_stopped_early_is_finished(place):
    folder = modulekge.load(place / "first").folder
    text = (
        folder.config_file.read_text()
        .replace("patience = 0", "patience = 1")
        .replace("epochs = 4", "epochs = 9")
    )
    folder.config_file.write_text(text)
    records = folder.records()
    folder.write_records([*records[:-1], replace(records[-1], valid={**records[-1].valid, "mrr": 0.0})])
    line = by_name(place)["first"]
    assert (line.state, line.epochs, line.asked) == ("finished", 4, 9)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("config.toml", None, "not a run folder (no config.toml in it)"),
        ("config.toml", b"= 3", "config.toml: not valid TOML"),
        ("run.json", None, "run.json: No such file or directory"),
        ("run.json", b"{", "run.json: not valid JSON"),
        ("vocabulary.json", None, "vocabulary.json: no such file"),
        ("triples.safetensors", None, "triples.safetensors: no such file"),
        ("triples.safetensors", b"", "triples.safetensors: not a readable safetensors file"),
        ("weights.safetensors", b"\x80\x04pickle", "weights.safetensors: not a readable safetensors file"),
        ("last.safetensors", b"cut", "last.safetensors: not a readable safetensors file"),
        ("epochs.jsonl", b"nonsense\n", "epochs.jsonl:1: not the record of epoch 1"),
        (
            "report.json",
            b"{}",
            "report.json: not a report (the whole: expected an object with the keys model",
        ),
        ("report.json", b"[]", "report.json: expected an object"),
    ],
)
def test_a_damaged_run_is_a_line_with_its_reason(place, name, content, reason):
    path = place / "first" / name
    path.unlink() if content is None else path.write_bytes(content)
    line = by_name(place)["first"]
    assert line.state == "damaged"
    assert reason in line.reason
    assert "\n" not in line.reason
    render.console().print(render.runs_table(by_name(place).values()))
    assert by_name(place)["more/second"].state == "finished"


def test_weights_cut_short_are_noticed(place):
    path = place / "first" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    assert by_name(place)["first"].state == "damaged"


def test_where_runs_are_looked_for(place, tmp_path):
    deep = place / "a" / "b" / "c"
    for name in (deep / "here", deep / "too" / "deep", place / ".hidden", place / "first" / "inside"):
        shutil.copytree(place / "more" / "second", name)
    (place / "linked").symlink_to(place / "more", target_is_directory=True)
    (place / "loop").symlink_to(place, target_is_directory=True)
    found = {str(path.relative_to(place)) for path in find_runs(place)}
    assert {"first", "more/second", "linked/second", "a/b/c/here"} <= found
    assert not {"a/b/c/too/deep", ".hidden", "first/inside", "loop/first"} & found
    assert [line.name for line in list_runs(place / "first")] == [str(place / "first")]
    (tmp_path / "empty").mkdir()
    assert list_runs(tmp_path / "empty") == []
    with pytest.raises(RunError, match="no such folder"):
        list_runs(tmp_path / "absent")


def test_a_report_reads_back_as_it_was_written(place, family):
    run = modulekge.load(place / "first")
    report = modulekge.evaluate(run)
    assert Report.from_fields(json.loads(report.to_json())) == report
    nothing = replace(report, without_unseen={"mrr": float("nan")})
    again = Report.from_fields(json.loads(nothing.to_json()))
    assert again.without_unseen["mrr"] != again.without_unseen["mrr"]
    assert again.to_json() == nothing.to_json()


def test_a_comparison_holds_what_differs_and_nothing_else(place):
    found = compare([place / "first", place / "more" / "second"])
    assert found.settings["model.name"] == ("ModulE-HH", "DistMult")
    assert found.settings["train.lr"] == (0.1, 0.05)
    assert "train.batch" not in found.settings
    assert found.metrics["epochs"] == (4, 3)
    assert [epoch for epoch, _ in found.curves[1]] == [2, 3]
    assert found.metrics["valid mrr"] == tuple(max(v for _, v in curve) for curve in found.curves)
    assert found.metrics["test mrr"][0] == by_name(place)["first"].test_mrr
    assert found.metrics["test mrr"][1] is None
    low, high = (found.metrics[f"test mrr, 95 % {end}"][0] for end in ("from", "to"))
    assert low <= found.metrics["test mrr"][0] <= high
    assert found.cautions == ()


def test_figures_that_do_not_compare_are_cautioned_against(place):
    runs = [place / "first", place / "more" / "second"]
    rewrite(runs[1] / "run.json", fingerprint="another")
    assert "different graphs" in compare(runs).cautions[0]
    report = json.loads((runs[0] / "report.json").read_text())
    report["protocol"]["ties"] = "TOP"
    (runs[1] / "report.json").write_text(json.dumps(report))
    assert "different protocols" in compare(runs).cautions[1]


def test_runs_that_are_not_taken_together_for_more_than_the_seed_are_told(place):
    config = place / "more" / "second" / "config.toml"
    other = place / "other"
    shutil.copytree(config.parent, other)
    changed = config.read_text().replace("seed = 0", "seed = 1").replace("batch = ", "batch = 1")
    (other / "config.toml").write_text(changed)
    (caution,) = compare([config.parent, other]).cautions
    assert caution.startswith("runs of DistMult differ in more than the seed (train.batch, train.seed), so")
    (other / "config.toml").write_text(config.read_text().replace("seed = 0", "seed = 1"))
    assert compare([config.parent, other]).cautions == ()


def test_a_comparison_as_a_file(place, tmp_path):
    found = compare([place / "first", place / "more" / "second"])
    found.metrics["seconds"] = (1234.56, 2.0)
    for ending in ("md", "csv", "svg", "png"):
        write_comparison(found, tmp_path / f"c.{ending}")
    rows = list(csv.reader((tmp_path / "c.csv").read_text().splitlines()))
    assert rows[0] == ["", *found.runs]
    assert ["train.lr", "0.1", "0.05"] in rows
    assert ["seconds", "1234.56", "2.0"] in rows
    assert ["test mrr", str(found.metrics["test mrr"][0]), ""] in rows
    assert "| epochs | 4 | 3 |" in (tmp_path / "c.md").read_text()
    assert "<svg" in (tmp_path / "c.svg").read_text()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ModulekgeError, match="expected a file that ends in"):
        write_comparison(found, tmp_path / "c.pdf")
    with pytest.raises(ModulekgeError, match=r"c\.md: exists already"):
        write_comparison(found, tmp_path / "c.md")


def test_seeds_of_the_same_settings_are_taken_together(place, family, tmp_path, capsys):
    runs, values = [place / "first", place / "more" / "second"], {}
    for name, model, base in (("first", "ModulE-HH", SMALL), ("second", "DistMult", LOWER)):
        made = (train(family, model, {**base, "train.seed": s}, tmp_path / f"{name}{s}") for s in (1, 2))
        runs += [run.folder.path for run in made]
    found = compare(runs)
    for model in ("ModulE-HH", "DistMult"):
        places = [i for i, name in enumerate(found.settings["model.name"]) if name == model]
        values[model] = [found.metrics["valid mrr"][place] for place in places]
    assert [(g.name, g.seeds, g.figure) for g in found.groups] == [
        ("ModulE-HH", 3, "valid mrr"),
        ("DistMult", 3, "valid mrr"),
    ]
    write_comparison(found, tmp_path / "table.tex")
    write_comparison(found, tmp_path / "table.md")
    first = found.groups[0]
    for name in ("table.tex", "table.md"):
        text = (tmp_path / name).read_text()
        assert f"{first.low:.4f} .. {first.high:.4f}" in text and "ModulE-HH - DistMult" in text
        assert text.index("over seeds") < text.index("last loss")
    for group in found.groups:
        half = 4.303 * stdev(values[group.name]) / 3**0.5
        assert group.mean == pytest.approx(fmean(values[group.name]))
        assert group.low == pytest.approx(max(0, group.mean - half))
    (apart,) = found.differences
    assert apart.mean == pytest.approx(found.groups[0].mean - found.groups[1].mean)
    assert apart.low < apart.mean < apart.high
    render.console().print(render.comparison_view(found))
    assert "ModulE-HH - DistMult" in capsys.readouterr().out
    assert compare(runs[:2]).groups == ()


def test_the_interval_of_a_difference_is_welchs():
    low, high = difference_over_seeds([3.0, 5.0, 4.0], [1.0, 2.0, 3.0, 2.0])  # 1 / 3 + 1 / 6, 3.9 degrees
    assert (low, high) == pytest.approx((2 - 3.182 * 0.5**0.5, 2 + 3.182 * 0.5**0.5))
    assert difference_over_seeds([0.5, 0.5], [0.25, 0.25]) == (0.25, 0.25)


def test_a_comparison_for_a_paper(place, tmp_path):
    write_comparison(compare([place / "first", place / "more" / "second"]), tmp_path / "c.tex")
    text = (tmp_path / "c.tex").read_text()
    assert text.startswith("\\begin{tabular}{lrr}\n\\toprule\n & ")
    assert "\nloss.kind & " not in text
    assert "eval\\_every" not in text and "model.name & ModulE-HH & DistMult \\\\" in text
    assert latex_table([("a_b", "5 %"), ("x & y", "\\z")]).splitlines()[2:5:2] == [
        "a\\_b & 5 \\% \\\\",
        "x \\& y & \\textbackslash z \\\\",
    ]


def test_a_reranked_run_has_a_figure_on_valid_once_it_was_evaluated_so(place):
    plain = by_name(place)["first"].valid_mrr
    run = rerank_with(modulekge.load(place / "first"), RerankConfig(inverse=1.0, prior=1.0))
    runs = [place / "first", place / "more" / "second"]
    assert by_name(place)["first"].valid_mrr is None
    assert compare(runs).metrics["valid mrr"][0] is None
    assert compare(runs).metrics["best epoch"][0] is not None
    report = evaluate(run.scorer, run.dataset, "valid")
    run.folder.save_report(report)
    assert report.both["mrr"] != plain
    assert by_name(place)["first"].valid_mrr == compare(runs).metrics["valid mrr"][0] == report.both["mrr"]
