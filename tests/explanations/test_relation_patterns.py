"""Relation patterns, on a graph made of a group so that the truth is known."""

import json
from itertools import combinations, permutations

import pytest
import torch
from program import call
from rows import ONE_OF_EACH

import modulekge
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.explanations.paths import Walks
from modulekge.explanations.relation_patterns import relation_patterns
from modulekge.run.train import train

COPIES = 3
ELEMENTS = list(permutations(range(4)))  # the group S4
SETTINGS = {
    "model.k": 16,
    "model.scalar_scale": 0.1,
    "regularizer.weight": 0.02,
    "train.epochs": 80,
    "train.batch": 100,
    "train.eval_every": 80,
}


def then(p, q):
    """The permutation p, and after it q."""
    return tuple(q[i] for i in p)


CYCLE, TURN, SWAP = (1, 2, 3, 0), (1, 2, 0, 3), (1, 0, 2, 3)
PLANTED = {
    "cycle": CYCLE,
    "back": then(CYCLE, then(CYCLE, CYCLE)),
    "turn": TURN,
    "twist": then(CYCLE, TURN),
    "swap": SWAP,
    "twin": TURN,
}


def moves():
    """Where each relation leads from each entity: copies of the group, and one relation of chance."""
    place = {element: i for i, element in enumerate(ELEMENTS)}
    led = {
        name: [24 * copy + place[then(e, g)] for copy in range(COPIES) for e in ELEMENTS]
        for name, g in PLANTED.items()
    }
    chance = torch.randperm(24 * COPIES, generator=torch.Generator().manual_seed(1)).tolist()
    return {**led, "chance": chance}


@pytest.fixture(scope="module")
def group() -> Dataset:
    led = moves()
    triples = torch.tensor([(h, r, t) for r, ends in enumerate(led.values()) for h, t in enumerate(ends)])
    order = torch.randperm(len(triples), generator=torch.Generator().manual_seed(0))
    valid, test, kept = order.split([60, 60, len(order) - 120])
    entities = Vocabulary("entity", tuple(map(str, range(24 * COPIES))))
    relations = Vocabulary("relation", tuple(led), {"swap": "swaps with"})
    return Dataset("group", entities, relations, triples[kept], triples[valid], triples[test])


@pytest.fixture(scope="module")
def run(group, tmp_path_factory):
    return train(group, "ModulE-HH", SETTINGS, tmp_path_factory.mktemp("group") / "run")


def truth():
    """Every pattern that the planted relations have."""
    to = {name: tuple(tails) for name, tails in moves().items()}
    here = tuple(range(24 * COPIES))
    found = {("symmetric", (a,)) for a in to if then(to[a], to[a]) == here}
    found |= {("antisymmetric", (a,)) for a in to if all(x != y for x, y in zip(then(to[a], to[a]), here))}
    for a, b in combinations(to, 2):
        found |= {("inverse", (a, b))} if then(to[a], to[b]) == here else set()
        found |= {("equal", (a, b))} if to[a] == to[b] else set()
        same = then(to[a], to[b]) == then(to[b], to[a])
        found |= {("commuting" if same else "not commuting", (a, b))}
    found |= {("composition", (a, b, c)) for a in to for b in to for c in to if then(to[a], to[b]) == to[c]}
    return found


def test_what_is_claimed_is_what_was_planted(run):
    algebra = relation_patterns(run)
    claims = {(finding.kind, finding.relations) for finding in algebra.claims}
    true = truth() | {("antisymmetric", ("chance",))}
    assert claims <= true
    found = {kind: {names for k, names in claims if k == kind} for kind, _ in true}
    assert found["symmetric"] == {("swap",)}
    assert found["inverse"] == {("cycle", "back")}
    assert found["equal"] == {("turn", "twin")}
    assert found["antisymmetric"] >= {("cycle",), ("back",), ("turn",), ("twist",), ("twin",)}
    assert {(a, b) for a, b, _ in found["composition"]} == {
        ("cycle", "turn"), ("cycle", "twin"), ("back", "twist"),
    }  # fmt: skip
    assert found["not commuting"]
    assert found["commuting"] == {("turn", "twin")}  # that of inverse ones leads back, which is no path
    assert not algebra.commutative
    assert not [f for f in algebra.beliefs if f.kind in ("symmetric", "inverse", "equal")]


