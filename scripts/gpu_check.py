"""Prove that a GPU computes what the CPU computes, for every row: losses, gradients, ranks.

    python scripts/gpu_check.py                 (or: make gpu-check)
    python scripts/gpu_check.py --only paths

Needs PyTorch with CUDA and this library, nothing else. Prints a line per check and row and, as its last
line, how many passed; exits with 1 if any did not.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from modulekge.algebra.parametrizations import EXPONENTIAL
from modulekge.config import Config, RerankConfig, make_config
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.evaluation.evaluate import rank
from modulekge.machine import compiled, repeatable
from modulekge.models.embedding import Embedding
from modulekge.models.paths import Paths
from modulekge.models.reranked import Reranked
from modulekge.models.spec import MODELS, Build, ModelSpec, specs
from modulekge.models.table import TABLE_1
from modulekge.run.checkpoint import begin
from modulekge.training import step as steps
from modulekge.training.optimizers import begin_epoch, make_optimizer
from modulekge.training.questions import Questions
from modulekge.training.step import Step
from modulekge.training.tables import PlainTables, gradients_of

ENTITIES, RELATIONS, K, BATCH = 301, 5, 10, 64
LOSSES = (
    {"kind": "softmax", "smoothing": 0.1, "degree_weight": 0.5},
    {"kind": "logistic"},
    {"kind": "softmax", "targets": "all"},
)


def graph() -> Dataset:
    """A random graph with a few triples to rank."""
    draw = torch.Generator().manual_seed(0)
    sizes = torch.tensor([ENTITIES, RELATIONS, ENTITIES])
    triples = (torch.rand(600, 3, generator=draw) * sizes).long().unique(dim=0)
    triples = triples[torch.randperm(len(triples), generator=draw)]
    names = [tuple(map(str, range(n))) for n in (ENTITIES, RELATIONS)]
    vocabularies = Vocabulary("entity", names[0]), Vocabulary("relation", names[1])
    return Dataset("random", *vocabularies, triples[100:], triples[:50], triples[50:100])


def fresh(spec: ModelSpec, dataset: Dataset, device: str) -> Embedding:
    """The same random weights on any device."""
    model = Embedding(spec, ENTITIES, dataset.n_relations_with_inverses, K)
    return model.draw(torch.Generator().manual_seed(1), 0.3, 1.0).to(device)


def trained(
    spec: ModelSpec, dataset: Dataset, config: Config, device: str
) -> tuple[list[float], list[Tensor]]:
    """Losses of consecutive steps, and the size of the gradients of the first."""
    model = fresh(spec, dataset, device)
    optimizer = make_optimizer(model, config.train)
    questions = Questions.of(dataset, config.loss, torch.device(device))
    step = Step(model, questions, optimizer, config)
    begin_epoch(optimizer, config.train, 1)
    losses, gradients = [], []
    for rows in torch.arange(7 * BATCH).split(BATCH):
        step.begin(1)
        step(rows.to(device))
        losses.append(step.mean(BATCH))
        memory = [optimizer.state[t]["sum"] for t in model.parameters() if t.numel()]
        gradients = gradients or [total.sqrt().cpu() for total in memory]  # Adagrad has summed one square yet
    return losses, gradients


def apart(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, as a share of the largest value."""
    if ours.numel() == 0:
        return 0.0
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1e-6))


def check_training(
    spec: ModelSpec, dataset: Dataset, loss: dict[str, object], precision: str = "float32"
) -> tuple[float, float]:
    """Steps with the exact loss: eager, recorded and replayed; on the CPU always in float32."""
    settings = {"loss": loss, "regularizer": {"weight": 0.01}, "train": {"batch": BATCH, "lr": 0.001}}
    here = trained(spec, dataset, make_config([settings]), "cpu")
    there = trained(spec, dataset, make_config([settings, {"train": {"precision": precision}}]), "cuda")
    losses = apart(torch.tensor(there[0]), torch.tensor(here[0]))
    return losses, max(apart(a, b) for a, b in zip(there[1], here[1], strict=True))


