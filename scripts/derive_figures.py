"""Figures of the documents, each from the file that holds it: python scripts/derive_figures.py [--check].

A document says where a figure comes from in a comment that readers do not see:

    MRR <!-- = test("WN18RR", "ModulE-HH") -->.4900<!-- / -->

This script writes what stands between the two comments; with --check it only says what differs.
Expressions are calls of the functions below, whose results come from results/ and from the paper's tables.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from modulekge.evaluation.seeds import spread_over_seeds  # noqa: E402
from modulekge.json_io import typed  # noqa: E402
from modulekge.run.plotting import markdown_table  # noqa: E402
from modulekge.studies import paper as tables  # noqa: E402
from modulekge.studies.catalogue import STUDIES  # noqa: E402
from modulekge.studies.cell import Result, read_result  # noqa: E402
from modulekge.studies.study import Line  # noqa: E402

DOCUMENTS = (
    "README.md", "docs/paper.md", "docs/studies/test-seen.md", "docs/studies/tables.md",
    "docs/answers.md", "docs/probabilities.md", "docs/why.md", "docs/mixtures.md",
)  # fmt: skip
KEPT = ROOT / "results"
_MARKED = re.compile(r"<!-- = (.+?) -->(.*?)<!-- / -->", re.DOTALL)
_METRICS = tables.METRICS
_OURS = ("ModulE-RC", "ModulE-RH", "ModulE-HH")
_BOTH = ("FB15k-237", "WN18RR")
_WORDS = dict(enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1))


def number(value: float, digits: int = 4) -> str:
    """A figure as papers print it: without the leading zero."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def _results(data: str, label: str) -> list[Result]:
    """Every stored seed of a training, by the name its files have."""
    paths = sorted((KEPT / "studies").glob(f"{data}-{label}-seed*.json"))
    if not paths:
        raise KeyError(f"no result {data}-{label}")
    return [typed(Result, json.loads(path.read_text("utf-8"))) for path in paths]


def _values(data: str, label: str, metric: str) -> list[float]:
    found = _results(data, label)
    if metric == "valid":
        return [max(mrr for _, mrr in result.curve) for result in found]
    return [result.relations.get(metric, result.both.get(metric, 0.0)) for result in found]


def test(data: str, label: str, metric: str = "mrr", digits: int = 4) -> str:
    """The mean over all stored seeds."""
    return number(fmean(_values(data, label, metric)), digits)


def valid(data: str, label: str, digits: int = 4) -> str:
    """The mean over seeds of the best MRR on valid."""
    return test(data, label, "valid", digits)


def interval(data: str, label: str, metric: str = "mrr") -> str:
    """The 95 % interval over seeds, or over triples where there is one seed."""
    found = _values(data, label, metric)
    low, high = spread_over_seeds(found) if len(found) > 1 else _results(data, label)[0].intervals[metric]
    return f"{number(low)} .. {number(high)}"


def seeds(data: str, label: str) -> str:
    """How many seeds are stored, in a word."""
    return _WORDS[len(_results(data, label))]


def paper(data: str, model: str, metric: str = "mrr") -> str:
    """A figure of the paper's Table 2."""
    return number(tables.TABLE_2[data, model][metric], 3)


def paper_relation(model: str, relation: str) -> str:
    """A figure of the paper's Table 4."""
    return number(tables.TABLE_4["WN18RR", model][relation], 3)


def paper_part(data: str, model: str, metric: str) -> str:
    """A figure of the paper's Table 3."""
    return number(tables.TABLE_3[data, model][metric], 3)


def ahead(data: str, label: str, other: str, digits: int = 3) -> str:
    """By how much one mean of test MRR is above another."""
    return number(fmean(_values(data, label, "mrr")) - fmean(_values(data, other, "mrr")), digits)


def ahead_in_paper(data: str, model: str, other: str) -> str:
    """By how much one MRR of the paper's Table 2 is above another."""
    return number(tables.TABLE_2[data, model]["mrr"] - tables.TABLE_2[data, other]["mrr"], 3)


def best_seed(data: str, label: str) -> str:
    """The best MRR on valid of any seed."""
    return number(max(_values(data, label, "valid")))


def apart(data: str, label: str) -> str:
    """How far the seeds lie apart on valid."""
    found = _values(data, label, "valid")
    return number(max(found) - min(found), 3)


