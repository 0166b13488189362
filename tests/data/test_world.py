"""The embedded graph keeps its promises."""

import torch

from modulekge.data.registry import open_dataset
from modulekge.data.statistics import statistics_of


def test_the_world():
    world = open_dataset("world")
    found = statistics_of(world)
    assert (found.entities, found.relations) == (1266, 12)
    assert found.triples == {"train": 4690, "valid": 261, "test": 366}
    assert not any(
        (*found.duplicates.values(), *found.self_loops.values(), *found.shared_with_train.values())
    )
    assert found.unseen_entities == {"valid": 0, "test": 0}
    assert found.leaks["reverse, same relation"] == 0
    assert all(min(row.triples.values()) > 0 for row in found.per_relation)
    france, borders = world.entities.find("france"), world.relations.find("borders")
    neighbours = world.known.of_questions(torch.tensor([france]), torch.tensor([borders]))[1]
    assert {"Spain", "Germany", "Italy", "Belgium"} <= {world.entities.names[i] for i in neighbours.tolist()}
