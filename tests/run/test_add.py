"""Facts added to a trained run: what was known stays, what is new fits."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from program import call
from rows import ONE_OF_EACH
from safetensors.torch import load_file

import modulekge
from modulekge.answers.predictor import Predictor
from modulekge.answers.questions import Question
from modulekge.config import LEAST_RATE, RerankConfig
from modulekge.data.addition import enlarge
from modulekge.data.dataset import Dataset
from modulekge.data.reading import read_facts
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import ConfigError, DataError, RunError, UnknownNameError
from modulekge.models.spec import MODELS
from modulekge.run import add as adding
from modulekge.run.checkpoint import begin, write_checkpoint
from modulekge.run.drift import drift
from modulekge.run.files import read_json
from modulekge.run.folder import RunFolder
from modulekge.run.listing import list_runs
from modulekge.run.plan import resolve
from modulekge.run.rerank import rerank_with
from modulekge.run.run import Run, load
from modulekge.run.train import continue_run, train
from modulekge.training import fold
from modulekge.training.records import EpochRecord

TINY = {"model.k": 2, "train.epochs": 2, "train.batch": 5, "train.eval_every": 1}
NEW = [
    ("ida", "child", "eve"),
    ("ida", "twin", "jon"),
    ("eve", "parent", "ida"),
    ("ada", "parent", "fay"),
    ("ada", "parent", "bob"),
]
SAMPLED = {"loss.kind": "adversarial", "loss.candidates": "sampled", "loss.negatives": 16, "loss.margin": 6}


@pytest.fixture
def run(family, tmp_path, quick):
    return train(family, "ModulE-HH", TINY, tmp_path / "run")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(adding, "_LEAST_EPOCHS", 2)
    monkeypatch.setattr(adding, "_STEPS", 2)


def check_what_was_known_stays(old, new):
    """Ids, rows and scores among old entities are the same to the bit; what is new is finite and moved."""
    n, r = len(old.dataset.entities), len(old.dataset.relations)
    grown = len(new.dataset.relations)
    assert new.dataset.entities.names[:n] == old.dataset.entities.names
    assert new.dataset.relations.names[:r] == old.dataset.relations.names
    places = {"relation": torch.arange(r)} if old.model.tied else {"relation": both(r, grown)}
    for name, table in old.model.named_parameters():
        rows = places.get(name.split("_")[0], torch.arange(len(table)))
        assert torch.equal(new.model.get_parameter(name)[rows], table), name
        assert new.model.get_parameter(name).isfinite().all()
    heads = torch.arange(n).repeat_interleave(2 * r)
    asked, mapped = torch.arange(2 * r).repeat(n), both(r, grown).repeat(n)
    before = old.model.scores(old.model.queries(heads, asked), old.model.entities())
    candidates = torch.arange(n)
    after = new.model.scores(new.model.queries(heads, mapped), new.model.entities(slice(n)), candidates)
    assert torch.equal(before, after)


def both(r, grown):
    """The ids of r relations and of their reciprocals among a larger number of relations."""
    return torch.cat([torch.arange(r), grown + torch.arange(r)])


@pytest.mark.parametrize("spec", [MODELS[name] for name in ONE_OF_EACH], ids=lambda spec: spec.name)
def test_rows_and_scores_of_what_was_known_stay_in_every_row_of_the_table(family, quick, spec):
    addition = enlarge(family, read_facts(NEW))
    for kind in ("own", "tied") if spec.tieable else ("own",):
        config = resolve(family, spec.name, [{"model": {"k": 2, "reciprocal": kind, "bias": True}}])
        old = Run(RunFolder(Path("unused")), config, family, begin(config, family)[0])
        model = adding._larger(old, addition)
        start = model.entity_scalar[8:].clone(), model.entity_vector[8:].clone()
        adding._fold(model, old.model, addition, config)
        check_what_was_known_stays(old, replace(old, dataset=addition.after, model=model))
        moved = (model.entity_scalar[8:], start[0]), (model.entity_vector[8:], start[1])
        assert any(not torch.equal(now, before) for now, before in moved)


LOSSES = [
    SAMPLED,
    {"loss.kind": "logistic", "loss.targets": "all", "loss.smoothing": 0.1},
    {"loss.kind": "softmax", "loss.targets": "all"},
    {"loss.kind": "softmax", "loss.candidates": "shared", "loss.negatives": 5},
    {
        "loss.degree_weight": 0.5,
        "loss.subsampling": 0.5,
        "loss.relation_prediction": 0.1,
        "train.dropout": 0.2,
    },
    {"train.optimizer": "adam", "train.lr": 0.01, "train.ema": 0.7, "model.bias": True},
]


@pytest.mark.parametrize("settings", LOSSES, ids=str)
def test_every_loss_can_be_added_to_and_refreshed(family, tmp_path, quick, settings):
    old = train(family, "ModulE-RC", {**TINY, **settings}, tmp_path / "run")
    new = modulekge.add(old, NEW, tmp_path / "new")
    check_what_was_known_stays(old, new)
    rows = slice(len(family.entities), None)
    drawn = adding._larger(old, enlarge(old.dataset, read_facts(NEW)))
    assert not torch.equal(new.model.entity_scalar[rows], drawn.entity_scalar[rows])
    refreshed = modulekge.add(old, NEW, tmp_path / "refreshed", refresh=2)
    assert not torch.equal(refreshed.model.entity_scalar[:8], old.model.entity_scalar)
    assert len(refreshed.folder.records()) == 2


def test_the_graph_grows_by_what_is_new_and_says_where_it_came_from(run, tmp_path):
    before = {path.name: path.read_bytes() for path in run.folder.path.iterdir()}
    run.folder.save_report(modulekge.evaluate(run))
    before["report.json"] = run.folder.report_file("test").read_bytes()
    new = modulekge.add(run, [*NEW, NEW[0]], tmp_path / "new")
    assert new.dataset.entities.names[8:] == ("ida", "jon")
    assert new.dataset.relations.names == ("parent", "child", "sibling", "twin")
    assert new.dataset.entities.label(0) == "Ada Lovelace"
    assert new.dataset.train[-4:].tolist() == [[8, 1, 4], [8, 3, 9], [4, 0, 8], [0, 0, 5]]
    assert torch.equal(new.dataset.train[:-4], run.dataset.train)
    assert torch.equal(new.dataset.valid, run.dataset.valid)
    origin = read_json(new.folder.path / "run.json")["added"]
    assert origin == {
        "from": str(run.folder.path), "fingerprint": run.dataset.fingerprint, "facts": 4, "entities": 2,
        "relations": 1, "between_known": 1, "known_before": 1, "repeated": 1,
    }  # fmt: skip
    assert new.folder.report() is None
    assert {
        path.name: path.read_bytes() for path in run.folder.path.iterdir() if path.name in before
    } == before
    assert modulekge.evaluate(new).candidates == 10
    assert {line.name: line.state for line in list_runs(tmp_path)} == {"run": "finished", "new": "added"}


def test_facts_held_out_in_any_split_are_known(run, tmp_path):
    names = run.dataset.entities.names
    held = [(names[h], run.dataset.relations.names[r], names[t]) for h, r, t in run.dataset.valid.tolist()]
    with pytest.raises(DataError, match="the 1 fact is known"):
        modulekge.add(run, held, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_same_facts_give_the_same_run(run, tmp_path):
    runs = [modulekge.add(run.folder.path, NEW, tmp_path / name) for name in ("a", "b")]
    for file in ("weights.safetensors", "last.safetensors"):
        a, b = (load_file(new.folder.path / file) for new in runs)
        assert a.keys() == b.keys()
        assert all(torch.equal(a[key], b[key]) for key in a)


def test_facts_can_be_added_to_a_run_with_added_facts(run, tmp_path):
    first = modulekge.add(run, NEW, tmp_path / "first")
    second = modulekge.add(first, [("kim", "twin", "ida"), ("kim", "child", "eve")], tmp_path / "second")
    check_what_was_known_stays(first, second)
    assert second.dataset.entities.names[-3:] == ("ida", "jon", "kim")
    assert modulekge.add(second, [("jon", "knows", "kim")], tmp_path / "third", refresh=1).folder.records()


def test_facts_between_known_ones_move_nothing_without_a_refresh(run, tmp_path):
    new = modulekge.add(run, [("ada", "parent", "fay")], tmp_path / "new")
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), new.model.parameters(), strict=True))
    assert modulekge.predict(new, head="ada", relation="parent", k=8)
    assert new.dataset.split_of((0, 0, 5)) == "train"
    assert drift(run, new).changed == 0


def test_drift_goes_by_the_scores_that_answers_go_by(drawn_run, tmp_path):
    """Two runs of the same weights, one reranked: their MRR and their ten best differ together."""
    draw = torch.Generator().manual_seed(3)
    triples = torch.stack([torch.randint(n, (90,), generator=draw) for n in (40, 2, 40)], 1).unique(dim=0)
    names = tuple(f"e{i}" for i in range(40)), ("r0", "r1")
    parts = triples[: len(triples) // 2], triples[len(triples) // 2 :], triples[:0]
    graph = Dataset("drawn", Vocabulary("entity", names[0]), Vocabulary("relation", names[1]), *parts)
    plain = drawn_run(graph, "ComplEx")
    shutil.copytree(plain.folder.path, tmp_path / "copy")
    reranked = rerank_with(load(tmp_path / "copy"), RerankConfig(0.5, 0.25, 1.0))
    found = drift(plain, reranked)
    best = []
    for run in (plain, reranked):
        asked = [Question(names[0][h], names[1][r], None) for h, r, _ in graph.valid.tolist()]
        asked += [Question(None, names[1][r], names[0][t]) for _, r, t in graph.valid.tolist()]
        best.append([{answer.name for answer in row} for row in Predictor(run).predict_many(asked, 10)])
    changed = sum(a != b for a, b in zip(*best, strict=True)) / len(best[0])
    assert found.mrr_before != found.mrr_after
    assert found.changed == pytest.approx(changed) and changed > 0.1


def test_a_run_goes_on_with_what_its_optimiser_remembered(run, tmp_path):
    new = modulekge.add(run, NEW, tmp_path / "new")
    old, memory = load_file(run.folder.checkpoint), load_file(new.folder.checkpoint)
    key = "optimizer:relation_scaling.sum"
    assert torch.equal(memory[key][both(3, 4)], old[key])
    assert memory[key].isfinite().all()
    assert (memory["optimizer:entity_scalar.sum"][8:] > 0).any()
    resumed = modulekge.resume(new.folder.path, {"train.epochs": 3})
    refreshed = modulekge.add(run, NEW, tmp_path / "refreshed", refresh=3)
    assert torch.equal(resumed.model.entity_scalar, refreshed.model.entity_scalar)


def test_a_run_goes_on_at_the_rate_it_ended_with(family, tmp_path, quick):
    settings = {**TINY, "train.drop_after": 1, "train.lr": 0.2}
    new = modulekge.add(train(family, "DistMult", settings, tmp_path / "run"), NEW, tmp_path / "new")
    assert new.config.train.lr == pytest.approx(0.02)
    assert new.config.train.drop_after == 0
    asked = modulekge.add(tmp_path / "run", NEW, tmp_path / "asked", settings={"train.lr": 0.5})
    assert asked.config.train.lr == 0.5


def test_a_rate_that_has_decayed_to_nothing_is_the_least_there_is(family, tmp_path, quick):
    settings = {**TINY, "train.decay": 1e-3, "train.epochs": 5}
    new = modulekge.add(train(family, "DistMult", settings, tmp_path / "run"), NEW, tmp_path / "new")
    assert new.config.train.lr == LEAST_RATE


def test_what_cannot_be_refreshed_makes_nothing(run, tmp_path):
    with pytest.raises(ConfigError, match="refresh = -1: expected a number of epochs"):
        modulekge.add(run, NEW, tmp_path / "new", refresh=-1)
    assert not (tmp_path / "new").exists()


def test_without_a_valid_split_a_refresh_is_what_is_loaded(family, tmp_path, quick):
    alone = replace(family, valid=family.valid[:0])
    run = train(alone, "ModulE-RC", TINY, tmp_path / "run")
    new = modulekge.add(run, NEW, tmp_path / "new")
    check_what_was_known_stays(run, new)
    refreshed = modulekge.add(run, NEW, tmp_path / "refreshed", refresh=1)
    assert not torch.equal(refreshed.model.entity_scalar, new.model.entity_scalar)
    assert drift(run, refreshed) is None


def test_new_relations_are_named_with_those_that_were_perhaps_meant(run):
    known = run.dataset.relations.names[0]
    facts = [("ada", known[:-1] + "x", "bob"), ("ada", "http://x.org/zzz", "bob"), ("ada", known, "ida")]
    addition = enlarge(run.dataset, read_facts(facts))
    first = f"{known[:-1] + 'x'!r} (did you mean {known!r}?)"
    assert addition.notes == (f"new to this run: 2 relations: {first}, 'http://x.org/zzz'",)
    many = enlarge(run.dataset, read_facts([("ada", f"{i}{i}{i}{i}", "bob") for i in range(12)]))
    assert many.notes[0].startswith("new to this run: 12 relations: '0000', '1111', ")
    assert many.notes[0].endswith("'9999' and 2 more")
    assert addition.relations == 2


def test_names_are_found_by_label_too_but_not_whatever_their_case(run, tmp_path):
    addition = enlarge(run.dataset, read_facts([("Ada Lovelace", "parent", "Bob")]))
    assert addition.facts.tolist() == [[0, 0, 8]]
    assert addition.notes == ("new entities that differ from known ones in case only: Bob (bob)",)
    labels = {"bob": "Bo", "cid": "Bo"}
    doubtful = replace(run.dataset, entities=replace(run.dataset.entities, labels=labels))
    (tmp_path / "new.tsv").write_text("ada\tparent\tida\n\nida\tparent\tBo\n")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "train.tsv").write_text("Bo\tparent\tida\n")
    for facts, place in (
        (read_facts([("ada", "parent", "new"), ("Bo", "parent", "new")]), "list: row 2"),
        (read_facts(tmp_path / "new.tsv"), f"{tmp_path}/new.tsv:3"),
        (read_facts(tmp_path / "new"), f"{tmp_path}/new"),
    ):
        message = f"^{place}: 'Bo' is the label of 2 entities; give one of the names 'bob', 'cid'$"
        with pytest.raises(UnknownNameError, match=message):
            enlarge(doubtful, facts)


def test_blank_nodes_of_a_file_that_is_added_are_new(run, tmp_path):
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    text = f"""_:b0 <http://x/r> <http://x/a> .\n_:b0-2 <http://x/r> [] .\n_:b0 {label} "blank" .\n"""
    (tmp_path / "new.ttl").write_text(text)
    (tmp_path / "new.tsv").write_text("_:b0\thttp://x/r\thttp://x/c\n")
    first = enlarge(run.dataset, read_facts(tmp_path / "new.ttl")).after
    assert first.entities.names[8:] == ("_:b0", "_:b0-2", "http://x/a", "_:new.ttl-1")
    unlabelled = replace(first, entities=replace(first.entities, labels={}))
    second = enlarge(unlabelled, read_facts(tmp_path / "new.ttl"))
    assert second.after.entities.names[12:] == ("_:b0-3", "_:b0-2-2", "_:new.ttl-1-2")
    assert second.facts.tolist() == [[12, 3, 10], [13, 3, 14]]
    assert (second.after.entities.label(8), second.after.entities.label(12)) == ("_:b0", "blank")
    assert enlarge(first, read_facts(tmp_path / "new.tsv")).facts.tolist() == [[8, 3, 12]]
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "train.ttl").write_text(text)
    assert enlarge(first, read_facts(tmp_path / "new")).entities == 3


