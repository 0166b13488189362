"""Type constraints: which entities a side of a relation can hold, by the kinds of those it holds in train."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import QuestionError
from modulekge.shapes import Ids

Types = Literal["any", "constrained"]
TYPE_NAMES = frozenset({"type", "hastype", "instanceof", "p31"})  # local names, without case and signs; not
# "isa", which joins classes: as types they keep 99.5 % of the valid answers of UMLS, and without all stay
_ODD = (
    0.1  # share of the observed answers that may be less like the others than what is asked of a candidate,
)
_LENIENCE = 0.5  # which is this part of what the rest reach; docs/probabilities.md has what both keep
_ROUNDING = 1 - 1e-9  # so that equal sums, added up in another order, stay equal


@dataclass(frozen=True, eq=False)
class TypeConstraints:
    r"""$A_r = F_r \cup \{e : s_r(e) \ge \tfrac12 q_r\}$: who answers in train, and who is like them.

    $F_r$ are the entities that answer relation $r$ in train. $s_r(e)$ is the mean of $|F_r \cap k| / |k|$
    over the kinds $k$ of an entity, and $q_r$ what nine of ten of $F_r$ reach; to answer $r$ itself counts
    for neither. The kinds of an entity are its types, where the graph has a relation that gives them, else
    the relations that it answers, reciprocal ones too. A relation without facts may have any answer; an
    entity in no training fact has no kind, and answers only those.
    """

    n_entities: int
    n_relations: int  # with inverses
    observed: Int[Tensor, "2 _answers"]  # (relation, entity), each pair once
    kinds: Int[Tensor, "2 _memberships"]  # (kind, entity); a kind is a relation, or n_relations + a type

    @classmethod
    def of(cls, dataset: Dataset, type_names: frozenset[str] = TYPE_NAMES) -> "TypeConstraints":
        """Learn them from train; relations of such local names give types."""
        n, given = dataset.n_relations_with_inverses, type_relations(dataset.relations, type_names)
        heads, relations, tails = dataset.questions("train").unbind(1)
        observed = _distinct(relations, tails, len(dataset.entities))
        typing = torch.isin(relations, torch.tensor(given, dtype=torch.long))
        types = _distinct(n + tails[typing], heads[typing], len(dataset.entities))
        untyped = ~torch.isin(observed[1], types[1])
        return cls(len(dataset.entities), n, observed, torch.cat([types, observed[:, untyped]], 1))

    def allowed(self, relation: int) -> Bool[Tensor, " e"]:
        """Say which entities may answer a relation; work and memory are those of all memberships."""
        answers = torch.zeros(self.n_entities, dtype=torch.bool)
        answers[self.observed[1, self.observed[0] == relation]] = True
        if not answers.any():
            return ~answers
        kinds, entities = self.kinds[:, self.kinds[0] != relation]
        sizes = kinds.bincount(minlength=self.n_relations + self.n_entities)
        shared = kinds[answers[entities]].bincount(minlength=len(sizes))
        shares = shared.double() / sizes.clamp(min=1)
        counts = entities.bincount(minlength=self.n_entities)
        alike = entities.bincount(shares[kinds], minlength=self.n_entities) / counts.clamp(min=1)
        reached = alike[answers & (counts > 0)].sort(descending=True).values
        if not len(reached):  # the observed answers are of no other kind: nobody else is like them
            return answers
        bar = _LENIENCE * reached[-1 - int(_ODD * len(reached))]
        allowed: Bool[Tensor, " e"] = answers | (alike >= _ROUNDING * bar)
        return allowed

    def mask(self, relations: Ids) -> Bool[Tensor, "b e"]:
        """Say which entities may answer the question of each row."""
        unique, rows = relations.unique(return_inverse=True)
        return torch.stack([self.allowed(r) for r in unique.tolist()]).to(relations.device)[rows]

    def fit(self, entities: Ids, relations: Ids) -> Bool[Tensor, " b"]:
        """Say of each entity whether it may answer the relation beside it."""
        found = torch.zeros(len(entities), dtype=torch.bool)
        for relation in relations.unique().tolist():
            rows = (relations == relation).cpu()
            found[rows] = self.allowed(relation)[entities.cpu()[rows]]
        return found.to(entities.device)

    def sides(self, relation: int) -> tuple[int, int]:
        """Return how many heads and how many tails a relation, not a reciprocal one, may have."""
        heads, tails = (int(self.allowed(r).sum()) for r in (relation + self.n_relations // 2, relation))
        return heads, tails


def _distinct(kinds: Ids, entities: Ids, n_entities: int) -> Int[Tensor, "2 _pairs"]:
    """Return each pair once."""
    keys = torch.unique(kinds * n_entities + entities)
    return torch.stack([keys // n_entities, keys % n_entities])


def type_relations(relations: Vocabulary, names: frozenset[str] = TYPE_NAMES) -> list[int]:
    """Return the relations that say of which type a head is, by the end of their name or label."""
    return [
        i
        for i, name in enumerate(relations.names)
        if not names.isdisjoint(map(_local, (name, relations.label(i))))
    ]


def _local(name: str) -> str:
    return re.sub(r"[\W_]", "", re.split("[/#:]", name)[-1]).casefold()


def check_types(types: Types, for_relations: bool = False) -> None:
    """Refuse a choice that there is not, or one for questions that it does not fit."""
    if types not in get_args(Types):
        raise QuestionError(f"types = {types!r}: expected {' or '.join(get_args(Types))}")
    if types == "constrained" and for_relations:
        raise QuestionError("type constraints are for heads and tails; ask for relations without them")
