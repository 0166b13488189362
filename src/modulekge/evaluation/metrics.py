"""What a set of ranks amounts to, and how far chance alone would move it."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

HITS = (1, 3, 10)
NAMES = ("mrr", *(f"hits@{k}" for k in HITS), "mr")
_CHUNK = 64  # resamples drawn at a time, to bound memory


def per_question(ranks: Float[Tensor, " b"]) -> Float[Tensor, "b metrics"]:
    r"""$1/r$, $[r \le K]$ for each K, and $r$: one column per metric, whose mean is the metric."""
    return torch.stack([1 / ranks, *((ranks <= k).double() for k in HITS), ranks], dim=1)


def metrics(ranks: Float[Tensor, " b"]) -> dict[str, float]:
    """Return MRR, Hits@K and the mean rank; NaN where nothing was ranked."""
    return dict(zip(NAMES, per_question(ranks).mean(0).tolist(), strict=True))


def bootstrap(
    ranks: Float[Tensor, "sides m"], seed: int = 0, resamples: int = 1000, level: float = 0.95
) -> dict[str, tuple[float, float]]:
    """Return a percentile interval of each metric, resampling triples, each with all its sides.

    The two questions of a triple are not independent, so they are drawn together.
    """
    sides, m = ranks.shape
    columns = per_question(ranks.flatten()).reshape(sides, m, -1).mean(0)
    generator = Generator().manual_seed(seed)
    means = []
    for start in range(0, resamples, _CHUNK):
        size = (min(_CHUNK, resamples - start), m)
        draw = torch.randint(m, size, generator=generator)
        draw += m * torch.arange(len(draw))[:, None]
        weights = torch.bincount(draw.flatten(), minlength=len(draw) * m).reshape(len(draw), m)
        means.append(weights.double() @ columns / m)
    tail = (1 - level) / 2
    low, high = torch.cat(means).quantile(torch.tensor([tail, 1 - tail], dtype=torch.float64), dim=0)
    return {n: (a, b) for n, a, b in zip(NAMES, low.tolist(), high.tolist(), strict=True)}
