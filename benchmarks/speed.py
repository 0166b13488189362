"""Time of a step, an epoch and a ranking, and peak memory, for every row of Table 1 beside its floor.

    python benchmarks/speed.py                                  every row on UMLS, on what this machine has
    python benchmarks/speed.py --data WN18RR --batch 500 --reals 512 --precision tf32
    python benchmarks/speed.py --data FB15k-237 --batch 300 --reals 512 --rows ModulE-RC --peer

--reals is the length of an entity vector as it is scored; k follows from it for each row. --plain also
times each row with all scores kept and autograd through them. --peer also times ComplEx in PyTorch's own
parts and, where it is installed, PyKEEN's, with the same data, batch and length (peers.py).
The floor is the three products of matrices alone, measured here, plus each byte that must
move, at the rate at which this machine copies; distances, which are no product of matrices, have none.
The last line is JSON.
"""

import argparse
import json
from importlib.util import find_spec
from typing import Any

import torch
from measure import PlainStep, best_of, plainly, time_steps
from peers import measure_pykeen, measure_pytorch

from modulekge.algebra.parametrizations import UNIT_PARAMETRIZATIONS
from modulekge.config import Config
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.evaluation.evaluate import rank
from modulekge.models.spec import ModelSpec, named
from modulekge.models.table import TABLE_1
from modulekge.run.checkpoint import new_model
from modulekge.run.plan import resolve
from modulekge.training.optimizers import matmul_precision
from modulekge.training.questions import Questions
from modulekge.training.step import Step


def measure_row(
    spec: ModelSpec, dataset: Dataset, args: argparse.Namespace, kind: type[Step] = Step
) -> dict[str, Any]:
    """Step, epoch, ranking, memory and floor of one row."""
    device = torch.device(args.device)
    train = {"batch": args.batch, "precision": args.precision, "device": args.device, "epochs": 100}
    k = max(1, args.reals // (spec.query_size - (1 if spec.score.name in ("split", "weighted") else 0)))
    plain = {"kind": "softmax", "candidates": "all", "targets": "one"}
    plain |= dict.fromkeys(("smoothing", "relation_prediction", "degree_weight", "subsampling"), 0.0)
    fixed = {"optimizer": "adagrad", "dropout": 0.0}
    own = {"reciprocal": "own", "bias": False, "parametrization": args.parametrization}
    config = resolve(dataset, spec.name, [{"train": train | fixed, "loss": plain, "model": {"k": k} | own}])
    model = new_model(config, dataset)
    spec = model.spec
    model.draw(torch.Generator().manual_seed(0), config.model.scalar_scale, 1.0).to(device)
    questions = Questions.of(dataset, config.loss, device)
    timing = time_steps(model, questions, config, args.steps, kind=kind)
    if kind is PlainStep:
        return {
            "row": f"{spec.name} plain",
            "k": k,
            "step_ms": timing.step * 1e3,
            "peak_MiB": timing.peak / 2**20,
        }
    asked = dataset.questions("test")
    with matmul_precision(args.precision, device):
        ranking = best_of(lambda: rank(model.scorer(), asked, dataset.known), device, 2)
    return {
        "row": spec.name,
        "k": k,
        "step_ms": timing.step * 1e3,
        "floor_ms": floor(spec, dataset, config, device) * 1e3 if spec.score.name == "inner" else None,
        "epoch_s": timing.step * len(questions.triples) / args.batch,
        "setup_s": timing.setup,
        "ranking_s": ranking,
        "ranked_per_s": len(asked) / ranking,
        "peak_MiB": timing.peak / 2**20,
    }


def floor(spec: ModelSpec, dataset: Dataset, config: Config, device: torch.device) -> float:
    """Three products, and each byte once: tables and their memory, entities and gradients, scores."""
    b, e, reals = config.train.batch, -(-len(dataset.entities) // 64) * 64, spec.query_size * config.model.k
    half = config.train.precision == "bfloat16" and device.type == "cuda"
    kind, word = (torch.bfloat16, 2) if half else (torch.float32, 4)
    q, t, s = (torch.randn(*shape, device=device, dtype=kind) for shape in ((b, reals), (e, reals), (b, e)))
    with matmul_precision(config.train.precision, device):
        products = best_of(lambda: (q @ t.T, s @ t, s.T @ q), device)
    source = torch.empty(1 << 26, device=device)
    target = torch.empty_like(source)
    rate = 2 * source.numel() * 4 / best_of(lambda: target.copy_(source), device)
    numbers = sum(group.width for group in spec.entity_groups) * config.model.k * e
    moved = 4 * 5 * numbers + word * (4 * e * reals + 5 * b * e)  # update, build, entities, scores
    products_move = word * (3 * b * e + 3 * e * reals)  # what the products above moved already
    return products + max(0, moved - products_move) / rate


def show(row: dict[str, Any]) -> None:
    """Print a row of the table."""
    wanted = ("step_ms", "floor_ms", "epoch_s", "ranking_s", "ranked_per_s", "peak_MiB")
    cells = (f"{row[name]:12.3f}" if row.get(name) is not None else " " * 11 + "-" for name in wanted)
    print(f"{row['row']:24} {row['k']:5}", *cells, flush=True)


def main() -> None:
    """Measure the rows asked for, and the peer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="UMLS")
    parser.add_argument("--rows", nargs="*", default=[spec.name for spec in TABLE_1])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--reals", type=int, default=512)
    parser.add_argument("--precision", default="float32", choices=["float32", "tf32", "bfloat16"])
    parser.add_argument("--parametrization", default="normalised", choices=list(UNIT_PARAMETRIZATIONS))
    parser.add_argument("--steps", type=int, default=0, help="0: 200 on a GPU, 5 on a CPU")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--peer", action="store_true")
    args = parser.parse_args()
    args.steps = args.steps or (200 if args.device.startswith("cuda") else 5)
    dataset = open_dataset(args.data)
    print(f"{args.data}, batch {args.batch}, {args.reals} reals, {args.device}, {args.precision}")
    print(f"{'row':24} {'k':>5}" + "".join(f"{name:>13}" for name in
          ("step ms", "floor ms", "epoch s", "ranking s", "ranked/s", "peak MiB")))  # fmt: skip
    rows = []
    if args.peer:
        work = dataset, args.batch, args.reals, torch.device(args.device)
        rows += [measure_pytorch(*work, args.precision, args.steps, halves) for halves in (True, False)]
        rows += [measure_pykeen(*work, args.steps)] if find_spec("pykeen") else []
        for row in rows:
            show(row)
    for name in args.rows:
        for kind in (PlainStep, Step) if args.plain else (Step,):
            rows.append(measure_row(named(name), dataset, args, kind))
            show(rows[-1])
    print(json.dumps({**vars(args), "torch": torch.__version__, "measured": rows}))


if __name__ == "__main__":
    plainly(main)
