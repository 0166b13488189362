"""What is said to support a triple does: taken out, the triple is lost."""

import json
from dataclasses import replace

import pytest
import torch
from program import call
from rows import ONE_OF_EACH

from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import ModulekgeError
from modulekge.explanations.explanation import explain, influences
from modulekge.explanations.paths import Walks
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS
from modulekge.run.train import train

PAIRS = 24
SETTINGS = {
    "model.k": 8,
    "model.scalar_scale": 0.1,
    "regularizer.weight": 0.01,
    "train.epochs": 40,
    "train.batch": 50,
    "train.eval_every": 40,
}


@pytest.fixture(scope="module")
def couples() -> Dataset:
    """Married pairs, most of them named both ways, who live in one of four towns and like a food."""
    people = [f"p{i}" for i in range(2 * PAIRS)]
    names = (*people, *(f"town{i}" for i in range(4)), *(f"food{i}" for i in range(6)))
    married = [(2 * i, 0, 2 * i + 1) for i in range(PAIRS)]
    back = [(t, r, h) for h, r, t in married]
    lives = [(person, 1, 2 * PAIRS + (person // 2) % 4) for person in range(2 * PAIRS)]
    likes = [(person, 2, 2 * PAIRS + 4 + (7 * person) % 6) for person in range(2 * PAIRS)]
    held = back[:4]
    train_triples = torch.tensor([*married, *back[4:], *lives, *likes])
    return Dataset(
        "couples",
        Vocabulary("entity", names, {"p0": "Ann"}),
        Vocabulary("relation", ("married_to", "lives_in", "likes")),
        train_triples,
        torch.tensor(held[:1]),
        torch.tensor(held[1:]),
    )


@pytest.fixture(scope="module")
def run(couples, tmp_path_factory):
    return train(couples, "ModulE-HH", SETTINGS, tmp_path_factory.mktemp("couples") / "run")


def test_a_held_out_triple_is_explained(run):
    why = explain(run, "p3", "married_to", "p2", k=3)
    assert why.split == "test"
    assert (why.as_tail.rank, why.as_head.rank) == (1, 1)
    mirror = ("p2", "married_to", "p3")
    best = why.supports[0].fact
    assert (best.head, best.relation, best.tail) == mirror
    assert 0 < why.supports[0].share <= 1
    assert len(why.supports) <= 3
    (first, *_) = why.routes
    assert [(f.head, f.relation, f.tail) for f in first.facts] == [mirror]
    assert first.ways == ("backward",)
    assert first.evidence.share > 0.8 > first.evidence.chance
    assert len(why.near_head) == len(why.near_tail) == 3
    assert 1 >= why.near_tail[0].likeness >= why.near_tail[1].likeness


def test_a_training_fact_is_not_its_own_support_or_path(run):
    why = explain(run, "p20", "married_to", "p21", k=50)
    assert why.split == "train"
    own = ("p20", "married_to", "p21")
    facts = [s.fact for s in why.supports] + [f for route in why.routes for f in route.facts]
    assert facts
    assert all((f.head, f.relation, f.tail) != own for f in facts)
    assert explain(run, "Ann", "likes", "town0").split is None


def test_removing_the_supports_lowers_the_score_more_than_removing_others(run, couples, tmp_path):
    """Retrained without the named facts, the held-out triples fall; without others around them, less."""
    asked = [tuple(triple) for triple in couples.test.tolist()]
    names, relations = couples.entities.names, couples.relations.names
    named, others = [], []
    for h, r, t in asked:
        why = explain(run, names[h], relations[r], names[t], k=1)
        f = why.supports[0].fact
        named.append((names.index(f.head), relations.index(f.relation), names.index(f.tail)))
        around = [x for x in couples.train.tolist() if {x[0], x[2]} & {h, t} and tuple(x) != named[-1]]
        others.append(tuple(around[0]))

    def score_without(facts, folder):
        gone = torch.tensor(facts)
        kept = ~(couples.train[:, None] == gone).all(2).any(1)
        model = train(
            replace(couples, train=couples.train[kept]), "ModulE-HH", SETTINGS, tmp_path / folder
        ).model
        with torch.no_grad():
            chance = model(couples.test[:, 0], couples.test[:, 1]).log_softmax(1)
        return chance.gather(1, couples.test[:, 2:]).mean()

    assert score_without(named, "named") < score_without(others, "others") - 1


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_influence_is_the_product_of_gradients_in_every_row(name, couples):
    """Against gradients taken of one fact after another through the model's own tables."""
    model = Embedding(MODELS[name], len(couples.entities), couples.n_relations_with_inverses, 3)
    model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    triple, n = (1, 0, 0), len(couples.relations)
    facts = torch.tensor([(0, 0, 1), (0, 1, 48), (2, 0, 1), (1, 2, 55)])

    def gradient(h, r, t):
        tables = [table for table in (model.entity_scalar, model.entity_vector) if table.numel()]
        scores = model(torch.tensor([h, t]), torch.tensor([r, r + n]))
        gradients = torch.autograd.grad(scores[0, t] + scores[1, h], tables)
        return torch.cat([x[[triple[0], triple[2]]].flatten() for x in gradients])

    expected = torch.stack([gradient(*fact) @ gradient(*triple) for fact in facts.tolist()])
    torch.testing.assert_close(influences(model, facts, triple, n), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_an_entity_is_nearest_to_itself_in_every_row(name):
    model = Embedding(MODELS[name], 6, 2, 4).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    with torch.no_grad():
        likeness = model.likeness(torch.arange(6), model.entities())
    assert likeness.argmax(1).tolist() == list(range(6))


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_every_row_can_be_moved_by_two_relations(name):
    model = Embedding(MODELS[name], 5, 4, 3).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    heads, first, second = torch.tensor([0, 3]), torch.tensor([1, 2]), torch.tensor([3, 0])
    with torch.no_grad():
        through = model.queries_through(heads, first, second)
        assert through.shape == model.queries(heads, second).shape
        assert torch.isfinite(model.scores(through, model.entities())).all()


def test_two_moves_in_a_row_as_the_models_write_them():
    """TransE: h + r + q. RotatE: h e^(i r) e^(i q). HAKE: the modulus that fits best is moved again."""
    heads, first, second = torch.tensor([0, 3]), torch.tensor([1, 2]), torch.tensor([3, 0])
    models = {
        name: Embedding(MODELS[name], 5, 4, 3).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
        for name in ("TransE", "RotatE-xy", "HAKE")
    }
    with torch.no_grad():
        e, r = models["TransE"].entity_scalar, models["TransE"].relation_scaling
        through = {name: model.queries_through(heads, first, second) for name, model in models.items()}
        torch.testing.assert_close(through["TransE"], e[heads] + r[first] + r[second])
        turning = models["RotatE-xy"]
        e = torch.complex(*turning.entity_scalar.unbind(1))
        r = torch.complex(*turning.spec.scaling.group.point(turning.relation_scaling).unbind(1))
        moved = e[heads] * r[first] * r[second]
        torch.testing.assert_close(through["RotatE-xy"], torch.stack([moved.real, moved.imag], 1))
        mixing = models["HAKE"]
        mixing.relation_scaling[:, 1] = 0.5
        modulus = mixing.entity_scalar[heads, 0] * (1 + 0.5) / (1 - 0.5) * (1 + 0.5)
        torch.testing.assert_close(mixing.queries_through(heads, first, second)[:, 0], modulus)


def test_paths_are_those_a_plain_search_finds(family):
    """Every walk of up to three facts, either way, without the fact itself or its ends on the way."""
    n = len(family.relations)
    head, relation, tail = 0, 0, 1
    steps = [s for s in family.questions("train").tolist() if s not in ([0, 0, 1], [1, n, 0])]
    expected = set()
    for a in steps:
        if a[0] != head:
            continue
        expected |= {(tuple(a),)} if a[2] == tail else set()
        for b in steps:
            if a[2] in (head, tail) or b[0] != a[2]:
                continue
            expected |= {(tuple(a), tuple(b))} if b[2] == tail else set()
            for c in steps:
                if b[2] not in (head, tail, a[2]) and c[0] == b[2] and c[2] == tail:
                    expected.add((tuple(a), tuple(b), tuple(c)))
    found = Walks(family).paths(head, relation, tail)
    assert {walk for walks in found.values() for walk in walks} == expected
    assert any(len(pattern) == 1 for pattern in found)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (("Anne", "married_to", "p1"), "unknown entity 'Anne'; did you mean 'Ann'"),
        (("Ann", "maried_to", "p1"), "unknown relation 'maried_to'; did you mean 'married_to'"),
        (("Ann", "married_to", "nobody at all"), "unknown entity"),
    ],
)
def test_names_that_nothing_bears(run, question, message):
    with pytest.raises(ModulekgeError, match=message):
        explain(run, *question)
    with pytest.raises(ModulekgeError, match="at least one"):
        explain(run, "Ann", "likes", "food0", k=0)


def test_an_entity_and_itself(run):
    why = explain(run, "p4", "married_to", "p4")
    assert why.split is None
    assert why.near_head == why.near_tail
    assert why.routes == ()
    assert all("p4" in (s.fact.head, s.fact.tail) for s in why.supports)


def test_the_command_prints_it(run, tmp_path):
    seen = call("explain", run.folder.path, "p3", "married_to", "p2", "-k", 2, cwd=tmp_path)
    assert seen.returncode == 0
    assert "p3  married_to  p2  known, held out in test" in seen.stdout
    assert "p3 <-married_to- p2" in seen.stdout
    assert "nearest to p3" in seen.stdout
    told = json.loads(
        call("explain", run.folder.path, "p3", "married_to", "p2", "--json", cwd=tmp_path).stdout
    )
    assert told["as_tail"]["rank"] == 1
    wrong = call("explain", run.folder.path, "p3", "wed_to", "p2", cwd=tmp_path)
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