def kept(file: str, *keys: str | int, digits: int = 4) -> str:
    """A figure of a file of results."""
    value = json.loads((KEPT / file).read_text("utf-8"))
    for key in keys:
        value = value[key]
    return number(value, digits)


def count(file: str, *keys: str) -> str:
    """How many entries a list in a file of results has."""
    value = json.loads((KEPT / file).read_text("utf-8"))
    for key in keys:
        value = value[key]
    return str(len(value))


def trained_paths(data: str) -> str:
    """The mean test MRR of the newest trainings of paths on a data set, by results/paths-h200.json."""
    found = json.loads((KEPT / "paths-h200.json").read_text("utf-8"))["trainings"]
    found = [run for run in found if run["data"] == data]
    newest = [run["test"]["mrr"] for run in found if run["commit"] == found[-1]["commit"]]
    seeds = ("one seed", "two seeds", "three seeds")[len(newest) - 1]
    return f"{number(fmean(newest), 3)} ({seeds})"


def mixture(data: str, metric: str = "mrr", digits: int = 3) -> str:
    """A figure of the mixture trained longest on a data set on a GPU, by results/mixtures.json."""
    return number(_longest(data)["mixture"]["test"][metric], digits)


def took(data: str) -> str:
    """The minutes that the command of mixture() took."""
    return f"{_longest(data)['seconds'] / 60:.1f}"


def _longest(data: str) -> dict[str, Any]:
    found = json.loads((KEPT / "mixtures.json").read_text("utf-8"))
    trained = [run for run in found if run["data"] == data and run["device"].startswith("NVIDIA")]
    longest: dict[str, Any] = max(trained, key=lambda run: run["minutes"])
    return longest


def mixtures() -> str:
    """Test of mixtures made in a given time; the mean where several seeds were run."""
    found: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    for run in json.loads((KEPT / "mixtures.json").read_text("utf-8")):
        if "minutes" in run:
            found.setdefault((run["data"], run["device"], run["minutes"]), []).append(run)
    rows = [("graph", "where", "`--minutes`", "took", "seeds", "MRR", "95 % interval", "Hits@1", "Hits@10")]
    for (data, device, minutes), runs in sorted(found.items()):
        where = "one H200" if device.startswith("NVIDIA") else device
        took = ", ".join(f"{run['seconds'] / 60:.1f}" for run in runs if "seconds" in run)
        values = [run["mixture"]["test"]["mrr"] for run in runs]
        ends = spread_over_seeds(values) if len(runs) > 1 else runs[0]["mixture"]["mrr_interval"]
        mrr, *hits = (
            number(fmean(run["mixture"]["test"][metric] for run in runs), 3)
            for metric in ("mrr", "hits@1", "hits@10")
        )
        interval = " .. ".join(number(end, 3) for end in ends)
        rows.append((data, where, f"{minutes:g}", took, str(len(runs)), f"**{mrr}**", interval, *hits))
    return _table(rows)


def joined() -> str:
    """Test MRR of runs and of what mix made of them."""
    rows = [("graph", *(models := ("ModulE-HH", "ComplEx", "Paths-DistMult")), "valid (best member)", "test")]
    for run in json.loads((KEPT / "mixtures.json").read_text("utf-8")):
        if "members" in run:
            alone = {m["model"]: number(m["test"]["mrr"], 3) for m in run["members"] if "test" in m}
            mixed = run["mixture"]
            low, high = (number(end, 3) for end in mixed["mrr_interval"])
            valid = f"{number(mixed['valid_mrr'], 3)} ({number(max(mixed['valid_mrr_alone']), 3)})"
            test = f"{number(mixed['test']['mrr'], 3)} ({low} .. {high})"
            rows.append((run["data"], *(alone.get(model, "") for model in models), valid, test))
    return _table(rows)


def transfers() -> str:
    """Mixtures on graphs that rules were not chosen by, beside the best recipes that were searched there."""
    rows = [("graph", "mixture, test", "its best member", "search", "trials", "best recipe", "valid", "test")]
    for run in json.loads((KEPT / "transfer.json").read_text("utf-8")):
        mixed, first = number(run["mixture"]["test"]["mrr"], 3), run["mixture"]["tried"][0]
        member = f"{first['model']}, {number(first['valid_mrr'], 3)} on valid"
        for search in run["searches"]:
            best, test = search["best"], search["test_mrr"]
            if best:
                name, valid = best["settings"]["model.name"], number(best["valid_mrr"], 3)
                figure = number(test, 3) if test else "not ranked"
                rows.append(
                    (run["data"], mixed, member, search["space"], str(search["trials"]), name, valid, figure)
                )
    return _table(rows)


