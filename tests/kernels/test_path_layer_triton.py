"""Layers of paths in Triton, here as Python: states and gradients are those of plain PyTorch."""

import pytest
import torch

from modulekge.kernels import message_plan
from modulekge.models.adjacency import Adjacency
from modulekge.models.messages import Message
from modulekge.models.path_layers import update
from modulekge.models.spec import MODELS

pytestmark = pytest.mark.integration

pytest.importorskip("triton")
ENTITIES, RELATIONS, B, N = 9, 4, 2, 3


@pytest.fixture(scope="module")
def gpu(as_written):
    as_written("distance_triton")  # of which it uses one
    messages, updates = as_written("messages_triton"), as_written("path_update_triton")
    messages._BLOCK = 4
    updates._ROWS, updates._PROGRAMS = 16, 2
    return as_written("path_layer_triton")


@pytest.fixture
def short(monkeypatch):
    """Several pieces to a list."""
    for name, most in {"_PIECE": 4, "_RUN": 3, "_RUNS": 2}.items():
        monkeypatch.setattr(message_plan, name, most)


def edges():
    """Random edges with a hub, that has more than a piece."""
    draw = torch.Generator().manual_seed(0)
    triples = torch.stack(
        [torch.randint(n, (40,), generator=draw) for n in (ENTITIES, RELATIONS, ENTITIES)], 1
    )
    triples[:18, 2] = 3
    triples[18:30, 0], triples[18:30, 1] = 5, 2
    return Adjacency.of(triples, ENTITIES, RELATIONS, False)


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("row", ["DistMult", "ComplEx", "QuatE", "ModulE-RC", "ModulE-HH", "ModulE-HH-left"])
def test_states_and_gradients(gpu, short, row, squares):
    message, adjacency = Message(MODELS[row]), edges()
    draw = torch.Generator().manual_seed(1)
    keep = torch.rand(adjacency.n_edges, generator=draw) > 0.2
    adjacency = adjacency.only(keep)
    source, relation = adjacency.source.rows.items, adjacency.relation.rows.items
    counts = ENTITIES, RELATIONS
    plan = message_plan.Plan.of(source, relation, adjacency.target.columns, counts)
    heads, each = torch.tensor([3, 0]), torch.arange(B)
    active = (torch.rand(ENTITIES, generator=draw) > 0.5).float().index_fill(0, heads, 1.0)
    d = message.size * N

    def table(*shape):
        return torch.randn(shape, generator=draw)

    x = table(ENTITIES, B, message.size, N) * active[:, None, None, None]
    elements = message.elements(table(RELATIONS, B, message.width, N)).detach()
    weights = table(3 * d, (1 + squares) * d), table(d, d), table(d), table(d), table(d)
    leaves = [t.requires_grad_() for t in (x, elements, table(B, message.size, N), *weights)]
    degrees = adjacency.degrees + 1

    def plain(x, g, query, *weights):
        sources = (adjacency.source @ x.flatten(1)).view(-1, *x.shape[1:])
        moves = (adjacency.relation @ g.flatten(1)).view(-1, *g.shape[1:])
        messages = message.move(sources, moves)
        powers = [messages, messages.square()][: 1 + squares]
        sums = [(adjacency.target @ y.flatten(1)).view(-1, *x.shape[1:]) for y in powers]
        sums = [s.index_put((heads, each), query**i, True) for i, s in enumerate(sums, 1)]
        flat = x.flatten(2), [s.flatten(2) for s in sums]
        here = (flat[0].abs().amax(-1, keepdim=True) > 0) | (flat[1][0].abs().amax(-1, keepdim=True) > 0)
        return (update(*flat, degrees[:, None, None], False, torch.ones(1), *weights) * here).view_as(x)

    def by_kernels(*leaves):
        sending = message_plan.Sending.of(plan, adjacency.kept, active)
        shape = gpu.Shape(message.products, squares, degrees, degrees.log() + 0.5)
        return gpu.Layer.apply(*leaves, heads, sending, shape)

    found, expected = by_kernels(*leaves), plain(*leaves)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    weight = table(*expected.shape)
    ours, theirs = (torch.autograd.grad((weight * y).sum(), leaves) for y in (found, expected))
    scales = [active[:, None, None, None]] + [1.0] * 7  # of states that send nothing, no gradient is needed
    for one, other, scale in zip(ours, theirs, scales, strict=True):
        torch.testing.assert_close(one * scale, other * scale, rtol=1e-3, atol=1e-3)
