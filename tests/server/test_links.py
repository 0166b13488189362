"""The new links of a page: what a symmetric relation says is listed once."""

from modulekge import calibrate
from modulekge.answers.predictor import Predictor
from modulekge.data.registry import open_dataset
from modulekge.run.train import train
from modulekge.server.links import MOST_LINKS, new_links

SETTINGS = {"model.k": 8, "train.epochs": 10, "train.batch": 256}


def test_symmetric_relations_are_told_by_their_facts():
    world = open_dataset("world")
    chosen = [name for name, one in zip(world.relations.names, world.symmetric, strict=True) if one]
    assert chosen == ["near", "borders"]


def test_new_links_of_a_symmetric_relation_are_listed_once(tmp_path):
    run = train(open_dataset("world"), "DistMult", SETTINGS, tmp_path / "run")  # which scores both ways alike
    calibrate(run)
    asked = Predictor(run)
    found = new_links(asked, [run.dataset.relations.names.index("borders")], "constrained")
    for links, count in ((found, MOST_LINKS), (asked.links(k=20, relations="borders"), 20)):
        pairs = {frozenset((link.head, link.tail)) for link in links}
        assert len(links) == len(pairs) == count