def published(model: str, data: str) -> str:
    """A figure of another publication, by results/published.json."""
    return number(json.loads((KEPT / "published.json").read_text("utf-8"))[model][data], 3)


def _low_end(data: str) -> float:
    """The lower end of the interval of a mixture's test MRR, as for mixture()."""
    return float(_longest(data)["mixture"]["mrr_interval"][0])


def _as_published(model: str, data: str) -> str:
    """A figure of another publication with its name, and an asterisk where its source was not seen."""
    source = json.loads((KEPT / "published.json").read_text("utf-8"))[model]["source"]
    return f"{model} {published(model, data)}" + ("" if source.startswith("its authors") else "*")


def _table(rows: Iterable[Iterable[str]]) -> str:
    return "\n" + markdown_table([tuple(row) for row in rows])


def _verdict(mean: float, figure: float) -> str:
    line = Line("", "", "", figure, (mean,), None, "", "", "", "")
    return f"{number(mean)} {line.verdict}"


def reproduced() -> str:
    """Table 2 of the paper for its own models, with the paper's settings and with what goes beside them."""
    rows = [("", "MRR", "Hits@1", "Hits@3", "Hits@10", "seeds")]
    kinds = {
        "": "recipe",
        "-paper": "the paper's rate and regularizer",
        "-extended": "extended: see below",
    }
    for data in _BOTH:
        for model in reversed(_OURS):
            rows.append((f"**{model} on {data}, paper**", *(paper(data, model, m) for m in _METRICS), ""))
            for ending, what in kinds.items():
                if not any((KEPT / "studies").glob(f"{data}-{model}{ending}-seed*")):
                    continue
                means = [fmean(_values(data, model + ending, m)) for m in _METRICS]
                figures = [tables.TABLE_2[data, model][m] for m in _METRICS]
                many = seeds(data, model + ending)
                over = "95 % interval" + (" over triples" if many == "one" else "")
                rows.append((what, *map(_verdict, means, figures), many))
                rows.append((over, *(interval(data, model + ending, m) for m in _METRICS), ""))
    return _table(rows)


def baselines() -> str:
    """The other rows of Table 2, one seed each."""
    rows = [("test MRR", *(f"{data}, {what}" for data in _BOTH for what in ("paper", "here")))]
    for model in STUDIES["results"].models:
        if model not in _OURS:
            name = model.removesuffix("-xy")
            rows.append((name, *(x for d in _BOTH for x in (paper(d, name), test(d, model)))))
    return _table(rows)


_READ_AS = {
    "ModulE-HH": "the default: any quaternion s_r; s_r and v_r from the right",
    "ModulE-HH-unit": "unit scaling, as Table 1 and the text of 4.5 have it",
    "ModulE-HH-left": "both from the left (the same family of models, by conjugation)",
    "ModulE-HH-outer": "s_r from the left, v_r from the right",
    "ModulE-HH-inner": "s_r from the right, v_r from the left",
}
_CHANGED = {
    (("train.decay", 0.9),): "rate x .9 after each epoch (also: to a tenth over 22 epochs)",
    (("train.decay", 0.1),): "rate x .1 after each epoch, to the letter",
    (("train.decay", 0.9886),): "rate to a tenth over 200 epochs",
    (("loss.targets", "all"),): "all tails of (h, r) at once (KvsAll), softmax",
}


