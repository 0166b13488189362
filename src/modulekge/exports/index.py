"""Nearest neighbours for link prediction: queries against an index of entities, scored by the model."""

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from modulekge.choices import FEW
from modulekge.data.benchmarks import Split
from modulekge.errors import ModulekgeError, QuestionError, RunError
from modulekge.exports.vectors import Vectors, entity_vectors, query_vectors
from modulekge.frames import Shown
from modulekge.installation import to_install
from modulekge.models.embedding import Embedding, Some
from modulekge.models.scorer import batch_size
from modulekge.run.checkpoint import weights_hash
from modulekge.run.files import read_json, write_file
from modulekge.run.run import Run
from modulekge.shapes import Ids, Queries
from modulekge.version import __version__

EXPANSION = 64
_ROWS = 1 << 13  # entities given to the index at a time
_NUMBERS = 1 << 24  # of candidates that are scored at a time


@dataclass(frozen=True, eq=False)
class Nearest:
    """The best answers found to each question, the best one first; where too few were, -1 and no score."""

    ids: Int[Tensor, "b k"]
    scores: Float[Tensor, "b k"]


@dataclass(frozen=True, eq=False, repr=False)
class EntityIndex(Shown):
    """An index (HNSW) of the entities of a run, asked with queries.

    It proposes ``expansion`` candidates for a question, and the model scores these exactly: scores are those
    of the model, but answers may be missed. More candidates miss fewer and take longer.

    >>> index = EntityIndex.build(run)  # doctest: +SKIP
    >>> index.search(heads, relations, k=10).ids  # relation + |R| asks for heads  # doctest: +SKIP
    """

    run: Run
    index: Any  # of usearch
    expansion: int = EXPANSION

    def _about(self) -> Mapping[str, object]:
        return {**self.run._about(), "expansion": self.expansion}

    @classmethod
    @torch.no_grad()
    def build(cls, run: Run, expansion: int = EXPANSION) -> "EntityIndex":
        """Index the entities of a run."""
        if expansion < 1:
            raise QuestionError(f"expansion = {expansion}: ask for at least one candidate")
        model, count = run.embedding, len(run.dataset.entities)
        length = _entity_points(model, slice(0, 1)).shape[1]
        index = _usearch().Index(
            ndim=length, metric=model.spec.score.search.metric, dtype="f32", expansion_search=1
        )
        for start in range(0, count, _ROWS):
            points = _entity_points(model, slice(start, start + _ROWS)).float().cpu()
            keys = torch.arange(start, start + len(points)).numpy()
            index.add(keys, points.numpy(), threads=torch.get_num_threads())
        return cls(run, index, expansion)

    def save(self, path: Path) -> None:
        """Write a new folder: the index, and which weights it is of."""
        path.mkdir()
        try:
            self.index.save(str(path / "entities.usearch"))
        except RuntimeError as error:  # that of a full disk too
            raise OSError(str(error)) from None
        model = self.run.embedding
        about = {
            "version": __version__,
            "model": model.spec.name,
            "dataset": self.run.dataset.name,
            "metric": model.spec.score.search.metric,
            "expansion": self.expansion,
            "weights": weights_hash(model),
        }
        write_file(path / "index.json", json.dumps(about, indent=1, ensure_ascii=False))

    @classmethod
    def load(cls, path: str | Path, run: Run) -> "EntityIndex":
        """Read the index of a run; one of other weights is refused."""
        path = Path(path)
        about = read_json(path / "index.json")
        again = f"build it anew: modulekge export {run.folder.path} NEW --to index"
        if about.get("weights") != weights_hash(run.embedding):
            raise RunError(f"{path}: not an index of the weights of {run.folder.path}; {again}")
        try:
            index = _usearch().Index.restore(str(path / "entities.usearch"))
        except (RuntimeError, ValueError) as error:
            raise RunError(f"{path / 'entities.usearch'}: cannot be read ({error}); {again}") from None
        if index is None or len(index) != len(run.dataset.entities):
            raise RunError(f"{path / 'entities.usearch'}: missing or incomplete; {again}")
        index.expansion_search = 1  # the number of candidates asked for decides
        return cls(run, index, int(about.get("expansion", EXPANSION)))

    @torch.no_grad()
    def search(self, heads: Ids, relations: Ids, k: int = FEW, expansion: int | None = None) -> Nearest:
        """Return the ``k`` best answers to each (head, relation, ?) among ``expansion`` candidates."""
        if k < 1 or len(heads) == 0:
            raise QuestionError(
                f"{len(heads)} questions, k = {k}: ask for at least one answer to one question"
            )
        k = min(k, len(self.run.dataset.entities))
        wide = min(max(k, expansion or self.expansion), len(self.run.dataset.entities))
        size = max(1, _NUMBERS // (wide * self.index.ndim))
        parts = [
            self._search(*some, k, wide)
            for some in zip(heads.split(size), relations.split(size), strict=True)
        ]
        return Nearest(torch.cat([part.ids for part in parts]), torch.cat([part.scores for part in parts]))

    def _search(self, heads: Ids, relations: Ids, k: int, wide: int) -> Nearest:
        model = self.run.embedding
        queries = model.queries(heads, relations)
        points = _query_points(model, queries).float().cpu().numpy()
        every = wide == len(self.index)  # not all need be linked, so these are not looked for link by link
        found = self.index.search(points, wide, threads=torch.get_num_threads(), exact=every)
        keys = torch.from_numpy(found.keys.astype("int64")).view(len(points), -1)
        # Of one question, only what was found comes back; of many, zeros after that
        counts = torch.as_tensor(found.counts) if len(points) > 1 else torch.tensor([keys.shape[1]])
        missing = (torch.arange(wide) >= counts[:, None]).to(heads.device)
        ids = pad(keys, (0, wide - keys.shape[1])).to(heads.device)
        scores = self.run.scorer.scores_of(heads, relations, ids).masked_fill(missing, -torch.inf)
        best = scores.topk(k)
        return Nearest(ids.masked_fill(missing, -1).gather(1, best.indices), best.values)

    @torch.no_grad()
    def exact(self, heads: Ids, relations: Ids, k: int = FEW) -> Nearest:
        """Return the ``k`` best answers to each question among all entities."""
        best = self.run.scorer.scores(heads, relations).topk(min(k, len(self.run.dataset.entities)))
        return Nearest(best.indices, best.values)

    def recall(self, k: int = FEW, expansion: int | None = None, split: Split = "valid") -> float:
        """Return the share of the ``k`` best answers to the questions of a split that a search finds."""
        self.run.dataset.check_split(split, "to measure recall on; name another")
        scorer = self.run.scorer
        questions = self.run.dataset.questions(split).to(scorer.device)
        shares, order = [], scorer.order(questions[:, 1])
        for some in questions[order].split(batch_size(scorer.n_entities, scorer.device)):
            heads, relations, _ = some.unbind(1)
            wanted = self.exact(heads, relations, k).ids
            found = self.search(heads, relations, k, expansion).ids
            shares.append((wanted[:, :, None] == found[:, None, :]).any(2).double().mean(1))
        return float(torch.cat(shares).mean())


def write_index(run: Run, path: Path, *, expansion: int = EXPANSION) -> str:
    """Build an index and save it; say what share of the exact answers it finds."""
    index = EntityIndex.build(run, expansion)
    index.save(path)
    built = f"{len(index.index):,} entities, metric {run.embedding.spec.score.search.metric}"
    if len(run.dataset.valid) == 0:
        return f"{built}; recall was not measured, for there is no valid split"
    share = index.recall(FEW, expansion)
    return f"{built}; recall@{FEW} {share:.4f} on the questions of valid with expansion {expansion}"


def _entity_points(model: Embedding, rows: Some) -> Vectors:
    """What is indexed: vectors of entities, in the form in which the score can be searched."""
    if model.spec.score.bilinear:
        return entity_vectors(model, rows)
    return model.spec.score.search.entities(model.entities(rows)).flatten(1)


def _query_points(model: Embedding, q: Queries) -> Vectors:
    """What is asked with: queries in the same form."""
    if model.spec.score.bilinear:
        return query_vectors(model, q)
    return model.spec.score.search.queries(q, model.score_weights).flatten(1)


def _usearch() -> Any:
    try:
        return importlib.import_module("usearch.index")
    except ImportError:
        raise ModulekgeError(f"an index needs usearch: {to_install('index')}") from None