def check_chosen(spec: ModelSpec, dataset: Dataset, build: Build | None = None) -> tuple[float, float]:
    """Scores of drawn candidates and their gradients; on the GPU of entities that are built so."""
    rows = torch.randint(ENTITIES, (BATCH, 40), generator=torch.Generator().manual_seed(2))
    results = []
    for device in ("cpu", "cuda"):
        model = fresh(spec, dataset, device)
        heads, relations, _ = dataset.questions("train")[:BATCH].to(device).unbind(1)
        faster = build if device == "cuda" else None
        scores = model.scores_each(model.queries(heads, relations), rows.to(device), faster)
        scores.square().mean().backward()
        gradients = [t.grad.cpu() for t in model.parameters() if t.grad is not None]
        results.append((scores.detach().cpu(), gradients))
    (here, mine), (there, theirs) = results
    return apart(there, here), max(apart(a, b) for a, b in zip(theirs, mine, strict=True))


def check_drawn(spec: ModelSpec, dataset: Dataset) -> tuple[float, float]:
    """Steps with drawn candidates, of which each device draws its own: compiled, and as they come."""
    drawn = {"kind": "logistic", "candidates": "sampled", "negatives": 8}
    settings = {"loss": drawn, "regularizer": {"weight": 0.01}, "train": {"batch": BATCH, "lr": 0.001}}
    worth, ways = steps._WORTH_COMPILING["cuda"], []
    for steps._WORTH_COMPILING["cuda"] in (0.0, float("inf")):
        ways.append(trained(spec, dataset, make_config([settings]), "cuda"))
    steps._WORTH_COMPILING["cuda"] = worth
    (losses, gradients), (plain, by_plain) = ways
    found = apart(torch.tensor(losses), torch.tensor(plain))
    return found, max(apart(a, b) for a, b in zip(gradients, by_plain, strict=True))


def check_many(dataset: Dataset) -> tuple[float, float]:
    """Gradients of far more rows than the tables have, added up: twice the same on the GPU, and the CPU's."""
    count, draw = 30 * ENTITIES, torch.Generator().manual_seed(3)
    ids, relations = (torch.randint(n, (count,), generator=draw) for n in (ENTITIES, 2 * RELATIONS))
    results = []
    for device in ("cpu", "cuda", "cuda"):
        model = fresh(MODELS["ModulE-HH"], dataset, device)
        few = model.part(count, count)
        draw.manual_seed(4)
        for part in (*few.entity_tables[:2], *few.relation_tables):
            part.grad = torch.randn(part.shape, generator=draw).to(device)
        with repeatable():
            PlainTables(model).add(ids.to(device), relations.to(device), few)
        results.append(torch.cat([gradients_of(table).flatten().cpu() for table in model.parameters()]))
    here, there, again = results
    return float(not torch.equal(there, again)), apart(there, here)


def check_ranks(spec: ModelSpec, dataset: Dataset, weight: float = 0.0) -> float:
    """The share of questions, reranked or not, whose rank differs by more than rounding can explain."""
    ranks, weights = [], RerankConfig(weight, weight, weight)
    for device in ("cpu", "cuda"):
        scorer = Reranked(fresh(spec, dataset, device).scorer(), weights, dataset.questions("train"))
        ranks.append(rank(scorer, dataset.questions("test"), dataset.known).rank("bottom"))
    return float(((ranks[0] - ranks[1]).abs() > 1).double().mean())


def check_fallback(dataset: Dataset) -> tuple[float, float]:
    """Steps that cannot be recorded, since they ask what a sum is, are taken all the same."""
    take = Step._take

    def asking(step: Step, rows: Tensor) -> None:
        take(step, rows)
        float(step._total)

    Step._take = asking  # type: ignore[method-assign]
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = check_training(MODELS["ModulE-HH"], dataset, LOSSES[0])
        return found if any("not replayed" in str(warning.message) for warning in said) else (1.0, 1.0)
    finally:
        Step._take = take  # type: ignore[method-assign]