def interpretations() -> str:
    """ModulE-HH with each interpretation of the paper: valid and test MRR on both data sets."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for (cell,) in STUDIES["interpretations"].cells():
        if cell.split == "valid":
            continue
        changes = tuple(setting for setting in cell.settings if setting[0] != "train.epochs")
        name = _READ_AS[cell.model] if not cell.settings else _CHANGED.get(changes, "")
        if not name:
            rest = dict(cell.settings)
            name = "logistic loss, regularizer .01" + (", KvsAll" if "loss.targets" in rest else "")
        result = read_result(cell, KEPT / "studies")
        epochs = " (80 epochs)" if ("train.epochs", 80) in cell.settings else ""
        cells = (
            (number(max(mrr for _, mrr in result.curve)), number(result.both["mrr"]) + epochs)
            if result
            else ("not run", "not run")
        )
        found.setdefault(name, {})[cell.dataset] = cells
    rows = [("interpretation", *(f"{data}, {what}" for data in _BOTH for what in ("valid", "test")))]
    rows += [(name, *(x for d in _BOTH for x in cells.get(d, ("", "")))) for name, cells in found.items()]
    return _table(rows)


def logistic_search() -> str:
    """Valid MRR with the logistic loss, by the regularizer's weight."""
    found: dict[float, dict[str, str]] = {}
    for (cell,) in STUDIES["interpretations"].cells():
        if cell.split == "valid" and (result := read_result(cell, KEPT / "studies")):
            rate = dict(cell.settings)["regularizer.weight"]
            found.setdefault(rate, {})[cell.dataset] = number(max(mrr for _, mrr in result.curve))
    rows = [("regularizer", *(f"{rate:g}" for rate in sorted(found)))]
    rows += [(data, *(found[rate].get(data, "") for rate in sorted(found))) for data in _BOTH]
    return _table(rows)


def parts() -> str:
    """Table 3: scalars alone, vectors alone, rotations alone, both."""
    rows = [("test MRR", *(f"{data}, {what}" for data in _BOTH for what in ("paper", "here")))]
    same = {"ModulE-RH-scalar": "ModulE-RC-scalar", "ModulE-RH-vector": "ModulE-HH-vector"}
    for model in _OURS:
        for part in ("-scalar", "-vector", "-rotation", ""):
            cells = []
            for data in _BOTH:
                name = model + part
                stored = any((KEPT / "studies").glob(f"{data}-{name}-seed*"))
                figures = tables.TABLE_3[data, name.replace("-rotation", "-vector")]
                cells += [number(figures["mrr"], 3), test(data, name if stored else same[name])]
            rows.append((model + part, *cells))
    return _table(rows)


def relations() -> str:
    """Table 4: MRR of each relation of WN18RR."""
    models = {"RotatE": "RotatE-xy", "ModulE-HH": "ModulE-HH"}
    rows = [("relation", *(f"{model}, {what}" for model in models for what in ("paper", "here")))]
    for relation in tables.TABLE_4["WN18RR", "RotatE"]:
        cells = [
            x
            for model, label in models.items()
            for x in (
                number(tables.TABLE_4["WN18RR", model][relation], 3),
                number(fmean(_values("WN18RR", label, relation))),
            )
        ]
        rows.append((relation.removeprefix("_"), *cells))
    return _table(rows)


def sizes() -> str:
    """Test MRR on WN18RR by the number of blocks."""
    study, found = STUDIES["size"], {}
    for (cell,) in study.cells():
        if result := read_result(cell, KEPT / "studies"):
            k = dict(cell.settings)["model.k"]
            size = round(k * 2 / 7) if cell.model == "ComplEx" else k
            found[cell.model, size] = number(result.both["mrr"])
    blocks = sorted({size for _, size in found}, reverse=True)
    rows = [("k =", *map(str, blocks))]
    notes = {"ComplEx": "ComplEx with as many numbers for an entity as ModulE-HH (7k)"}
    for model in reversed(study.models):
        cells = (found.get((model, size), "") for size in blocks)
        rows.append((notes.get(model, model.removesuffix("-xy")), *cells))
    return _table(rows)


def best() -> str:
    """The best recipes of each data set."""
    rows = [("test", "MRR", "95 % interval", "Hits@1", "Hits@3", "Hits@10", "seeds")]
    for data in _BOTH:
        for model in ("ComplEx", "BiQUE", *reversed(_OURS)):
            label = f"{model}-best"
            if any((KEPT / "studies").glob(f"{data}-{label}-seed*")):
                hits = (test(data, label, m) for m in _METRICS[1:])
                figures = test(data, label), interval(data, label), *hits
                rows.append((f"{data}, {model}", *figures, seeds(data, label)))
    return _table(rows)


def others() -> str:
    """What is published of others, with where it was seen."""
    found = json.loads((KEPT / "published.json").read_text("utf-8"))
    rows = [("published", "kind", "FB15k-237", "WN18RR", "source")]
    for name, entry in found.items():
        figures = (number(entry[d], 3) if d in entry else "" for d in _BOTH)
        rows.append((name, entry["kind"], *figures, entry["source"]))
    return _table(rows)


