"""New entities added to a trained run, against training anew with them: accuracy and seconds.

    python benchmarks/add.py UMLS CoDEx-S

A share of the entities is held out with all of their facts and a model is trained on the rest. The held-out
entities come back with 70 % of their facts, and are asked about the other 30 %, heads and tails, filtered:

- drawn: as rows of random numbers, as an untrained entity has;
- added: by ``modulekge.add``;
- refreshed: added, and a few epochs of training together;
- retrained: from the start, on all that "added" saw.

"old" is the MRR on the valid triples of the rest, where new entities are candidates too; without them it is
in the line "before". A line of JSON for each, then a table.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from measure import plainly
from torch import Tensor

from modulekge import Dataset, Run, add, load, open_dataset, train
from modulekge.data.filter_index import FilterIndex
from modulekge.data.vocabulary import Vocabulary
from modulekge.evaluation.evaluate import rank
from modulekge.evaluation.metrics import metrics
from modulekge.run.checkpoint import begin

SETTINGS: dict[str, dict[str, Any]] = {
    "UMLS": {"model.k": 32, "train.epochs": 40, "train.eval_every": 5},
    "CoDEx-S": {"model.k": 32, "train.epochs": 15, "train.eval_every": 5},
}


def held_out(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Tensor, Tensor]:
    """Return the graph without some entities, and what is given and asked of them, in the graph's own ids."""
    generator, n = torch.Generator().manual_seed(seed), len(dataset.entities)
    old = torch.ones(n, dtype=torch.bool)
    old[torch.randperm(n, generator=generator)[: int(share * n)]] = False
    ids = old.cumsum(0) - 1

    def kept(triples: Tensor) -> Tensor:
        triples = triples[old[triples[:, 0]] & old[triples[:, 2]]]
        return torch.stack([ids[triples[:, 0]], triples[:, 1], ids[triples[:, 2]]], dim=1)

    names = tuple(name for name, stays in zip(dataset.entities.names, old.tolist(), strict=True) if stays)
    rest = Dataset(
        dataset.name, Vocabulary("entity", names), dataset.relations,
        kept(dataset.train), kept(dataset.valid), kept(dataset.test),
    )  # fmt: skip
    facts = torch.cat([dataset.train, dataset.valid, dataset.test])
    facts = facts[~(old[facts[:, 0]] & old[facts[:, 2]])]
    facts = facts[torch.randperm(len(facts), generator=generator)]
    given, asked = facts.split([round(0.7 * len(facts)), len(facts) - round(0.7 * len(facts))])
    seen = old.clone()
    seen[given[:, [0, 2]].flatten()] = True
    return rest, given, asked[seen[asked[:, 0]] & seen[asked[:, 2]]]


def named(dataset: Dataset, triples: Tensor) -> list[tuple[str, str, str]]:
    """Return triples by name."""
    entities, relations = dataset.entities.names, dataset.relations.names
    return [(entities[h], relations[r], entities[t]) for h, r, t in triples.tolist()]


def mrr(run: Run, asked: list[tuple[str, str, str]]) -> dict[str, float]:
    """Rank what is asked, and the valid triples, among all that is not known."""
    dataset = run.dataset
    find, find_relation = dataset.entities.find, dataset.relations.find
    triples = torch.tensor(
        [(find(h), find_relation(r), find(t)) for h, r, t in asked], dtype=torch.long
    ).view(-1, 3)
    back = triples.flip(1) + torch.tensor([0, len(dataset.relations), 0])
    questions = torch.cat([triples, back])
    splits = [dataset.questions(split) for split in ("train", "valid", "test")]
    known = FilterIndex.of(torch.cat([questions, *splits]), dataset.n_relations_with_inverses)
    old = metrics(rank(run.scorer, dataset.questions("valid"), known).rank("bottom"))
    new = metrics(rank(run.scorer, questions, known).rank("bottom")) if asked else {}
    return {"mrr": new.get("mrr"), "hits@10": new.get("hits@10"), "old": old["mrr"]}


def drawn(run: Run, old: int) -> Run:
    """Return an added run with rows of random numbers for the entities from ``old`` on."""
    random, _ = begin(run.config, run.dataset)
    with torch.no_grad():
        for name in ("entity_scalar", "entity_vector"):
            run.model.get_parameter(name)[old:] = random.get_parameter(name)[old:]
    return run


def measured(name: str, args: argparse.Namespace, place: Path) -> Iterator[dict[str, Any]]:
    """Yield a line for each way to have the new entities."""
    whole = open_dataset(name)
    rest, given, asked = held_out(whole, args.share, args.seed)
    settings = {**SETTINGS.get(name, {}), "train.seed": args.seed, "train.device": "cpu"}
    said = {"data": name, "model": args.model, "seed": args.seed, "entities": len(rest.entities)}
    said |= {"new": len(whole.entities) - len(rest.entities), "given": len(given), "asked": len(asked)}
    facts, questions = named(whole, given), named(whole, asked)

    def line(how: str, make: Callable[[], Run], questions: list[tuple[str, str, str]]) -> dict[str, Any]:
        started = time.perf_counter()
        run = make()
        seconds = time.perf_counter() - started
        return {**said, "how": how, **mrr(run, questions), "seconds": round(seconds, 1)}

    yield line("before", lambda: train(rest, args.model, settings, place / "rest"), [])
    before = load(place / "rest")
    yield line("added", lambda: add(before, facts, place / "added"), questions)
    yield line("drawn", lambda: drawn(load(place / "added"), len(rest.entities)), questions)
    refreshed = place / "refreshed"
    yield line("refreshed", lambda: add(before, facts, refreshed, args.refresh), questions)
    larger = load(place / "added").dataset
    yield line("retrained", lambda: train(larger, args.model, settings, place / "anew"), questions)


def main() -> None:
    """Measure on each data set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+")
    parser.add_argument("--model", default="ModulE-HH")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--refresh", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for name in args.data:
        with tempfile.TemporaryDirectory() as place:
            for line in measured(name, args, Path(place)):
                lines.append(line)
                print(json.dumps(line), flush=True)
    print(f"{'data':10}{'how':12}{'MRR':>8}{'Hits@10':>9}{'old':>8}{'seconds':>9}")
    for row in lines:
        figures = "".join(
            f"{'' if row[key] is None else format(row[key], '.4f'):>{width}}"
            for key, width in (("mrr", 8), ("hits@10", 9), ("old", 8))
        )
        print(f"{row['data']:10}{row['how']:12}{figures}{row['seconds']:9.1f}")


if __name__ == "__main__":
    plainly(main)
