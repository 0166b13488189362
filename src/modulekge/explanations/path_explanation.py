"""Why a model of paths scores a triple as it does: the paths it followed, and what their facts are worth."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from modulekge.data.dataset import Dataset
from modulekge.explanations.best_paths import WeightedPath, best_paths
from modulekge.explanations.edge_gradients import LayerGradients, TracedQuestion
from modulekge.explanations.standing import Standing, standings, tail_standing
from modulekge.explanations.values import CarriedPath, PathExplanation, Support, fact_of, facts_of
from modulekge.models.adjacency import Adjacency
from modulekge.models.paths import Paths
from modulekge.shapes import Triples


@dataclass(frozen=True, eq=False)
class PathQuestion:
    """A triple in the graph of a model, from which it is left out itself, as in training."""

    model: Paths
    triple: tuple[int, int, int]

    @cached_property
    def every_edge(self) -> Triples:
        """The edges of the graph, those that are left out too."""
        return self.model.adjacency.edges

    @cached_property
    def kept(self) -> Bool[Tensor, " edges"]:
        """Which edges are not left out."""
        adjacency, triple = self.model.adjacency, torch.tensor([self.triple])
        return adjacency.outside(adjacency.groups(*triple.unbind(1)))

    @cached_property
    def facts(self) -> Int[Tensor, " edges"]:
        """A number for the fact of each edge, the same in both directions."""
        half, n = self.model.n_relations // 2, self.model.n_entities
        u, p, v = self.every_edge.unbind(1)
        back = p >= half
        return (torch.where(back, v, u) * half + p % half) * n + torch.where(back, u, v)

    def named(self, fact: int) -> tuple[int, int, int]:
        """Return the triple of a fact by its number."""
        half, n = self.model.n_relations // 2, self.model.n_entities
        return fact // n // half, fact // n % half, fact % n

    @cached_property
    def traced(self) -> TracedQuestion:
        """The question itself, along the edges that are not left out."""
        return TracedQuestion(self.model, self.every_edge[self.kept], self.triple)

    def score(self, without: list[int]) -> float:
        """Return the score when these facts are left out, in both directions."""
        gone = torch.isin(self.facts[self.kept], torch.tensor(without, dtype=torch.long))
        return self.traced.score(gone.nonzero()[:, 0]) + self._prior(without)

    @torch.no_grad()
    def _prior(self, without: list[int]) -> float:
        """Return what speaks for the tail without any path."""
        if self.model.config.prior == "none":
            return 0.0
        _, relation, tail = self.triple
        scores = self.model.prior(torch.tensor([relation]), self._edges(without))
        return float(torch.as_tensor(scores)[0, tail])

    def model_without(self, facts: list[int]) -> Paths:
        """Return the model on the graph when these facts are left out, in both directions."""
        return self.model.along(self.model.n_entities, lambda: self._edges(facts))

    def _edges(self, without: list[int]) -> Adjacency:
        left = self.kept & ~torch.isin(self.facts, torch.tensor(without, dtype=torch.long))
        return self.model.adjacency if left.all() else self.model.adjacency.only(left)

    @cached_property
    def layers(self) -> list[LayerGradients]:
        """The gradients of the score by the edges, numbered as in :attr:`every_edge`."""
        numbers, found = self.kept.nonzero()[:, 0], self.traced.gradients
        return [LayerGradients(numbers[layer.edges], layer.gradients) for layer in found]

    @cached_property
    def gradients(self) -> Float[Tensor, " edges"]:
        """The gradients by the edges, all layers together."""
        total = torch.zeros(len(self.every_edge))
        for layer in self.layers:
            total.index_add_(0, layer.edges, layer.gradients)
        return total

    def paths(self, k: int) -> list[WeightedPath]:
        """Return the paths that carry most of the score."""
        (head, _, tail), n = self.triple, self.model.n_entities
        return best_paths(self.layers, self.every_edge, n, head, tail, k)

    def drops(self, paths: list[WeightedPath], most: int) -> dict[int, float]:
        """Return what the score loses without each fact of some paths, the greatest loss first.

        Of many facts those are tried of which the gradients promise most.
        """
        taken = torch.tensor([edge for path in paths for edge in path.edges], dtype=torch.long)
        facts = self.facts[taken].unique()
        hope = (
            torch.stack([self.gradients[self.facts == fact].sum() for fact in facts]) if len(facts) else facts
        )
        tried = facts[hope.argsort(descending=True)[:most]].tolist()
        whole = self.score([])
        lost = {fact: whole - self.score([fact]) for fact in tried}
        return dict(sorted(lost.items(), key=lambda item: -item[1]))


def explain_by_paths(model: Paths, dataset: Dataset, triple: tuple[int, int, int], k: int) -> PathExplanation:
    """Return what carried the score of a triple, at most ``k`` paths and facts."""
    dataset.check_facts()
    asked = PathQuestion(model, triple)
    there, back = standings(asked.model_without([]).scorer(), dataset, triple)
    paths = asked.paths(k)
    drops = asked.drops(paths, k)
    named = [fact for fact, drop in drops.items() if drop > 0][:k]
    raised = sum(drop for drop in drops.values() if drop > 0)
    followed = torch.cat([layer.edges for layer in asked.layers])
    return PathExplanation(
        fact_of(dataset, triple),
        dataset.split_of(triple),
        model.spec.name,
        tuple(fact_of(dataset, asked.named(fact)) for fact in asked.facts[~asked.kept].unique().tolist()),
        model.config.layers,
        len(asked.layers[-1].edges) > 0 or triple[0] == triple[2],
        there,
        back,
        tuple(_carried(dataset, asked, path) for path in paths),
        tuple(Support(fact_of(dataset, asked.named(f)), drops[f], drops[f] / raised) for f in named),
        len(drops),
        len(asked.facts[followed].unique()),
        _without(asked, dataset, named),
    )


def _carried(dataset: Dataset, asked: PathQuestion, path: WeightedPath) -> CarriedPath:
    walk = [(u, p, v) for u, p, v in asked.every_edge[list(path.edges)].tolist()]
    return CarriedPath(*facts_of(dataset, walk), path.weight)


def _without(asked: PathQuestion, dataset: Dataset, facts: list[int]) -> Standing | None:
    """Return how the tail stands when some facts are left out together."""
    if not facts:
        return None
    return tail_standing(asked.model_without(facts).scorer(), dataset, asked.triple)