def peers() -> str:
    """Peers and this program on the same graphs, by benchmarks/why.py."""
    rows = [("graph", "program", "MRR", "Hits@10", "CPU s", "wall s", "peak MiB", "lines")]
    for line in json.loads((KEPT / "why.json").read_text("utf-8")):
        peer, comma, how = line["peer"].partition(",")
        name = f"{peer} {line['version']}{comma}{how}" if "version" in line else peer
        if "error" in line:
            rows.append((line["data"], name, f"{line['date']}: {line['error']}", "", "", "", "", ""))
            continue
        figures = (number(line["test"][metric], 3) for metric in ("mrr", "hits@10"))
        spent = (f"{line['cpu_s']:.0f}", f"{line['wall_s']:.0f}", str(line["peak_mib"]), str(line["lines"]))
        rows.append((line["data"], name, *figures, *spent))
    return _table(rows)


def tests_seen() -> str:
    """For how many settings the test split was ranked, by data set and model."""
    seen: dict[tuple[str, str], set[str]] = {}
    for path in (KEPT / "studies").glob("*-seed*.json"):
        stem = path.stem.rpartition("-seed")[0]
        if stem.endswith("-valid"):
            continue
        data = next(d for d in (*_BOTH, "CoDEx-S", "UMLS", "Nations") if stem.startswith(d))
        rest = stem.removeprefix(f"{data}-")
        model = "-".join(rest.split("-")[:2]) if rest.startswith("ModulE") else rest.split("-")[0]
        seen.setdefault((data, model), set()).add(stem)
    elsewhere: dict[tuple[str, str], list[dict[str, str]]] = {}
    for entry in json.loads((KEPT / "test-seen.json").read_text("utf-8")):
        elsewhere.setdefault((entry["data"], entry["model"]), []).append(entry)
    rows = [("data", "model", "settings in the studies", "settings elsewhere", "which")]
    for data, model in sorted(seen.keys() | elsewhere.keys()):
        more = elsewhere.get((data, model), [])
        extra = sum(int(entry["settings"]) for entry in more)
        what = "; ".join(f"{entry['what']} ({entry['file']})" for entry in more)
        rows.append((data, model, str(len(seen.get((data, model), ()))), str(extra or ""), what))
    return _table(rows)


def small(file: str, kind: str) -> str:
    """Test MRR of ModulE-HH on small graphs, by interpretation or parametrization."""
    found = json.loads((KEPT / file).read_text("utf-8"))
    graphs = list(dict.fromkeys(entry["dataset"] for entry in found))
    rows = [("test MRR", *graphs)]
    for name in dict.fromkeys(entry[kind] for entry in found):
        by_graph = {e["dataset"]: number(e["test_mrr"], 3) for e in found if e[kind] == name}
        rows.append((name, *(by_graph.get(graph, "") for graph in graphs)))
    return _table(rows)


def _calibrations() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((KEPT / "calibration.json").read_text("utf-8"))
    return found


def _run_of(entry: dict[str, Any]) -> str:
    changes = ", ".join(f"{k.partition('.')[2]} = {v}" for k, v in entry["settings"].items() if k in _SHOWN)
    return f"{entry['graph']}, ModulE-HH" + (f", {changes}" if changes else "")


_SHOWN = ("model.k", "train.epochs")


def reliabilities() -> str:
    """How true probabilities are, before and after calibration."""
    rows = [("run", "questions", "error: softmax", "calibrated", "log loss", "", "Brier", "")]
    for entry in _calibrations():
        plain, fitted = entry["softmax"], entry["calibrated"]
        cells = [
            x for key, digits in (("error", 4), ("log_loss", 3), ("brier", 3))
            for x in (f"{plain[key]:.{digits}f}", f"**{fitted[key]:.{digits}f}**")
        ]  # fmt: skip
        rows.append((_run_of(entry), f"{entry['questions']:,}", *cells))
    return _table(rows)


def prediction_sets() -> str:
    """Share and size of the same prediction sets."""
    rows = [
        (
            "run", "asked", "held by test", "candidates in a set", "all of test missing: held", "in a set",
            "valid and test mixed anew: held", "in a set",
        )
    ]  # fmt: skip
    for entry in _calibrations():
        sets, several, mixed = entry["sets"], entry["sets, all of test missing"], entry["mixed"]
        pairs = [
            x for part in (sets, several, mixed)
            for x in ((f"{part['share']:.1%}", f"{part['size']:,.1f}") if part else ("", ""))
        ]  # fmt: skip
        pairs[1] += f" of {entry['entities']:,}"
        rows.append((entry["graph"], f"{sets['asked']:.0%}", *pairs))
    return _table(rows)


