"""Our rows against PyKEEN's models with the same weights: `make peers` installs it and runs this."""

import pytest
import torch
from pykeen.models import ComplEx, DistMult, QuatE, RotatE, TransE
from pykeen.triples import CoreTriplesFactory

from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS

ENTITIES, RELATIONS, K = 7, 3, 5
EVERY = torch.cartesian_prod(torch.arange(ENTITIES), torch.arange(RELATIONS), torch.arange(ENTITIES))


def factory() -> CoreTriplesFactory:
    triples = torch.tensor([(i % ENTITIES, i % RELATIONS, (3 * i + 1) % ENTITIES) for i in range(12)])
    return CoreTriplesFactory(triples, num_entities=ENTITIES, num_relations=RELATIONS)


def drawn(name: str) -> Embedding:
    model = Embedding(MODELS[name], ENTITIES, RELATIONS, K)
    return model.draw(torch.Generator().manual_seed(0), 1.0, 1.0)


def theirs(model: torch.nn.Module) -> torch.Tensor:
    """Scores of all triples, (heads, relations, tails)."""
    model.eval()
    with torch.no_grad():
        return model.score_hrt(EVERY).reshape(ENTITIES, RELATIONS, ENTITIES)


def ours(model: Embedding) -> torch.Tensor:
    heads, relations = EVERY[::ENTITIES, 0], EVERY[::ENTITIES, 1]
    with torch.no_grad():
        return model(heads, relations).reshape(ENTITIES, RELATIONS, ENTITIES)


def give(model: torch.nn.Module, entities: torch.Tensor, relations: torch.Tensor) -> None:
    """Copy weights into PyKEEN's embeddings, whatever they are stored as."""
    for where, values in (
        (model.entity_representations, entities),
        (model.relation_representations, relations),
    ):
        table = where[0]._embeddings.weight
        with torch.no_grad():
            table.copy_(values.reshape(table.shape))


def as_complex(x: torch.Tensor) -> torch.Tensor:
    """(rows, 2, n) -> (rows, 2 n) with real and imaginary parts side by side, as PyKEEN stores them."""
    return x.transpose(1, 2).reshape(len(x), -1)


def test_distmult():
    model, other = drawn("DistMult"), DistMult(triples_factory=factory(), embedding_dim=K)
    give(other, model.entities(), model.relation_scaling)
    torch.testing.assert_close(ours(model), theirs(other))


@pytest.mark.parametrize(("name", "p"), [("TransE", 1), ("TransE-L2", 2)])
def test_transe(name, p):
    model, other = drawn(name), TransE(triples_factory=factory(), embedding_dim=K, scoring_fct_norm=p)
    give(other, model.entities(), model.relation_scaling)
    torch.testing.assert_close(ours(model), theirs(other), atol=1e-5, rtol=1e-4)


def test_complex():
    model, other = drawn("ComplEx"), ComplEx(triples_factory=factory(), embedding_dim=K)
    give(other, as_complex(model.entities()), as_complex(model.relation_scaling))
    torch.testing.assert_close(ours(model), theirs(other))


@pytest.mark.parametrize("name", ["RotatE", "RotatE-xy"])
def test_rotate(name):
    """PyKEEN takes the norm over all complex differences; their moduli are summed in RotatE's own code.

    So the two agree block by block: with one block they are one model.
    """
    model = Embedding(MODELS[name], ENTITIES, RELATIONS, 1).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
    other = RotatE(triples_factory=factory(), embedding_dim=1)
    action = model.spec.rotation if name == "RotatE" else model.spec.scaling
    turns = action.group.point(model.relation_rotation if name == "RotatE" else model.relation_scaling)
    give(other, as_complex(model.entities()), as_complex(turns))
    torch.testing.assert_close(ours(model), theirs(other), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["QuatE", "QuatE-xy"])
def test_quate(name):
    """PyKEEN 1.11.1 scores QuatE by *minus* the inner product of its paper; but for that sign they agree."""
    model, other = drawn(name), QuatE(triples_factory=factory(), embedding_dim=K)
    action = model.spec.rotation if name == "QuatE" else model.spec.scaling
    turns = action.group.point(model.relation_rotation if name == "QuatE" else model.relation_scaling)
    give(other, model.entities().transpose(1, 2), turns.transpose(1, 2))
    torch.testing.assert_close(ours(model), -theirs(other))
