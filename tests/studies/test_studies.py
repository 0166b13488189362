import csv
import json
import subprocess
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import stdev

import pytest

from modulekge.config import make_config, read_config
from modulekge.errors import ModulekgeError, one_of
from modulekge.models.spec import named
from modulekge.run import plan, provenance
from modulekge.run.folder import RunFolder
from modulekge.run.provenance import source_commit
from modulekge.run.recipes import find_recipe
from modulekge.studies import cell as cells
from modulekge.studies.catalogue import STUDIES
from modulekge.studies.cell import Cell, Result, cell_config, read_result, run_cell
from modulekge.studies.paper import TABLE_2, TABLE_3, TABLE_4
from modulekge.studies.render import draw, markdown, write_study
from modulekge.studies.study import Line, curves
from modulekge.training.records import EpochRecord

ROOT = Path(__file__).parents[2]
SEEDS = 1 + max(int(path.stem.rpartition("-seed")[2]) for path in (ROOT / "results/studies").glob("*-seed*"))


def result(cell, mrr, curve=((1, 0.1), (2, 0.2))):
    both = {"mrr": mrr, "hits@1": mrr / 2, "hits@3": mrr, "hits@10": mrr}
    bounds = dict.fromkeys(both, (mrr - 0.01, mrr + 0.01))
    relations = {"_hypernym": mrr}
    secs = 1.0 + cell.seed
    made = "2026-11-18", "c0ffee"
    return Result(
        cell.name, *made, "", cell.said, both, bounds, relations, curve, 2, 2, secs, 64, "cpu", "2", "f"
    )


def keep(folder, cell, mrr):
    folder.mkdir(exist_ok=True)
    (folder / f"{cell.name}.json").write_text(json.dumps(asdict(result(cell, mrr))))


def test_the_tables_of_the_paper():
    assert TABLE_2["WN18RR", "ModulE-HH"] == {
        "mrr": 0.492,
        "hits@1": 0.451,
        "hits@3": 0.506,
        "hits@10": 0.568,
    }
    assert TABLE_2["FB15k-237", "TransE"] == {"mrr": 0.294, "hits@10": 0.465}
    assert TABLE_2["YAGO3-10", "RotatE"] == {}
    assert TABLE_3["FB15k-237", "ModulE-RH-vector"] == {"mrr": 0.347, "hits@1": 0.259}
    for (dataset, model), figures in TABLE_3.items():
        if (dataset, model) in TABLE_2 and (dataset, model) != ("WN18RR", "ModulE-RH"):  # a slip of the paper
            assert figures.items() <= TABLE_2[dataset, model].items()
    assert len(TABLE_4["WN18RR", "RotatE"]) == len(TABLE_4["WN18RR", "ModulE-HH"]) == 11


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_every_cell_names_a_model_and_has_a_recipe(study):
    for first, *_ in study.cells():
        assert named(first.model).name == first.model
        assert find_recipe(first.dataset, first.recipe or first.model), first


def test_the_same_training_is_run_once_for_all_studies():
    names = [
        {c.name for group in STUDIES[n].cells() for c in group} for n in ("results", "ablation", "relations")
    ]
    assert "WN18RR-ModulE-HH-seed0" in set.intersection(*names)


def test_beyond_the_paper_are_the_models_that_have_such_a_recipe_beside_its_figures():
    study = STUDIES["best"]
    cells = [cell for (cell,) in study.cells()]
    assert [cell.name for cell in cells] == [
        *(f"FB15k-237-{model}-best-seed0" for model in ("ModulE-RC", "ModulE-RH", "ModulE-HH", "ComplEx")),
        *(f"WN18RR-{model}-best-seed0" for model in ("ModulE-RC", "ModulE-RH", "ModulE-HH", "BiQUE")),
    ]
    assert "--model BiQUE --recipe recipes/WN18RR/BiQUE-best.toml" in cells[-1].command
    assert cells[0].training != Cell("FB15k-237", "ModulE-RC").training
    assert cells[0].said.items() > {"loss.relation_prediction": "1.0", "model.k": "128"}.items()
    first, *_, last = (study.lines([[cell]], Path("nowhere"))[0] for cell in cells)
    assert (first.model, first.paper) == ("ModulE-RC-best", TABLE_2["FB15k-237", "ModulE-RC"]["mrr"])
    assert (last.model, last.paper) == ("BiQUE-best", TABLE_2["WN18RR", "ModulE-HH"]["mrr"])
    with pytest.raises(ModulekgeError, match="no recipe BiQUE-best of FB15k-237; it is of FB15k-237, WN18RR"):
        study.cells(["FB15k-237"], ["BiQUE"])


