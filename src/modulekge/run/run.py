"""A trained run: its graph, its settings, its model, and the scorer that answers with it."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from modulekge.config import Config
from modulekge.data.benchmarks import SPLITS, Split
from modulekge.data.dataset import Dataset
from modulekge.errors import RunError
from modulekge.evaluation import evaluate as ranking
from modulekge.evaluation.report import Report
from modulekge.frames import Shown
from modulekge.models.embedding import Embedding
from modulekge.models.mixture import Mix, Mixture, mixture_name
from modulekge.models.model import Model
from modulekge.models.paths import Paths
from modulekge.models.reranked import Reranked
from modulekge.models.scorer import Scorer
from modulekge.run.checkpoint import paths_along
from modulekge.run.folder import RunFolder
from modulekge.run.listing import figures_of
from modulekge.workers import ALONE, Workers

if TYPE_CHECKING:
    from modulekge.data.readers.tabular import Source
else:
    Source = Any  # whose module takes Arrow, and few runs do


@dataclass(frozen=True, eq=False, repr=False)
class Run(Shown):
    """A trained model with its graph and its settings."""

    folder: RunFolder
    config: Config
    dataset: Dataset
    model: Model
    state: tuple[int, ...] | None = None  # of the folder when it was read
    elsewhere: bool = False  # on another graph than the one it was trained on
    members: tuple["Run", ...] = ()  # of a mixture; its settings and its model are those of the first
    mix: Mix | None = None  # how much each of them counts

    def _about(self) -> Mapping[str, object]:
        graph, figures = self.dataset, {} if self.elsewhere else figures_of(self.folder)
        sizes = f"{len(graph.entities):,} entities, {len(graph.relations):,} relations"
        return {
            "model": self.name,
            "graph": f"{graph.name} ({sizes}, {sum(len(graph[split]) for split in SPLITS):,} triples)",
            "MRR": ", ".join(f"{mrr:.4f} on {split}" for split, mrr in figures.items()) or "not measured",
            "folder": self.folder.path,
        }

    @cached_property
    def scorer(self) -> Scorer:
        """What answers questions: the model as it was trained, reranked where the settings say so."""
        if self.mix:
            return Mixture([member.scorer for member in self.members], self.mix)
        plain, weights = self.model.scorer(), self.config.rerank
        if not weights.on:
            return plain
        offsets = self.folder.offsets(self.model, weights)
        return Reranked(plain, weights, self.dataset.questions("train"), offsets)

    @property
    def embedding(self) -> Embedding:
        """The model, where entities have vectors of their own; one of paths is refused.

        Of a mixture it is the first member that has them.
        """
        for run in (*self.members, self):
            if isinstance(run.model, Embedding):
                return run.model
        finding = f"{self.name} answers by paths and has no vectors of entities, which this is made of"
        raise RunError(f"{self.folder.path}: {finding}; train an embedding, such as ModulE-HH")

    @property
    def name(self) -> str:
        """What reports call the model."""
        if self.members:
            return mixture_name([member.name for member in self.members])
        return self.config.rerank.named(self.model.spec.name)

    def on(self, device: torch.device) -> "Run":
        """Return the run with its model moved to a device."""
        moved = tuple(member.on(device) for member in self.members)
        return replace(self, model=self.model.to(device), members=moved)

    def copied_to(self, device: torch.device) -> "Run":
        """Return the run with a copy of its model on a device; this one stays where it is."""
        copies = tuple(member.copied_to(device) for member in self.members)
        return replace(self, model=deepcopy(self.model).to(device), members=copies)

    def member(self, relation: int) -> "Run":
        """Return the member that counts most for a relation, in both directions; else the run itself."""
        if not self.mix:
            return self
        there, back = self.mix.shares.chunk(2)
        return self.members[int((there[relation] + back[relation]).argmax())]

    def along(self, graph: Dataset | Source) -> "Run":
        """Return the run on the facts of another graph whose relations it knows: nothing is trained.

        They are those of train of a data set, and all of what a file, a table, a list or a graph holds.

        >>> run.along([("Northport", "near", "Southport")])  # doctest: +SKIP
        """
        if not isinstance(self.model, Paths) or self.members:
            finding = f"{self.name} knows the entities it was trained with and no others"
            raise RunError(f"{self.folder.path}: {finding}; train a model of paths, such as --model Paths")
        if not isinstance(graph, Dataset):
            from modulekge.data.registry import open_facts  # which takes Arrow too

            graph = open_facts(graph, self.dataset)
        dataset = graph.with_relations(self.dataset.relations)
        return replace(self, dataset=dataset, model=paths_along(self.model, dataset), elsewhere=True)

    def check_current(self) -> None:
        """Refuse to keep what was found with settings or weights that are not in the folder any more."""
        if self.state not in (None, self.folder.state()):
            raise RunError(f"{self.folder.path}: has changed since it was read; load it and do this again")


def load(path: str | Path, workers: Workers = ALONE) -> Run:
    """Read a run folder; no data set is needed, and no code is run from it.

    Several processes leave the names of entities in their file.
    """
    folder = RunFolder.existing(Path(path))
    if folder.mixture_file.exists():
        return _load_mixture(folder)
    state, config, dataset = folder.state(), folder.config(), folder.dataset(names=workers.size == 1)
    return Run(folder, config, dataset, folder.model(config, dataset, workers), state)


def _load_mixture(folder: RunFolder) -> Run:
    """Read a mixture with its members; where there are several processes, each holds all of it."""
    state, config, dataset = folder.state(), folder.config(), folder.dataset()
    mix = folder.mix(dataset)
    members = tuple(_load_member(path, dataset) for path in folder.member_folders(len(mix.scales)))
    return Run(folder, config, dataset, members[0].model, state, members=members, mix=mix)


def _load_member(path: Path, dataset: Dataset) -> Run:
    """Read a run whose graph has been read already."""
    folder = RunFolder.existing(path)
    if folder.fingerprint() != dataset.fingerprint:
        raise RunError(f"{path}: of another graph than the mixture that it belongs to; mix its runs again")
    state, config = folder.state(), folder.config()
    return Run(folder, config, dataset, folder.model(config, dataset), state)


def evaluate(run: Run | str | Path, split: Split = "test", every: bool = False) -> Report:
    """Rank the questions of a split of the run's own graph; of a very large one a sample, or ``every`` one.

    >>> modulekge.evaluate("runs/demo", "valid").both["mrr"]  # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else load(run)
    return ranking.evaluate(run.scorer, run.dataset, split, triples=run.dataset[split] if every else None)