def towns():
    """Nine mothers in three towns, two children each: parent and child, sibling, and lives_in."""
    triples = []
    for i in range(9):
        a, b = f"a{i}", f"b{i}"
        triples += [(a, "sibling", b), (b, "sibling", a)]
        triples += [(person, "lives_in", f"town{i % 3}") for person in (f"m{i}", a, b)]
        for child in (a, b):
            triples += [(f"m{i}", "parent", child), (child, "child", f"m{i}")]
    names = sorted({name for h, _, t in triples for name in (h, t)})
    relations = ("parent", "child", "sibling", "lives_in")
    ids = torch.tensor([(names.index(h), relations.index(r), names.index(t)) for h, r, t in triples])
    vocabularies = Vocabulary("entity", tuple(names)), Vocabulary("relation", relations)
    return Dataset("towns", *vocabularies, ids, ids[:5], ids[:0])


LEARNED = {"model.scalar_scale": 0.1, "train.batch": 32, "train.epochs": 40, "train.eval_every": 40}
KINDS = [
    ("ModulE-HH", {"model.k": 8, "regularizer.weight": 0.003}),
    ("ComplEx", {"model.k": 16, "model.reciprocal": "tied", "regularizer.weight": 0.003}),
    ("RotatE", {"model.k": 16, "regularizer.weight": 0.0}),
    ("TransE", {"model.k": 16, "regularizer.weight": 0.0, **SAMPLED}),
]