def test_what_is_added_to_the_papers_settings_leaves_those_as_the_paper_gives_them():
    given = {"FB15k-237": (300, 0.045), "WN18RR": (500, 0.08)}  # appendix D; of the rest, the same for both
    cells = [cell for (cell,) in STUDIES["extended"].cells()]
    ours = [f"ModulE-{which}-extended" for which in ("RC", "RH", "HH")]
    assert [(cell.dataset, cell.label) for cell in cells] == [(data, row) for data in given for row in ours]
    for cell in cells:
        config = make_config([read_config(find_recipe(cell.dataset, cell.recipe))], cell.recipe)
        train, regularizer = config.train, config.regularizer
        assert (train.batch, regularizer.weight) == given[config.data]
        assert (train.optimizer, train.lr, train.epochs, config.model.k) == ("adagrad", 0.1, 200, 128)
        assert (regularizer.p, regularizer.head, regularizer.relation, regularizer.tail) == (3, 2.0, 0.5, 2.0)


def test_a_cell_whose_recipe_asks_back_is_ranked_so(tmp_path):
    few = (("train.epochs", 2), ("model.k", 4))
    cells = [Cell("world", "DistMult", "", settings) for settings in (few, (*few, ("rerank.inverse", 1.0)))]
    for cell in cells:
        assert list(run_cell(cell, tmp_path / "results", tmp_path / "runs"))
    plain, asked = (read_result(cell, tmp_path / "results") for cell in cells)
    assert plain.curve == asked.curve  # the training is the same
    assert plain.both != asked.both


def test_settings_that_are_compared_are_ranked_on_valid_alone(tmp_path):
    few = (("train.epochs", 2), ("train.eval_every", 1), ("model.k", 4))
    cell = Cell("world", "DistMult", "", few, split="valid")
    assert list(run_cell(cell, tmp_path / "results", tmp_path / "runs"))
    found = read_result(cell, tmp_path / "results")
    assert found.both["mrr"] == pytest.approx(max(mrr for _, mrr in found.curve), rel=1e-6)
    assert found.date == f"{datetime.now(UTC):%Y-%m-%d}" and found.commit == source_commit()
    assert read_result(replace(cell, split="test"), tmp_path / "results") is None


def test_the_commit_of_the_code_is_that_of_its_repository_or_what_is_said(tmp_path, monkeypatch):
    known = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if known.returncode == 0:
        assert known.stdout.startswith(source_commit().removesuffix("+"))
    elsewhere = tmp_path / "modulekge" / "run" / "provenance.py"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.touch()
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)  # of another project
    monkeypatch.setattr(provenance, "__file__", str(elsewhere))
    assert source_commit() == "unknown"
    monkeypatch.setenv("MODULEKGE_COMMIT", "1234567890")
    assert source_commit() == "1234567890"


