"""A layer of a model of paths on a GPU: messages, their sums, the update of states; and gradients."""

from dataclasses import dataclass

import torch
from torch import Tensor

from modulekge.kernels.messages_triton import Parts, add_gradients_, sums_of
from modulekge.kernels.path_update_triton import Update


@dataclass(frozen=True, eq=False)
class Shape:
    """What does not change from question to question, and has no gradient."""

    parts: Parts
    squares: bool  # whether deviations are taken, too
    counts: Tensor  # by which sums are divided, of each entity
    scale: Tensor  # of what arrives at each


class Layer(torch.autograd.Function):
    """New states of all entities; those that no path has reached are 0 and cost nothing."""

    @staticmethod
    def forward(ctx, x, g, query, *rest):  # noqa: D102
        weights, (heads, sending, shape) = rest[:5], rest[5:]
        sums = sums_of(x, g, query, heads, sending, shape.parts, shape.squares)
        flat = [total.flatten(2) for total in sums]
        update = Update(weights, shape.counts, shape.scale)
        ctx.save_for_backward(x, g, query, heads, *flat)
        ctx.update, ctx.sending, ctx.shape = update, sending, shape
        return update.states(x.flatten(2), flat, sending.arrived).view_as(x)

    @staticmethod
    def backward(ctx, dout):  # noqa: D102
        x, g, query, heads, *sums = ctx.saved_tensors
        sending, shape, dout = ctx.sending, ctx.shape, dout.contiguous().flatten(2)
        states, weights = ctx.update.gradients(dout, x.flatten(2), sums, sending.arrived)
        dx, ds, dq = (part.view_as(x) for part in states)
        dg = add_gradients_(dx, x, g, ds, dq, sending, shape.parts, shape.squares)
        each = torch.arange(len(heads), device=x.device)
        dquery = ds[heads, each]
        if shape.squares:
            dquery = dquery + 2 * query * dq[heads, each]
        return dx, dg.to(g.dtype), dquery.to(query.dtype), *weights, None, None, None
