"""Whole epochs of a recipe on a random graph of any size: seconds, loss, valid MRR and peak memory.

    python benchmarks/epoch.py recipes/YAGO3-10/ModulE-HH.toml \\
        --entities 123182 --relations 37 --triples 1079040

For a benchmark whose files are not at hand. There is nothing to learn in random triples, so the MRR only
shows that ranking ran. The last line is JSON.
"""

import argparse
import json
from pathlib import Path

import torch
from measure import plainly

from modulekge.config import Config, make_config, read_config
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.run.checkpoint import begin
from modulekge.training.fit import fit
from modulekge.training.records import EpochRecord


def random_graph(entities: int, relations: int, triples: int, held: int) -> Dataset:
    """Triples drawn evenly, with so many each for valid and test."""
    sizes = torch.tensor([entities, relations, entities])
    drawn = torch.rand(triples + 2 * held, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    train, valid, test = (drawn * sizes).long().split([triples, held, held])
    names = [tuple(map(str, range(count))) for count in (entities, relations)]
    return Dataset(
        "random", Vocabulary("entity", names[0]), Vocabulary("relation", names[1]), train, valid, test
    )


def run(dataset: Dataset, config: Config) -> None:
    """Train and print a line for each epoch, then everything as JSON."""
    model, optimizer = begin(config, dataset)
    device = model.entity_scalar.device
    records = []
    for event in fit(model, dataset, optimizer, config):
        if isinstance(event, EpochRecord):
            records.append(vars(event))
            print(f"epoch {event.epoch}: {event.seconds:.2f} s, {event.triples_per_second:,.0f} triples/s, "
                  f"loss {event.loss:.4f}", flush=True)  # fmt: skip
    cuda = device.type == "cuda"
    found = {
        "model": config.model.name,
        "k": config.model.k,
        "batch": config.train.batch,
        "entities": len(dataset.entities),
        "relations": len(dataset.relations),
        "triples": len(dataset.train),
        "device": torch.cuda.get_device_name(device) if cuda else "cpu",
        "torch": torch.__version__,
        "peak_GiB": torch.cuda.max_memory_allocated(device) / 2**30 if cuda else None,
        "epochs": records,
    }
    print(json.dumps(found))


def main() -> None:
    """Read the recipe and the size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--entities", type=int, required=True)
    parser.add_argument("--relations", type=int, required=True)
    parser.add_argument("--triples", type=int, required=True)
    parser.add_argument("--held", type=int, default=5000, help="triples of valid")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--precision", default="tf32", choices=["float32", "tf32", "bfloat16"])
    args = parser.parse_args()
    train = {"epochs": args.epochs, "eval_every": args.epochs, "patience": 0, "precision": args.precision}
    config = make_config([read_config(args.recipe), {"train": train}], str(args.recipe))
    run(random_graph(args.entities, args.relations, args.triples, args.held), config)


if __name__ == "__main__":
    plainly(main)