def test_an_interpretation_is_of_its_data_set_and_model_and_a_search_shows_valid_alone(tmp_path):
    study = STUDIES["interpretations"]
    cells = [cell for (cell,) in study.cells()]
    decayed = [cell for cell in cells if dict(cell.settings).get("train.decay")]
    assert {cell.dataset for cell in decayed} == {"WN18RR"}  # as the paper says
    assert {cell.model for cell in cells if cell.settings} == {"ModulE-HH"}
    rates = [dict(cell.settings)["regularizer.weight"] for cell in cells if cell.split == "valid"]
    assert {0.0, 1e-6, 0.045, 0.08} <= set(rates)
    searched = next(cell for cell in cells if cell.split == "valid")
    unit = next(cell for cell in cells if cell.model == "ModulE-HH-unit")
    for cell in (searched, unit):
        keep(tmp_path, cell, 0.4)
    (line,) = study.lines([[searched]], tmp_path)
    assert (line.what, line.mean, line.paper, line.verdict) == ("valid mrr", 0.2, None, "")
    lines = {line.what: line for line in study.lines([[unit]], tmp_path)}
    assert list(lines) == ["valid mrr", "mrr", "hits@1", "hits@3", "hits@10"]
    assert lines["mrr"].paper == TABLE_2[unit.dataset, "ModulE-HH"]["mrr"]


def test_a_size_that_is_the_recipes_own_is_not_trained_again(tmp_path):
    sizes = {dict(c.settings)["model.k"]: c for (c,) in STUDIES["size"].cells(models=["ModulE-RH"])}
    keep(tmp_path, Cell("WN18RR", "ModulE-RH"), 0.4)
    found = {k: read_result(cell, tmp_path) is not None for k, cell in sizes.items()}
    assert [k for k in found if found[k]] == [128]
    keep(tmp_path, sizes[128], 0.5)
    assert read_result(sizes[128], tmp_path).both["mrr"] == 0.5


def test_a_data_set_is_named_in_any_case():
    assert STUDIES["results"].cells(["wn18rr", "WORLD"]) == STUDIES["results"].cells(["WN18RR", "world"])


def test_complex_is_as_large_as_hh():
    sizes = {
        c.model: dict(c.settings)["model.k"]
        for (c,) in STUDIES["size"].cells(models=["ComplEx", "ModulE-HH"])
    }
    assert sizes == {"ComplEx": 1792, "ModulE-HH": 512}
    assert 2 * sizes["ComplEx"] == 7 * sizes["ModulE-HH"]


def test_rotate_of_other_sizes_starts_and_moves_in_proportion_to_its_recipe():
    recipe = make_config([read_config(find_recipe("WN18RR", "RotatE-xy"))])
    for (cell,) in STUDIES["size"].cells(models=["RotatE-xy"]):
        settings = dict(cell.settings)
        larger = recipe.model.k / settings["model.k"]
        assert settings["model.scalar_scale"] == pytest.approx(larger * recipe.model.scalar_scale, rel=1e-3)
        assert settings["train.lr"] == pytest.approx(larger * recipe.train.lr, rel=1e-3)


def test_an_ablation_has_the_settings_of_the_model_it_is_one_of():
    config = cell_config(Cell("world", "ModulE-HH-scalar", "ModulE-HH", (("train.epochs", 3),), seed=4))
    whole = cell_config(Cell("world", "ModulE-HH"))
    assert config.model.name == "ModulE-HH-scalar"
    assert (config.train.epochs, config.train.seed) == (3, 4)
    assert (config.model.k, config.regularizer, config.train.batch) == (
        whole.model.k,
        whole.regularizer,
        whole.train.batch,
    )


def test_ablations_that_are_one_row_are_trained_once(tmp_path):
    groups = STUDIES["ablation"].cells()
    assert {cell.model: cell.aliases for (cell,) in groups if cell.aliases} == {
        "ModulE-RC-scalar": ("ModulE-RH-scalar",), "ModulE-RH-scalar": ("ModulE-RC-scalar",),
        "ModulE-RH-vector": ("ModulE-HH-vector",), "ModulE-HH-vector": ("ModulE-RH-vector",),
    }  # fmt: skip
    scalar = Cell("WN18RR", "ModulE-RC-scalar")
    other = Cell("WN18RR", "ModulE-RH-scalar", aliases=("ModulE-RC-scalar",))
    keep(tmp_path, scalar, 0.4)
    assert read_result(other, tmp_path) == read_result(scalar, tmp_path)
    assert other.training == replace(scalar, aliases=("ModulE-RH-scalar",)).training
    slower = replace(other, settings=(("train.lr", 0.01),))
    assert slower.training != other.training
    assert read_result(slower, tmp_path) is None


