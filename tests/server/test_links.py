"""The new links of a page: what a symmetric relation says is listed once; heads are asked as time allows."""

import pytest

from modulekge import calibrate
from modulekge.answers.links import affordable
from modulekge.answers.predictor import Predictor
from modulekge.data.registry import open_dataset
from modulekge.run.train import train
from modulekge.server.links import MOST_LINKS, new_links

SETTINGS = {"model.k": 8, "train.epochs": 10, "train.batch": 256}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    path = tmp_path_factory.mktemp("links") / "run"
    run = train(open_dataset("world"), "DistMult", SETTINGS, path)  # which scores both ways alike
    calibrate(run)
    return Predictor(run)


def test_symmetric_relations_are_told_by_their_facts():
    world = open_dataset("world")
    chosen = [name for name, one in zip(world.relations.names, world.symmetric, strict=True) if one]
    assert chosen == ["near", "borders"]


def test_new_links_of_a_symmetric_relation_are_listed_once(asked):
    found = new_links(asked, [asked.run.dataset.relations.names.index("borders")], "constrained")
    for links, count in ((found, MOST_LINKS), (asked.links(k=20, relations="borders"), 20)):
        pairs = {frozenset((link.head, link.tail)) for link in links}
        assert len(links) == len(pairs) == count


def test_where_a_question_costs_much_a_share_of_the_heads_is_asked(asked):
    scorer = asked.run.scorer
    most = (1 << 34) // scorer.cost
    assert (affordable(scorer, most), round(affordable(scorer, 4 * most), 3)) == (1.0, 0.25)
    heads: list[int] = []

    def watch(chunks):
        for chunk in chunks:
            heads.append(chunk.heads)
            yield chunk

    every, some = (asked.links("member_of", 10**6, watch, share=share) for share in (1.0, 0.2))
    assert heads[1] == -(-heads[0] // 5)
    found = {(link.head, link.tail) for link in some}
    assert found and found == {(x.head, x.tail) for x in every if x.head in {head for head, _ in found}}