def links_in_test() -> str:
    """How many of the best new links stood in test, which was hidden, ranked by what; and as stated."""
    rows = [("run", "of the best", "in test: by the tail alone", "as links", "stated")]
    for entry in _links():
        if "by tail" in entry and entry["links"]:
            links = entry["links"]["constrained"]
            for k in ("100", "1000"):
                before, after = (str(side["in test"][k]) for side in (entry["by tail"], links))
                stated = f"{links['mean probability'][k]:.0%}"
                rows.append((_run_of(entry), f"{int(k):,}", before, f"**{after}**", stated))
    return _table(rows)


def answers_kept() -> str:
    """Which share of held-out answers type constraints keep, and which share of candidates they remove."""
    heads = (f"{split}: {key}" for split in ("valid", "test") for key in ("observed", "kept", "removed"))
    rows = [("", *heads)]
    for entry in _links():
        cells = []
        for found in (entry["types"][split] for split in ("valid", "test")):
            seen = "" if found["seen"] == 1 else f" of {found['seen']:.1%}"
            shares = [f"{found[key]:.1%}" for key in ("observed", "kept", "removed")]
            cells += [shares[0], f"**{shares[1]}**{seen}", shares[2]]
        rows.append((entry["graph"], *cells))
    return _table(rows)


def _links() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((KEPT / "links.json").read_text("utf-8"))
    return entries


def readme() -> str:
    """The results at a glance.

    An asterisk: the source was not seen. Bold: above the best published by more than its interval.
    """
    rows = [
        (
            "", "ModulE-HH, paper", "ModulE-HH", "best embedding", "paths", "mixture",
            "published embedding", "published paths",
        )
    ]  # fmt: skip
    bests = {"FB15k-237": "ComplEx", "WN18RR": "BiQUE"}
    embeddings = {"FB15k-237": "MetaSD", "WN18RR": "HousE"}
    along = {"FB15k-237": ("AdaProp", "KnowFormer"), "WN18RR": ("one-shot-subgraph", "KnowFormer")}
    for data in _BOTH:
        own = f"{test(data, 'ModulE-HH', digits=3)} ({seeds(data, 'ModulE-HH')} seeds)"
        top = f"{test(data, f'{bests[data]}-best', digits=3)}, {bests[data]} (three seeds)"
        paths = ", ".join(_as_published(name, data) for name in ("NBFNet", *along[data]))
        other = _as_published(embeddings[data], data)
        best = max(float(published(name, data)) for name in along[data])
        top_mixture = f"**{mixture(data)}**" if _low_end(data) > best else mixture(data)
        found = trained_paths(data), top_mixture
        rows.append((data, paper(data, "ModulE-HH"), own, top, *found, other, paths))
    return _table(rows)


_FUNCTIONS = {
    name: function
    for name, function in list(globals().items())
    if callable(function) and getattr(function, "__module__", "") == __name__ and not name.startswith("_")
}


def derived(text: str) -> str:
    """The document with every marked figure as its source has it now."""

    def value(found: re.Match[str]) -> str:
        expression = found.group(1)
        return f"<!-- = {expression} -->{eval(expression, {'__builtins__': {}}, dict(_FUNCTIONS))}<!-- / -->"

    return _MARKED.sub(value, text)


def unmarked(text: str) -> list[str]:
    """Figures, such as .4900, that stand in the text without a source: not in comments, code or links."""
    rest = _MARKED.sub("", text)
    rest = re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", "", rest, flags=re.DOTALL)
    return re.findall(r"(?<![\w.])\.\d{3,4}\b", rest)


def main() -> int:
    """Write the documents, or say which would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something differs")
    check = parser.parse_args().check
    wrong = 0
    for name in DOCUMENTS:
        path = ROOT / name
        text = path.read_text("utf-8")
        new = derived(text)
        if bare := unmarked(text):
            print(f"{name}: figures without a source: {', '.join(bare)}")
            wrong = 1
        if new != text:
            print(f"{name}: figures differ from results/" + ("" if check else "; written"))
            wrong = wrong or int(check)
            if not check:
                path.write_text(new, "utf-8")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