def test_what_was_made_with_another_recipe_is_not_taken_for_this_ones(tmp_path, monkeypatch):
    cell = Cell("world", "DistMult", "", (("train.epochs", 1), ("model.k", 4)))
    results, runs = tmp_path / "results", tmp_path / "runs"
    assert list(run_cell(cell, results, runs))
    recipe = tmp_path / "changed.toml"
    recipe.write_text(find_recipe("world", "DistMult").read_text().replace("[train]", "[train]\nlr = 0.07"))
    for module in (cells, plan):
        monkeypatch.setattr(module, "find_recipe", lambda *_: recipe)
    with pytest.raises(ModulekgeError, match=r"made with other settings \(train.lr = .*, now 0.07\); remove"):
        read_result(cell, results)
    with pytest.raises(
        ModulekgeError, match=r"begun with other settings \(train.lr = .*, now 0.07\); remove"
    ):
        list(run_cell(cell, results, runs))


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda s: s.name)
def test_the_tables_in_the_documents_are_those_of_what_is_kept_and_of_the_recipes_there_are(study):
    lines = study.lines(study.cells(seeds=SEEDS), ROOT / "results" / "studies")
    assert (ROOT / "docs" / "studies" / f"{study.name}.md").read_text("utf-8") == markdown(study, lines)


def test_so_is_the_table_of_small_graphs():
    study = STUDIES["results"]
    lines = study.lines(study.cells(seeds=SEEDS, quick=True), ROOT / "results" / "studies")
    assert (ROOT / "docs" / "studies" / "quick" / "results.md").read_text("utf-8") == markdown(study, lines)


def test_lines_compare_means_over_seeds_with_the_paper(tmp_path):
    study = STUDIES["results"]
    groups = study.cells(["WN18RR"], ["modulE-hh", "TransE"], seeds=3)
    for group, figures in zip(groups, ((0.490, 0.492, 0.494), (0.2,)), strict=True):
        for cell, mrr in zip(group, figures, strict=False):
            keep(tmp_path, cell, mrr)
    lines = {(line.model, line.what): line for line in study.lines(groups, tmp_path)}
    hh = lines["ModulE-HH", "mrr"]
    assert (hh.paper, hh.mean, hh.verdict, hh.over) == (0.492, pytest.approx(0.492), "PASS", "3 seeds")
    assert hh.interval == (
        pytest.approx(0.492 - 4.303 * 0.002 / 3**0.5),
        pytest.approx(0.492 + 4.303 * 0.002 / 3**0.5),
    )
    assert (hh.trained, hh.made) == ("2 of 2; 1 .. 3 s", "2026-11-18, c0ffee, cpu")
    transe = lines["TransE", "mrr"]
    assert (transe.verdict, transe.over, transe.interval) == (
        "MISS",
        "triples",
        (pytest.approx(0.19), pytest.approx(0.21)),
    )
    assert lines["TransE", "hits@1"].verdict == ""
    assert study.lines(study.cells(["FB15k-237"], ["ModulE-RC"]), tmp_path)[0].verdict == "not run"


def test_relations_of_another_graph_are_its_own(tmp_path):
    study = STUDIES["relations"]
    groups = study.cells(["WN18RR", "Nations", "UMLS"], ["ModulE-HH"])
    for group in groups[:2]:
        keep(tmp_path, group[0], 0.4)
    lines = study.lines(groups, tmp_path)
    assert [line.dataset for line in lines] == ["WN18RR"] * 11 + ["Nations", "UMLS"]
    assert [(line.what, line.paper, line.verdict) for line in lines[-2:]] == [
        ("_hypernym", None, ""),
        ("", None, "not run"),
    ]