def test_relations_that_commute_are_told_from_those_that_do_not(tmp_path):
    """Steps along two sides of a torus commute, and neither does with a shuffle."""
    rows, columns = 9, 8
    shuffle = torch.randperm(rows * columns, generator=torch.Generator().manual_seed(1)).tolist()
    led = {
        "down": [(i + columns) % (rows * columns) for i in range(rows * columns)],
        "right": [i - i % columns + (i + 1) % columns for i in range(rows * columns)],
        "shuffle": shuffle,
    }
    triples = torch.tensor([(h, r, t) for r, ends in enumerate(led.values()) for h, t in enumerate(ends)])
    order = torch.randperm(len(triples), generator=torch.Generator().manual_seed(0))
    valid, test, kept = order.split([10, 10, len(order) - 20])
    entities = Vocabulary("entity", tuple(map(str, range(rows * columns))))
    splits = (triples[kept], triples[valid], triples[test])
    torus = Dataset("torus", entities, Vocabulary("relation", tuple(led)), *splits)
    algebra = relation_patterns(train(torus, "ModulE-HH", SETTINGS, tmp_path / "run"))
    orders = {(f.kind, f.relations) for f in algebra.claims if "commuting" in f.kind}
    assert ("commuting", ("down", "right")) in orders
    assert orders <= {
        ("commuting", ("down", "right")),
        ("not commuting", ("down", "shuffle")),
        ("not commuting", ("right", "shuffle")),
    }


def test_findings_carry_their_evidence(run, group):
    algebra = relation_patterns(run)
    (swap,) = [f for f in algebra.claims if f.kind == "symmetric"]
    assert swap.labels == ("swaps with",)
    pairs = {(h, t) for h, r, t in group.train.tolist() if group.relations.names[r] == "swap"}
    assert swap.evidence.pairs == len(pairs)
    assert swap.evidence.share == pytest.approx(sum((t, h) in pairs for h, t in pairs) / len(pairs))
    assert swap.similarity > 0.8 > algebra.threshold


def test_the_command_prints_it(run, tmp_path):
    seen = call("relations", run.folder.path, cwd=tmp_path)
    assert seen.returncode == 0
    assert "cycle then turn = twist" in seen.stdout
    assert "swaps with" in seen.stdout
    told = json.loads(call("relations", run.folder.path, "--json", cwd=tmp_path).stdout)
    assert {"symmetric", "inverse"} <= {finding["kind"] for finding in told["findings"]}


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_every_row_is_read_and_commutative_ones_say_so(name, family, tmp_path):
    settings = {"model.k": 4, "train.epochs": 2, "train.batch": 8}
    algebra = modulekge.relation_patterns(train(family, name, settings, tmp_path / "run"))
    assert algebra.compared == 3
    # HAKE's last relation also weighs what is compared
    abelian = {"DistMult", "RotatE", "RotatE-xy", "ComplEx", "ModulE-RC", "TransE", "TransE-L2"}
    abelian |= {f"ModulE-{x}-scalar" for x in ("RC", "RH")} | {"ModulE-RC-vector", "ModulE-RC-rotation"}
    assert algebra.commutative == (name in abelian)


def test_shares_of_a_pattern_are_counted_by_hand(family):
    walks = Walks(family)
    parent, child = 0, 1
    facts = {(h, r, t) for h, r, t in family.train.tolist()}
    pairs = {(h, t) for h, r, t in facts if r == parent}
    evidence = walks.evidence((parent,), child + len(family.relations))
    assert evidence.pairs == len(pairs)
    assert evidence.share == pytest.approx(sum((t, child, h) in facts for h, t in pairs) / len(pairs))
    grand = {(a, d) for a, b in pairs for c, d in pairs if b == c}
    assert {tuple(pair) for pair in walks.joined((parent, parent)).tolist()} == grand
