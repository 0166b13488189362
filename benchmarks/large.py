"""Exact training on a large graph for some seconds: questions a second, memory of each process, loss, MRR.

    modulekge data synth --entities 5e6 --relations 500 --triples 6e6 --out large
    python benchmarks/large.py large --k 64 --batch 4096 --seconds 120
    torchrun --nproc-per-node 2 benchmarks/large.py large --k 64 --batch 4096 --seconds 120

The last line is JSON. Batches are those of a first epoch, which need not come to its end.
"""

import argparse
import json
import resource
import time

import torch
from measure import plainly

from modulekge.config import make_config
from modulekge.data.batches import batches
from modulekge.data.registry import open_dataset
from modulekge.evaluation.evaluate import rank
from modulekge.evaluation.metrics import metrics
from modulekge.run.checkpoint import begin
from modulekge.training.optimizers import begin_epoch, state_tensors
from modulekge.training.questions import Questions
from modulekge.training.step import Step
from modulekge.workers import part, workers

_WARM = 8  # steps that are not timed


def mrr(model, dataset, count):
    """Return the filtered MRR of so many questions of valid."""
    questions = dataset.questions("valid")[:: max(1, 2 * len(dataset.valid) // count)]
    return metrics(rank(model.scorer(), questions, dataset.known).rank("bottom"))["mrr"]


def trained(args):
    """Train for some seconds and return what was measured."""
    started = time.perf_counter()
    dataset = open_dataset(args.graph)
    read = time.perf_counter() - started
    train = {"batch": args.batch, "precision": args.precision, "shards": args.shards}
    row = {"name": args.model, "k": args.k, "scalar_scale": 0.1}
    config = make_config([{"model": row, "loss": {"kind": args.loss}, "train": train}])
    model, optimizer = begin(config, dataset)
    device, group = model.entity_scalar.device, model.workers
    questions = Questions.of(dataset, config.loss, device)
    step = Step(model, questions, optimizer, config)
    before = mrr(model, dataset, args.ranked)
    begin_epoch(optimizer, config.train, 1)
    curve, done, timed, elapsed = [], 0, 0, 0.0
    step.begin(1)
    for i, rows in enumerate(batches(len(questions.triples), args.batch, 0, 1, device)):
        if i == _WARM:
            step.mean(1)
            clock, timed = time.perf_counter(), done
        step(rows)
        done += len(rows)
        if i >= _WARM and (i - _WARM) % args.look == args.look - 1:
            mean = step.mean(1) / (args.look * args.batch)
            curve.append((i + 1, round(mean, 4)))
            elapsed = time.perf_counter() - clock
            if group.all_min(elapsed < args.seconds) == 0:
                break
            step.begin(1)
        elif i == _WARM - 1:
            step.mean(1)
            step.begin(1)
    cuda = device.type == "cuda"
    tables = [
        *model.entity_tables,
        *(x for key, x in state_tensors(model, optimizer).items() if key.startswith("entity_")),
    ]
    own = {
        "tables_GiB": sum(x.numel() * x.element_size() for x in tables) / 2**30,
        "peak_GiB": torch.cuda.max_memory_allocated(device) / 2**30 if cuda else None,
        "rss_GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    each = group.total(
        torch.zeros(group.size, 3).index_put(
            (torch.tensor([group.rank]),), torch.tensor([[x or 0 for x in own.values()]])
        )
    )
    return {
        "model": args.model, "k": args.k, "batch": args.batch, "loss": args.loss, "precision": args.precision,
        "entities": len(dataset.entities), "triples": len(dataset.train), "processes": group.size,
        "shards": group.shards, "device": torch.cuda.get_device_name(device) if cuda else "cpu",
        "torch": torch.__version__, "read_s": read, "steps": i + 1, "questions": done,
        "questions_per_s": (done - timed) / elapsed, "step_ms": 1e3 * elapsed * args.batch / (done - timed),
        "curve": curve, "mrr": [before, mrr(model, dataset, args.ranked)],
        "processes_GiB": [dict(zip(own, row, strict=True)) for row in each.tolist()],
    }  # fmt: skip


def main() -> None:
    """Read what to train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graph", help="a folder or file of triples")
    parser.add_argument("--model", default="ModulE-HH")
    parser.add_argument("--k", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--loss", default="softmax", choices=["softmax", "logistic"])
    parser.add_argument("--precision", default="tf32", choices=["float32", "tf32", "bfloat16"])
    parser.add_argument("--shards", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--look", type=int, default=16, help="steps from one look at the loss to the next")
    parser.add_argument("--ranked", type=int, default=500, help="questions of valid that are ranked")
    found = trained(parser.parse_args())
    if workers().is_main:
        print(json.dumps(found))
    part()


if __name__ == "__main__":
    plainly(main)