@pytest.mark.parametrize(("seeds", "t"), [(10, 2.262), (11, 2.228), (21, 2.086), (31, 2.042), (121, 1.980)])
def test_intervals_over_many_seeds_are_students(tmp_path, seeds, t):
    groups = STUDIES["results"].cells(["Nations"], ["ComplEx"], seeds)
    figures = [0.7 + 0.001 * seed for seed in range(seeds)]
    for cell, mrr in zip(*groups, figures, strict=True):
        keep(tmp_path, cell, mrr)
    low, high = STUDIES["results"].lines(groups, tmp_path)[0].interval
    assert (high - low) / 2 == pytest.approx(t * stdev(figures) / seeds**0.5, rel=3e-4)


def test_a_verdict_is_to_the_last_printed_digit():
    def verdict(mrr):
        return Line("d", "m", "mrr", 0.361, (mrr,), None, "", "", "", "").verdict

    assert [verdict(x) for x in (0.3604, 0.3606, 0.3700)] == ["MISS", "PASS", "PASS"]


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_points_tell_verdicts_apart_under_a_title_that_fits(study):
    below, above, alone = (
        Line("d", model, "mrr", paper, (0.4,), (0.3, 0.5), "", "", "", "")
        for model, paper in (("below", 0.45), ("above", 0.35), ("alone", None))
    )
    figure = draw(replace(study, name="results"), [below, above, alone], {})
    axes = figure.axes[0]
    points = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert points["ours, PASS"] == [[0.4, 1]] and points["ours, MISS"] == [[0.4, 0]]
    assert points["ours"] == [[0.4, 2]] and points["paper"] == [[0.45, 0], [0.35, 1]]
    drawn = [line.get_xydata().tolist() for line in axes.lines]
    assert all([[0.3, i], [0.5, i]] in drawn for i in range(3))
    assert [text.get_text() for text in axes.get_yticklabels()] == ["d below", "d above", "d alone"]
    (title,) = (text.get_window_extent() for text in figure.texts)
    assert title.x0 >= 0 and title.x1 <= figure.bbox.width


@pytest.mark.parametrize("name", ["results", "relations", "size", "convergence"])
def test_tables_and_pictures_are_written(tmp_path, name):
    study = STUDIES[name]
    groups = study.cells(models=["ModulE-HH"])
    for group in groups:
        keep(tmp_path / "results", group[0], 0.4)
    files = write_study(study, groups, tmp_path / "results", tmp_path / "out")
    assert [path.suffix for path in files] == [".md", ".csv", ".svg", ".png"]
    assert all(path.stat().st_size for path in files)
    again = write_study(study, groups, tmp_path / "results", tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in files]
    rows = list(csv.reader(files[1].read_text().splitlines()))
    assert all(len(row) == len(rows[0]) for row in rows)
    assert "modulekge train WN18RR" in markdown(study, study.lines(groups, tmp_path / "results"))


def test_sizes_of_one_model_are_one_line_through_means_over_seeds(tmp_path):
    study = STUDIES["size"]
    groups = study.cells(models=["ModulE-RH"], seeds=2)
    small, own = groups[0], next(group for group in groups if dict(group[0].settings)["model.k"] == 128)
    keep(tmp_path, small[0], 0.3)
    keep(tmp_path, small[1], 0.4)
    bare = replace(result(Cell("WN18RR", "ModulE-RH"), 0.5), entity_numbers=1024)
    (tmp_path / f"{bare.cell}.json").write_text(json.dumps(asdict(bare)))
    (line,) = draw(study, [], curves([small, own], tmp_path)).axes[0].lines
    assert line.get_label() == "WN18RR ModulE-RH"
    assert line.get_xydata().tolist() == [[64, pytest.approx(0.35)], [1024, 0.5]]


