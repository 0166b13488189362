"""PyKEEN by the first example of its README, and the same model and loop for 500 epochs (an argument)."""

import sys

import torch
from harness import main

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 5  # of which five are its own default


def train():
    """What its README and its page on one's own data say."""
    from pykeen.pipeline import pipeline

    return pipeline(training="train.tsv", testing="test.tsv", model="TransE", epochs=EPOCHS, random_seed=0)


@torch.no_grad()
def scores(result, questions, entities):
    """Its own scores of all tails, or of all heads."""
    ids, relations = result.training.entity_to_id, result.training.relation_to_id
    order = [ids[name] for name in entities]
    found = []
    for entity, relation, tail in questions:
        pair = [ids[entity], relations[relation]]
        model = result.model
        row = model.score_t(torch.tensor([pair])) if tail else model.score_h(torch.tensor([pair[::-1]]))
        found.append(row[0, order].numpy())
    return found


main(train, scores, "pykeen")
