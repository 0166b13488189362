"""A layer of a model of paths: new states of the old ones and of what arrived; and the scores of states."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from modulekge.shapes import Scores

_LEAST_VARIANCE = 1e-6
_MOST_REACHED = 0.7  # share of all states, up to which those that are reached are worked out alone
States = Float[Tensor, "v b size n"]  # of entities, for each question


def update(
    x: Float[Tensor, "*rows d"],
    sums: list[Float[Tensor, "*rows d"]],
    degrees: Float[Tensor, "*_rows 1"],
    summed: bool,
    log_degree: Float[Tensor, " 1"],
    aggregate: Float[Tensor, "three_d parts_d"],
    own: Float[Tensor, "d d"],
    bias: Float[Tensor, " d"],
    norm_weight: Float[Tensor, " d"],
    norm_bias: Float[Tensor, " d"],
) -> Float[Tensor, "*rows d"]:
    """Return the states after a layer, of the states before it and the sums of what arrived."""
    counts = 1.0 if summed else degrees
    mean = sums[0] / counts
    features = [mean]
    if len(sums) > 1:
        variance = sums[1] / counts - mean.square()
        features.append(variance.clamp(min=_LEAST_VARIANCE).sqrt())
    scale = (log_degree_of(degrees) / log_degree).to(x.dtype)
    m = F.linear(torch.cat(features, dim=-1).to(x.dtype), aggregate.to(x.dtype))
    first, more, less = m.chunk(3, dim=-1)
    y = first + scale * more + less / scale + F.linear(x, own.to(x.dtype), bias.to(x.dtype))
    y = F.layer_norm(y.float(), y.shape[-1:], norm_weight, norm_bias).relu()
    return (x + y).to(x.dtype)


def update_reached(x: States, sums: list[States], degrees: Float[Tensor, " v"], *rest: Any) -> States:
    """Return the same, worked out where a path has joined an entity and a question; elsewhere 0."""
    flat, totals = x.flatten(2).flatten(0, 1), [total.flatten(2).flatten(0, 1) for total in sums]
    degree = degrees.repeat_interleave(x.shape[1])[:, None]
    arrived = _arrived(flat, totals)
    rows = arrived[:, 0].nonzero()[:, 0]
    if len(rows) > _MOST_REACHED * len(flat):
        return (update(flat, totals, degree, *rest) * arrived).view_as(x)
    few = update(flat[rows], [total[rows] for total in totals], degree[rows], *rest)
    return torch.zeros_like(flat).index_copy(0, rows, few).view_as(x)


def _arrived(x: Float[Tensor, "*rows d"], sums: list[Float[Tensor, "*rows d"]]) -> Bool[Tensor, "*rows 1"]:
    """Say where a path has arrived: where a state, or the sum of what came in, is not 0."""
    largest = [y.detach().abs().amax(-1, keepdim=True) for y in (x, sums[0])]
    found: Tensor = (largest[0] != 0) | (largest[1] != 0)
    return found


def reached(x: States) -> Bool[Tensor, "b v"]:
    """Say which entities a path has joined to the head of each question: those whose state is not 0."""
    return (x.flatten(2) != 0).any(-1).T


def perceptron(
    x: States,
    query: Float[Tensor, "b hidden"],
    read: Float[Tensor, "hidden d"],
    write: Float[Tensor, "1 hidden"],
) -> Scores:
    """Return the scores of entities by their states, and by what the perceptron reads of the query."""
    hidden = (F.linear(x.flatten(2), read.to(x.dtype)) + query.to(x.dtype)).relu()
    return F.linear(hidden, write.to(x.dtype))[..., 0].float().T


def log_degree_of(degrees: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
    """Return the logarithm of degrees, by which what arrives is scaled."""
    return degrees.log() + 0.5
