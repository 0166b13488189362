"""TorchKGE by the TransE tutorial of its documents: SGD, 500 epochs of batches of 1024."""

import torch
from harness import main


def train():
    """The tutorial with the calls that this version has."""
    import pandas as pd
    import torch
    from torchkge.data_structures import KnowledgeGraph
    from torchkge.models import TransEModel
    from torchkge.sampling import BernoulliNegativeSampler
    from torchkge.utils import DataLoader, MarginLoss

    torch.manual_seed(0)
    facts = pd.read_csv("train.tsv", sep="\t", names=["from", "rel", "to"], keep_default_na=False)
    kg = KnowledgeGraph(df=facts)
    model, criterion = TransEModel(50, kg.n_ent, kg.n_rel, dissimilarity_type="L2"), MarginLoss(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sampler = BernoulliNegativeSampler(kg)
    for _ in range(500):
        for h, t, r in DataLoader(kg, batch_size=1024):
            nh, nt = sampler.corrupt_batch(h, t, r)
            optimizer.zero_grad()
            loss = criterion(*model(h, t, r, nh, nt))
            loss.backward()
            optimizer.step()
        model.normalize_parameters()
    return model, kg


@torch.no_grad()
def scores(trained, questions, entities):
    """Its score of each triple."""
    model, kg = trained
    every = torch.tensor([kg.ent2ix[name] for name in entities])
    found = []
    for entity, relation, tail in questions:
        fixed = torch.full_like(every, kg.ent2ix[entity])
        of = torch.full_like(every, kg.rel2ix[relation])
        h, t = (fixed, every) if tail else (every, fixed)
        found.append(model.scoring_function(h, t, of).numpy())
    return found


main(train, scores, "torchkge")
