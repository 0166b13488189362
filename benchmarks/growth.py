"""How the time of a step and its memory grow with entities, dimension and batch, exact and plain.

    python benchmarks/growth.py --device cuda
    python benchmarks/growth.py --entities 5e6 --k 64 --batch 4096 --device cuda

ModulE-HH on random triples. "plain" keeps all scores of a batch, as autograd does without the exact loss
of this library; where it does not fit, the table says so. The last line is JSON.
"""

import argparse
import json
from typing import Any

import torch
from measure import PlainStep, random_questions, time_steps

from modulekge.config import make_config
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS
from modulekge.training.step import Step


def measure(entities: int, k: int, batch: int, plain: bool, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of a step and peak memory."""
    device = torch.device(args.device)
    settings = {"batch": batch, "precision": args.precision, "epochs": 1000, "device": args.device}
    config = make_config([{"train": settings, "regularizer": {"weight": 0.01}}])
    found: dict[str, Any] = {
        "entities": entities,
        "k": k,
        "batch": batch,
        "how": "plain" if plain else "exact",
    }
    try:
        model = Embedding(MODELS["ModulE-HH"], entities, 100, k).to(device)
        for table in model.parameters():
            torch.nn.init.normal_(table)
        questions = random_questions(entities, 100, batch * 8, device)
        timing = time_steps(model, questions, config, args.steps, 2, PlainStep if plain else Step)
        found |= {"step_ms": timing.step * 1e3, "triples_per_s": batch / timing.step / 2}
        found |= {"peak_GiB": timing.peak / 2**30, "setup_s": timing.setup}
    except torch.OutOfMemoryError:
        found["step_ms"] = None
    finally:
        model = questions = None
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return found


def main() -> None:
    """Vary one thing at a time, or measure one size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--entities", type=float)
    parser.add_argument("--k", type=int, default=64)
    parser.add_argument("--batch", type=int, default=500)
    args = parser.parse_args()
    sizes = [(int(args.entities), args.k, args.batch)] if args.entities else [
        *((int(e), args.k, args.batch) for e in (1e4, 1e5, 1e6, 5e6)),
        *((100_000, k, args.batch) for k in (16, 128, 256)),
        *((100_000, args.k, batch) for batch in (125, 2000, 8000)),
    ]  # fmt: skip
    rows = []
    for size in sizes:
        for plain in (False, True):
            rows.append(measure(*size, plain, args))
            row = rows[-1]
            cells = f"{row['entities']:9,} entities  k {row['k']:4}  batch {row['batch']:5}  {row['how']}"
            if row["step_ms"] is None:
                print(f"{cells}  does not fit", flush=True)
                continue
            speed = f"{row['step_ms']:10.2f} ms/step {row['triples_per_s']:12,.0f} triples/s"
            print(f"{cells} {speed} {row['peak_GiB']:8.2f} GiB", flush=True)
    print(json.dumps({**vars(args), "torch": torch.__version__, "measured": rows}))


if __name__ == "__main__":
    main()