@pytest.mark.parametrize(("model", "settings"), KINDS, ids=[name for name, _ in KINDS])
def test_what_is_added_obeys_the_rules_of_the_graph(tmp_path, model, settings):
    check_rules(tmp_path, model, settings)


def test_where_old_entities_are_drawn_what_is_added_obeys_the_rules_too(tmp_path, monkeypatch):
    monkeypatch.setattr(fold, "_MOST_OLD", 8)
    monkeypatch.setattr(fold, "_DRAWN_OLD", 12)
    check_rules(tmp_path, *KINDS[0])


def check_rules(tmp_path, model, settings):
    """A new entity and a new relation follow from a fact or two what others follow from many."""
    run = train(towns(), model, {**LEARNED, **settings}, tmp_path / "run")
    facts = [("m4", "parent", "zoe"), ("zoe", "sibling", "a4")]
    facts += [(f"m{i}", "raises", f"{child}{i}") for i in range(7) for child in "ab"]
    asked = modulekge.Predictor(modulekge.add(run, facts, tmp_path / "new"))

    def best(k=1, **question):
        return {answer.name for answer in asked.predict(k=k, **question)}

    assert best(head="zoe", relation="child") == {"m4"}
    assert best(head="zoe", relation="lives_in") == {"town1"}
    assert "zoe" in best(head="m4", relation="parent", k=3)
    assert best(head="m8", relation="raises", k=3) >= {"a8", "b8"}
    assert best(tail="b7", relation="raises") == {"m7"}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([], "list: no triples; each row should hold"),
        ([("a", "b")], "list: row 1: expected 3 fields, found 2"),
        ([("a", "r", "b"), ("a", "r", "b", "c")], "list: row 2: expected 3 fields, found 4"),
        ([("a", "", "b")], "row 1: the relation is empty; fill it in"),
        (["abc"], "row 1: 'abc': expected three values: head, relation, tail"),
        ([("a", "r", "b"), ("a", "r", "\ud800")], "row 2: the tail holds half of a character"),
        ([("a\0b", "r", "b")], "row 1: the head holds a NUL character"),
    ],
)
def test_what_are_no_triples_of_names_is_refused(run, tmp_path, facts, message):
    with pytest.raises(DataError, match=message):
        modulekge.add(run, facts, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_place_that_is_taken_is_refused_and_left_alone(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for place in (tmp_path / "mine", run.folder.path):
        before = sorted(path.name for path in place.iterdir())
        with pytest.raises(RunError, match="exists already"):
            modulekge.add(run, NEW, place)
        assert sorted(path.name for path in place.iterdir()) == before


def test_a_name_that_is_taken_meanwhile_is_left_for_the_next(run, tmp_path, monkeypatch):
    def write_late(*parts, **more):
        (tmp_path / "run-2").mkdir(exist_ok=True)
        (tmp_path / "run-2" / "letter.txt").write_text("dear")
        write_checkpoint(*parts, **more)

    monkeypatch.setattr("modulekge.run.folder.write_checkpoint", write_late)
    assert modulekge.add(run, NEW).folder.path == tmp_path / "run-3"
    assert [path.name for path in (tmp_path / "run-2").iterdir()] == ["letter.txt"]


def test_a_run_that_cannot_be_added_to_says_why(family, tmp_path):
    config = resolve(family, "DistMult", [{"model": {"k": 2}, "train": {"epochs": 3, "batch": 5}}])
    folder = RunFolder.create(tmp_path / "run", config, family)
    with pytest.raises(RunError, match="no weights yet"):
        modulekge.add(folder.path, NEW)
    events = continue_run(folder)
    for event in events:
        if isinstance(event, EpochRecord) and event.valid:
            break
    with pytest.raises(RunError, match="a process is training this run; wait"):
        modulekge.add(folder.path, NEW)
    events.close()
    with pytest.raises(ConfigError, match="only \\[train\\] settings can change"):
        modulekge.add(folder.path, NEW, settings={"model.k": 4})
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_without_its_checkpoint_can_be_added_to(run, tmp_path):
    run.folder.checkpoint.unlink()
    check_what_was_known_stays(run, modulekge.add(run, NEW, tmp_path / "new"))


def test_the_command_reads_a_file_says_what_it_did_and_takes_the_next_name(run, tmp_path):
    rows = ["source,kind,target", *(",".join(fact) for fact in NEW)]
    (tmp_path / "new.csv").write_text("\n".join(rows))
    (tmp_path / "labels.csv").write_text("ida,Ida Rhodes\nada,Somebody Else\n")
    (tmp_path / "told.tsv").write_text("ida\tLed the way.\nada\tSomebody else.\ngil\tA goat.\n")
    options = ("--columns", "source,kind,target", "--labels", "labels.csv", "--descriptions", "told.tsv")
    code, out, err = call("add", "run", "new.csv", *options, cwd=tmp_path)
    assert code == 0, err
    assert out.split() == [
        "added", "facts", "4", "new", "entities", "2", "new", "relations", "1",
        "facts", "between", "known", "entities", "1", "left", "out:", "known", "before", "1",
    ]  # fmt: skip
    assert "facts between known entities (1) move nothing; --refresh" in err
    assert "kept in run-2" in err
    vocabulary = load(tmp_path / "run-2").dataset.entities
    assert (vocabulary.label(0), vocabulary.label(8)) == ("Ada Lovelace", "Ida Rhodes")
    assert vocabulary.descriptions == {"ada": "Wrote a program.", "gil": "A goat.", "ida": "Led the way."}
    code, out, err = call("add", "run", "new.csv", *options, "--refresh", 1, "--json", cwd=tmp_path)
    assert code == 0, err
    found = json.loads(out)
    assert (found["run"], found["facts"], found["known_before"]) == ("run-3", 4, 1)
    assert found["drift"].keys() == {"mrr_before", "mrr_after", "changed"}
    assert "move nothing" not in err
    assert call("predict", "run-2", "--head", "Ida Rhodes", "--relation", "twin", cwd=tmp_path)[0] == 0


def test_ctrl_c_while_all_is_trained_keeps_the_facts_and_resume_goes_on(run, tmp_path, monkeypatch):
    def interrupted(folder, refresh):
        for event in adding.train_on(folder, refresh):
            yield event
            if isinstance(event, EpochRecord):
                raise KeyboardInterrupt

    monkeypatch.setattr("modulekge.commands.kept.train_on", interrupted)
    (tmp_path / "new.tsv").write_text("\n".join("\t".join(fact) for fact in NEW))
    code, _, err = call("add", "run", "new.tsv", "--refresh", 3, cwd=tmp_path)
    assert code == 130
    assert "the facts are in run-2; 'modulekge resume run-2' goes on training" in err
    assert call("resume", "run-2", cwd=tmp_path).returncode == 0
    alone = modulekge.add(run, tmp_path / "new.tsv", tmp_path / "alone", refresh=3)
    for name, table in load(tmp_path / "run-2").model.named_parameters():
        assert torch.equal(table, alone.model.get_parameter(name)), name


def test_a_description_of_a_label_is_one_of_its_name(run, tmp_path):
    (tmp_path / "new.tsv").write_text("Ida\tparent\tAda Lovelace\n")
    (tmp_path / "told.tsv").write_text("Ada Lovelace\tCounted.\nIda\tLed the way.\n")
    silent = replace(
        run, dataset=replace(run.dataset, entities=replace(run.dataset.entities, descriptions={}))
    )
    new = modulekge.add(silent, tmp_path / "new.tsv", tmp_path / "new", descriptions=tmp_path / "told.tsv")
    assert new.dataset.entities.descriptions == {"ada": "Counted.", "Ida": "Led the way."}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("ida\tchild\n", "new.tsv:1: expected 3 tab-separated fields"),
        ("", "new.tsv: no triples"),
        ("ada\tparent\tbob\n", "family: the 1 fact is known"),
        (None, "new.tsv: no such file"),
    ],
)
def test_a_file_that_adds_nothing_is_one_line_and_makes_nothing(run, tmp_path, content, message):
    if content is not None:
        (tmp_path / "new.tsv").write_text(content)
    code, out, err = call("add", "run", "new.tsv", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "run-2").exists()


def test_probabilities_are_kept_with_the_relations_they_are_of(run, tmp_path):
    before = modulekge.calibrate(run)
    own = {relation: replace(before.together, offset=float(relation)) for relation in range(6)}
    run.folder.save_calibration(replace(before, own=own))
    new = modulekge.add(run, NEW, tmp_path / "new")
    found = Predictor(new).calibration
    assert found.together == before.together
    assert {relation: line.offset for relation, line in found.own.items()} == {
        **{relation: float(relation) for relation in range(3)},
        **{relation + 1: float(relation) for relation in range(3, 6)},  # "twin" came before the reciprocals
    }
    assert modulekge.predict(new, head="ida", relation="child", k=1)[0].probability is not None
    again = modulekge.add(run, NEW, tmp_path / "trained", refresh=1)
    assert Predictor(again).calibration is None
