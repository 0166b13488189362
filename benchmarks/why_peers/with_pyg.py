"""PyTorch Geometric by its example kge_fb15k_237.py: ComplEx, 500 epochs of batches of 1000."""

import torch
from harness import main, read


def train():
    """The example, with names turned into numbers, which it leaves to its data sets."""
    import torch
    from torch_geometric.nn import ComplEx

    torch.manual_seed(0)
    triples = read("train")
    entities = {name: i for i, name in enumerate(sorted({n for h, _, t in triples for n in (h, t)}))}
    relations = {name: i for i, name in enumerate(sorted({r for _, r, _ in triples}))}
    h, r, t = torch.tensor([[entities[h], relations[r], entities[t]] for h, r, t in triples]).T
    model = ComplEx(len(entities), len(relations), hidden_channels=50)
    loader = model.loader(head_index=h, rel_type=r, tail_index=t, batch_size=1000, shuffle=True)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.001, weight_decay=1e-6)
    for _ in range(500):
        for batch in loader:
            optimizer.zero_grad()
            loss = model.loss(*batch)
            loss.backward()
            optimizer.step()
    return model, entities, relations


@torch.no_grad()
def scores(trained, questions, entities):
    """Its score of each triple."""
    model, ids, relations = trained
    every = torch.tensor([ids[name] for name in entities])
    found = []
    for entity, relation, tail in questions:
        fixed = torch.full_like(every, ids[entity])
        of = torch.full_like(every, relations[relation])
        h, t = (fixed, every) if tail else (every, fixed)
        found.append(model(h, of, t).numpy())
    return found


main(train, scores, "torch_geometric")
