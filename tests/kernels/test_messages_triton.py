"""Messages in Triton, here as Python: sums and gradients are those of plain PyTorch."""

import pytest
import torch

from modulekge.models.adjacency import Adjacency
from modulekge.models.messages import Message
from modulekge.models.spec import MODELS

pytestmark = pytest.mark.integration

pytest.importorskip("triton")
ENTITIES, RELATIONS, B, N = 9, 4, 2, 3


@pytest.fixture(scope="module")
def gpu(as_written):
    as_written("distance_triton")  # of which it uses one
    module = as_written("messages_triton")
    module.Pieces.of.__func__.__defaults__ = (4,)  # several to a list
    return module


def edges():
    """Random edges with a hub, that has more than a piece."""
    draw = torch.Generator().manual_seed(0)
    triples = torch.stack(
        [torch.randint(n, (40,), generator=draw) for n in (ENTITIES, RELATIONS, ENTITIES)], 1
    )
    triples[:18, 2] = 3
    triples[18:30, 0], triples[18:30, 1] = 5, 2
    return Adjacency.of(triples, ENTITIES, RELATIONS, False)


def plan_of(gpu, adjacency):
    """The plan of a graph."""
    source, relation = adjacency.source.rows.items, adjacency.relation.rows.items
    return gpu.Plan.of(
        source, relation, adjacency.target.rows, adjacency.target.columns, (ENTITIES, RELATIONS)
    )


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("row", ["DistMult", "ComplEx", "QuatE", "ModulE-RC", "ModulE-HH", "ModulE-HH-left"])
def test_sums_and_gradients(gpu, row, squares):
    message, adjacency = Message(MODELS[row]), edges()
    draw = torch.Generator().manual_seed(1)
    keep = torch.rand(adjacency.n_edges, generator=draw) > 0.2
    adjacency = adjacency.only(keep)
    active = (torch.rand(ENTITIES, generator=draw) > 0.3).float()
    x = torch.randn(ENTITIES, B, message.size, N, generator=draw) * active[:, None, None, None]
    numbers = torch.randn(RELATIONS, B, message.width, N, generator=draw)
    query = torch.randn(B, message.size, N, generator=draw)
    heads, each = torch.tensor([3, 0]), torch.arange(B)
    leaves = [t.requires_grad_() for t in (x, message.elements(numbers).detach(), query)]

    def plain(x, g, query):
        sources = (adjacency.source @ x.flatten(1)).view(-1, *x.shape[1:])
        moves = (adjacency.relation @ g.flatten(1)).view(-1, *g.shape[1:])
        messages = message.move(sources, moves)
        powers = [messages, messages.square()][: 1 + squares]
        sums = [(adjacency.target @ y.flatten(1)).view(-1, *x.shape[1:]) for y in powers]
        return [s.index_put((heads, each), query**i, True) for i, s in enumerate(sums, 1)]

    plan, (kept, kept_by_message) = plan_of(gpu, adjacency), adjacency.kept
    sent = kept * active[plan.source.long()]
    found = gpu.Sums.apply(*leaves, heads, plan, message.products, sent, kept_by_message, active, squares)
    expected = plain(*leaves)
    weights = [torch.randn(s.shape, generator=draw) for s in expected]
    gradients = [
        torch.autograd.grad(sum((w * s).sum() for w, s in zip(weights, sums, strict=True)), leaves)
        for sums in (found, expected)
    ]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    reached = active[:, None, None, None]  # elsewhere no gradient is needed
    for ours, theirs in zip(gradients[0], gradients[1], strict=True):
        scale = reached if ours.shape == x.shape else 1
        torch.testing.assert_close(ours * scale, theirs * scale, rtol=1e-4, atol=1e-4)