def check_paths(name: str, dataset: Dataset, aggregation: str) -> tuple[float, float]:
    """Scores by paths and gradients: by kernels in bfloat16, twice the same, and on the CPU in float32."""
    results = []
    for device in ("cpu", "cuda", "cuda"):
        settings = {"layers": 3, "d": 24, "aggregation": aggregation}
        model, _ = begin(make_config([{"model": {"name": name}, "paths": settings}]), dataset)
        assert isinstance(model, Paths)
        model = model.to(device)
        adjacency, batch = model.adjacency.to(model.device), dataset.questions("train")[:BATCH].to(device)
        heads, relations, tails = batch.unbind(1)
        kept = adjacency.outside(adjacency.groups(heads, relations, tails))
        scores = model(heads, relations, adjacency.only(kept))
        F.cross_entropy(scores, tails).backward()
        gradients = [t.grad.flatten().cpu() for t in model.parameters() if t.grad is not None]
        results.append((scores.detach().cpu(), torch.cat(gradients)))
    (here, mine), (there, theirs), (again, twice) = results
    if not (torch.equal(there, again) and torch.equal(theirs, twice)):
        return 1.0, 1.0
    return float((there - here).norm() / here.norm()), float((theirs - mine).norm() / mine.norm())


def passes(model: str, check: str, value: float, gradient: float) -> bool:
    """Print how far apart the devices are, and judge it; bfloat16 has eight bits, and turns some ReLUs."""
    low = {"bfloat16": (1e-2, 2e-2), "paths": (1e-2, 2e-1)}
    most_value, most_gradient = low.get(check.split()[0], (2e-3, 2e-4))
    good = value < most_value and gradient < most_gradient
    mark = "ok  " if good else "FAIL"
    print(f"{mark} {model:18} {check:14} value {value:.1e}  gradients {gradient:.1e}", flush=True)
    return good


def embeddings(dataset: Dataset) -> Iterator[bool]:
    """Every check of every row."""
    short = [
        replace(spec.parametrized(EXPONENTIAL), name=f"{spec.name}, exp") for spec in specs(TABLE_1[-3:])
    ]
    for spec in (*MODELS.values(), *short):
        for i, loss in enumerate(LOSSES):
            yield passes(spec.name, f"train {i}", *check_training(spec, dataset, loss))
        if spec.score.bilinear:
            yield passes(spec.name, "bfloat16", *check_training(spec, dataset, LOSSES[0], "bfloat16"))
        yield passes(spec.name, "chosen", *check_chosen(spec, dataset))
        yield passes(spec.name, "ranks", check_ranks(spec, dataset), 0.0)
        yield passes(spec.name, "reranked", check_ranks(spec, dataset, 0.5), 0.0)
    yield passes("ModulE-HH", "fallback", *check_fallback(dataset))
    yield passes("ModulE-HH", "many", *check_many(dataset))
    for name in ("RotatE", "QuatE", "QuatE-xy", "NagE", "DensE"):
        yield passes(name, "drawn", *check_drawn(MODELS[name], dataset))
    steps._WORTH_COMPILING["cuda"] = 0  # and once compiled
    for name in ("ModulE-HH", "RotatE"):
        yield passes(name, "compiled", *check_training(MODELS[name], dataset, LOSSES[0]))
    for name in ("NagE", "HopfE-fibre"):
        spec = MODELS[name]
        yield passes(name, "built", *check_chosen(spec, dataset, compiled(spec.entity)))


def paths(dataset: Dataset) -> Iterator[bool]:
    """Each algebra as a message, and each aggregation."""
    for name in ("DistMult", "ComplEx", "QuatE", "ModulE-RC", "ModulE-RH", "ModulE-HH", "TransE"):
        yield passes(f"Paths-{name}", "paths", *check_paths(f"Paths-{name}", dataset, "mean-std"))
    for aggregation in ("mean", "sum"):
        yield passes("Paths", f"paths {aggregation}", *check_paths("Paths-DistMult", dataset, aggregation))


def main() -> None:
    """Run what is asked for, all without options."""
    parts = {"embeddings": embeddings, "paths": paths}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=parts)
    only = parser.parse_args().only
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device: nothing to check; run this where torch.cuda.is_available()")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    passed = [good for name, part in parts.items() if only in (None, name) for good in part(graph())]
    print(f"{sum(passed)} of {len(passed)} checks passed")
    sys.exit(not all(passed))


if __name__ == "__main__":
    main()