def test_curves_of_one_model_have_one_colour_and_one_word_in_the_legend(tmp_path):
    study = STUDIES["convergence"]
    groups = study.cells(models=["ModulE-RH", "ModulE-HH"], seeds=2)
    for group in groups:
        for cell in group:
            keep(tmp_path, cell, 0.4)
    axes = draw(study, [], curves(groups, tmp_path)).axes[0]
    assert [line.get_color() for line in axes.lines] == ["C0"] * 4 + ["C1"] * 4
    assert [text.get_text() for text in axes.get_legend().texts] == ["WN18RR ModulE-RH", "WN18RR ModulE-HH"]
    assert all(line.get_markevery() == [] for line in axes.lines)  # their last epoch is their best so far
    past = replace(result(groups[0][0], 0.4, ((1, 0.1), (2, 0.2), (3, 0.1))), epochs=3)
    (line,) = draw(study, [], {groups[0][0]: past}).axes[0].lines
    assert line.get_markevery() == [1]


def test_a_cell_is_continued_where_it_was_left_and_then_kept(tmp_path):
    cell = Cell("world", "DistMult", "", (("train.epochs", 3), ("model.k", 4), ("train.eval_every", 1)))
    results, runs = tmp_path / "results", tmp_path / "runs"
    assert read_result(cell, results) is None
    events = run_cell(cell, results, runs)
    next(event for event in events if isinstance(event, EpochRecord))
    events.close()
    assert read_result(cell, results) is None
    epochs = [event.epoch for event in run_cell(cell, results, runs) if isinstance(event, EpochRecord)]
    assert epochs == [2, 3]
    found = read_result(cell, results)
    assert [epoch for epoch, _ in found.curve] == [1, 2, 3]
    assert 0 < found.both["mrr"] < 1
    assert found.entity_numbers == 4
    (results / f"{cell.name}.json").unlink()  # trained, but lost: it is ranked anew, not trained
    assert list(run_cell(cell, results, runs)) == []
    assert read_result(cell, results).both == found.both


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(ModulekgeError, match="unknown study"):
        one_of("study", "sise", STUDIES)
    with pytest.raises(ModulekgeError, match="unknown model of this study"):
        STUDIES["relations"].cells(models=["TransE"])
    with pytest.raises(ModulekgeError, match="unknown data set 'nosuch'"):
        STUDIES["results"].cells(["nosuch"])
    cell = Cell("world", "DistMult")
    (tmp_path / f"{cell.name}.json").write_text("{}")
    with pytest.raises(ModulekgeError, match="not the result of a cell"):
        read_result(cell, tmp_path)


@pytest.mark.parametrize("part", ["both", "intervals"])
def test_a_result_that_lacks_a_metric_is_refused(tmp_path, part):
    cell = Cell("world", "DistMult")
    fields = asdict(result(cell, 0.4))
    del fields[part]["hits@3"]
    (tmp_path / f"{cell.name}.json").write_text(json.dumps(fields))
    with pytest.raises(ModulekgeError, match=rf"not the result of a cell \({part}: expected mrr, hits@1"):
        read_result(cell, tmp_path)


def test_quick_studies_are_of_small_graphs():
    groups = STUDIES["results"].cells(quick=True)
    assert {(g[0].dataset, g[0].model) for g in groups} == {
        (d, m) for d in ("UMLS", "Nations", "CoDEx-S") for m in ("ComplEx", "ModulE-HH")
    }
    parts = {g[0].model for g in STUDIES["ablation"].cells(quick=True)}
    assert parts == {"ModulE-HH-scalar", "ModulE-HH-vector", "ModulE-HH-rotation", "ModulE-HH"}


def test_a_study_is_of_graphs_that_are_known_by_name(tmp_path):
    (tmp_path / "ring.tsv").write_text("a\tnext\tb\n")
    with pytest.raises(ModulekgeError, match=r"ring\.tsv: a study is of data sets that are known by name"):
        STUDIES["results"].cells([str(tmp_path / "ring.tsv")])


