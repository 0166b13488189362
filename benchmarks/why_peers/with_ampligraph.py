"""AmpliGraph by the example of its model's documents: ComplEx, 5 epochs."""

import numpy as np
from harness import main


def train():
    """The example, on files of one's own."""
    from ampligraph.datasets import load_from_csv
    from ampligraph.latent_features import ScoringBasedEmbeddingModel

    facts = load_from_csv(".", "train.tsv", sep="\t")
    model = ScoringBasedEmbeddingModel(eta=5, k=300, scoring_type="ComplEx", seed=0)
    model.compile(optimizer="adam", loss="nll")
    model.fit(facts, batch_size=10000, epochs=5)
    return model


def scores(model, questions, entities):
    """Its score of each triple."""
    found = []
    for at in range(0, len(questions), 50):
        part = questions[at : at + 50]
        triples = [
            (fixed, of, name) if tail else (name, of, fixed) for fixed, of, tail in part for name in entities
        ]
        found.append(np.asarray(model.predict(np.array(triples), batch_size=10000)).reshape(len(part), -1))
    return np.concatenate(found)


main(train, scores, "ampligraph")
