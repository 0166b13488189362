"""What others take for the same work: PyKEEN's ComplEx, and ComplEx in nothing but PyTorch's own parts."""

import time
from typing import Any

import torch
import torch.nn.functional as F
from measure import synchronize
from torch import nn

from modulekge.data.dataset import Dataset
from modulekge.training.optimizers import matmul_precision


def measure_pytorch(
    dataset: Dataset, batch: int, reals: int, device: torch.device, precision: str, steps: int, halves: bool
) -> dict[str, Any]:
    """Re<h, r, t>, cross-entropy over all tails, cubes of moduli, Adagrad: Lacroix et al. 2018, written down.

    kbc, their code, is on no package index; this is its work in nn.Embedding, autograd and torch.optim.
    With `halves` real and imaginary parts of the tails are scored apart, as the formula has them.
    """
    torch.manual_seed(0)
    k = reals // 2
    entities = nn.Embedding(len(dataset.entities), reals, device=device)
    relations = nn.Embedding(2 * len(dataset.relations), reals, device=device)
    for table in (entities, relations):
        nn.init.normal_(table.weight, std=1e-3)
    optimizer = torch.optim.Adagrad([entities.weight, relations.weight], lr=0.1)
    triples = dataset.train[torch.randperm(len(dataset.train))].to(device)
    batches = [rows for rows in triples.split(batch) if len(rows) == batch]

    def step(rows: torch.Tensor) -> None:
        h, r, t = entities(rows[:, 0]), relations(rows[:, 1]), entities(rows[:, 2])
        (a, b), (c, d) = h.chunk(2, 1), r.chunk(2, 1)
        real, imaginary, table = a * c - b * d, a * d + b * c, entities.weight
        if halves:
            scores = real @ table[:, :k].T + imaginary @ table[:, k:].T
        else:
            scores = torch.cat([real, imaginary], 1) @ table.T
        cubes = sum(((x**2 + y**2).sqrt() ** 3).sum() for x, y in (part.chunk(2, 1) for part in (h, r, t)))
        loss = F.cross_entropy(scores, rows[:, 2]) + 0.05 / batch * cubes
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    seconds = []
    with matmul_precision(precision, device):
        for _ in range(4):  # the first warms up
            synchronize(device)
            begin = time.perf_counter()
            for i in range(steps):
                step(batches[i % len(batches)])
            synchronize(device)
            seconds.append((time.perf_counter() - begin) / steps)
    name = "PyTorch ComplEx" + (", halves" if halves else "")
    return {"row": name, "k": k, "step_ms": sorted(seconds[1:])[1] * 1e3}


def measure_pykeen(
    dataset: Dataset, batch: int, reals: int, device: torch.device, steps: int
) -> dict[str, Any]:
    """PyKEEN's ComplEx (LCWA, inverse relations) at the same data, batch and length."""
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.losses import CrossEntropyLoss
    from pykeen.models import ComplEx
    from pykeen.training import LCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory

    some = dataset.train[torch.randperm(len(dataset.train), generator=torch.Generator().manual_seed(0))]
    triples = CoreTriplesFactory(
        some[: batch * steps], len(dataset.entities), len(dataset.relations), create_inverse_triples=True
    )
    seconds = []
    for epochs in (1, 3):  # what is spent once cancels out
        model = ComplEx(
            triples_factory=triples, embedding_dim=reals // 2, loss=CrossEntropyLoss(), random_seed=0
        ).to(device)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
        loop = LCWATrainingLoop(model=model, triples_factory=triples, optimizer=optimizer)
        options = {"num_epochs": epochs, "batch_size": batch, "use_tqdm": False, "use_tqdm_batch": False}
        begin = time.perf_counter()
        loop.train(triples_factory=triples, **options)
        synchronize(device)
        seconds.append(time.perf_counter() - begin)
    distinct = len(torch.unique(triples.mapped_triples[:, :2], dim=0))
    distinct += len(torch.unique(triples.mapped_triples[:, 1:], dim=0))
    test = dataset.test[:1000]
    begin = time.perf_counter()
    RankBasedEvaluator().evaluate(
        model, test, batch_size=256, use_tqdm=False, additional_filter_triples=[dataset.train, dataset.valid]
    )
    ranking = time.perf_counter() - begin
    return {
        "row": "PyKEEN ComplEx",
        "k": reals // 2,
        "step_ms": (seconds[1] - seconds[0]) / 2 / -(-distinct // batch) * 1e3,
        "ranked_per_s": 2 * len(test) / ranking,
    }