def test_what_is_named_twice_is_there_once():
    study = STUDIES["results"]
    twice = study.cells(["Nations", "nations"], ["ComplEx", "complex"])
    assert twice == study.cells(["Nations"], ["ComplEx"])


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"cell": "world-ComplEx-seed0"}, "it is that of world-ComplEx-seed0"),
        ({"train_seconds": float("nan")}, "NaN is no number"),
    ],
)
def test_a_result_of_something_else_is_refused(tmp_path, change, finding):
    cell = Cell("world", "DistMult")
    fields = asdict(result(cell, 0.4)) | change
    (tmp_path / f"{cell.name}.json").write_text(json.dumps(fields))
    with pytest.raises(ModulekgeError, match=finding):
        read_result(cell, tmp_path)


BRIEF = Cell("world", "DistMult", "", (("train.epochs", 3), ("model.k", 4), ("train.eval_every", 1)))


def test_a_run_begun_on_another_graph_is_refused(tmp_path, monkeypatch):
    events = run_cell(BRIEF, tmp_path / "results", tmp_path / "runs")
    next(events)
    events.close()
    world = cells.open_dataset("world")
    monkeypatch.setattr(cells, "open_dataset", lambda _: replace(world, train=world.train.flip(0)))
    with pytest.raises(ModulekgeError, match="begun on a graph with other triples, or the same in another"):
        list(run_cell(BRIEF, tmp_path / "results", tmp_path / "runs"))


def test_a_crash_while_the_last_weights_were_kept_costs_nothing(tmp_path, monkeypatch):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    list(run_cell(BRIEF, whole, whole / "runs"))
    keep_weights = RunFolder.save_weights

    def crash(folder, model):
        if len(folder.records()) == 3:
            raise MemoryError
        keep_weights(folder, model)

    monkeypatch.setattr(RunFolder, "save_weights", crash)
    with pytest.raises(MemoryError):
        list(run_cell(BRIEF, cut, cut / "runs"))
    monkeypatch.undo()
    list(run_cell(BRIEF, cut, cut / "runs"))
    first, second = (replace(read_result(BRIEF, folder), train_seconds=0.0) for folder in (whole, cut))
    assert first.best_epoch == 3
    assert first == second


def test_what_rules_chose_for_a_cell_without_a_recipe_stays(tmp_path, monkeypatch):
    cell = Cell("world", "ModulE-HH-scalar", "", (("model.k", 4), ("train.eval_every", 1)))
    monkeypatch.setattr(cells, "cell_config", lambda _: config)
    config = replace(cell_config(BRIEF), train=replace(cell_config(BRIEF).train, epochs=2))
    events = run_cell(cell, tmp_path / "results", tmp_path / "runs")
    next(events)
    events.close()
    config = replace(config, train=replace(config.train, epochs=9))
    list(run_cell(cell, tmp_path / "results", tmp_path / "runs"))
    assert read_result(cell, tmp_path / "results").epochs == 2


def test_results_that_cannot_be_kept_are_not_trained_for(tmp_path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(ModulekgeError, match="results: cannot be written"):
        next(run_cell(BRIEF, tmp_path / "results", tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


def test_a_picture_has_room_for_every_point_and_goes_with_its_results(tmp_path):
    study = STUDIES["relations"]
    groups = study.cells(["UMLS"], ["ModulE-HH"])
    many = replace(result(groups[0][0], 0.4), relations={f"r{i}": 0.5 for i in range(100)})
    below = dict.fromkeys(many.intervals, (0.4 + 1e-17 * 4, 0.4 - 1e-16))
    path = tmp_path / f"{many.cell}.json"
    path.write_text(json.dumps(asdict(replace(many, intervals=below))))
    lines = study.lines(groups, tmp_path)
    assert draw(study, lines, curves(groups, tmp_path)).get_figheight() == 20
    files = write_study(study, groups, tmp_path, tmp_path / "out")
    write_study(STUDIES["results"], groups, tmp_path, tmp_path / "out")
    path.unlink()
    assert [file.suffix for file in write_study(study, groups, tmp_path, tmp_path / "out")] == [".md", ".csv"]
    assert [file.exists() for file in files] == [True, True, False, False]
