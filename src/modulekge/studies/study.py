"""A study: which cells it has, and how their figures compare with the paper's."""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from modulekge.data.benchmarks import Split, is_known, name_or_path
from modulekge.errors import DataError, unknown
from modulekge.evaluation.seeds import spread_over_seeds
from modulekge.models.spec import MODELS
from modulekge.run.recipes import find_recipe
from modulekge.studies.cell import Cell, Result, read_result
from modulekge.studies.paper import METRICS

VALID = "valid mrr"  # the best of the curve, by which the epoch was chosen
QUICK_DATASETS, QUICK_MODELS = ("UMLS", "Nations", "CoDEx-S"), ("ComplEx", "ModulE-HH", "Paths-DistMult")
_ROUNDING = 0.0005  # the paper prints three digits


@dataclass(frozen=True)
class Line:
    """One figure of a study: the paper's and ours."""

    dataset: str
    model: str
    what: str
    paper: float | None
    ours: tuple[float, ...]  # one per seed that has been run
    interval: tuple[float, float] | None  # over seeds, or over triples where there is one seed
    over: str
    trained: str  # the best of how many epochs, and seconds, from the least of a seed to the most
    made: str  # when, by which code, on what
    command: str

    @property
    def mean(self) -> float | None:
        """The mean over seeds, if any has been run."""
        return fmean(self.ours) if self.ours else None

    @property
    def verdict(self) -> str:
        """PASS where the mean reaches the paper's figure to its last digit."""
        if self.mean is None:
            return "not run"
        if self.paper is None:
            return ""
        return "PASS" if self.mean >= self.paper - _ROUNDING else "MISS"


Settings = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Change:
    """Settings laid over recipes: of every model and data set of a study, or of those named alone."""

    settings: Settings = ()
    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    split: Split = "test"  # "valid" where settings are compared, so that test is not seen

    def applies(self, dataset: str, model: str) -> bool:
        """Whether a model on a data set is trained so."""
        return (not self.models or model in self.models) and (not self.datasets or dataset in self.datasets)


@dataclass(frozen=True)
class Study:
    """A table or a figure, the paper's or beside the paper's: trainings, and the lines made of them."""

    name: str
    title: str
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    changes: tuple[Change, ...] = (Change(),)  # each is a training of every model it applies to
    metrics: tuple[str, ...] = METRICS
    paper: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    relations: bool = False
    ending: str = ""  # of the recipes' names; a model that has none on a data set is left out there
    recipes: dict[str, str] = field(default_factory=dict)  # of each data set, for all models alike
    matched: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)

    def cells(
        self, datasets: Sequence[str] = (), models: Sequence[str] = (), seeds: int = 1, quick: bool = False
    ) -> list[list[Cell]]:
        """Return the trainings, those that differ in the seed alone together.

        The quick ones are of small graphs, and of two models and their parts where the study is of many.
        """
        datasets = list(dict.fromkeys(map(_known_dataset, datasets)))
        chosen = tuple(dict.fromkeys(_known("model", m, self.models) for m in models)) or self.models
        if quick:
            datasets = datasets or QUICK_DATASETS
            chosen = chosen if models else tuple(m for m in chosen if (_base(m) or m) in QUICK_MODELS)
        cells = [
            [self._cell(dataset, model, change, seed) for seed in range(seeds)]
            for dataset in (datasets or self.datasets)
            for model in chosen
            for change in self.changes
            if change.applies(dataset, model)
            and (not self.ending or find_recipe(dataset, self._recipe(dataset, model)))
        ]
        if not cells:
            recipes = " or ".join(self._recipe(datasets[0], model) for model in chosen)
            raise DataError(
                f"study {self.name}: there is no recipe {recipes} of {', '.join(datasets)}; "
                f"it is of {', '.join(self.datasets)}, and not of every model there"
            )
        return cells

    def _recipe(self, dataset: str, model: str) -> str:
        return self.recipes.get(dataset) or (model + self.ending if self.ending else _base(model))

    def _cell(self, dataset: str, model: str, change: Change, seed: int) -> Cell:
        match = self.matched.get(model)
        settings = tuple(match(dict(change.settings)).items()) if match else change.settings
        recipe = self._recipe(dataset, model)
        return Cell(dataset, model, recipe, settings, seed, self._aliases(model), change.split)

    def _aliases(self, model: str) -> tuple[str, ...]:
        """Return the ablations here that are this one under another name."""
        ablations = [other for other in self.models if _base(other)]
        same = [other for other in ablations if MODELS[other].words() == MODELS[model].words()]
        return tuple(other for other in same if other != model) if model in ablations else ()

    def lines(
        self, cells: Iterable[list[Cell]], results: Path, now: Container[str] = frozenset()
    ) -> list[Line]:
        """Return every figure of these cells beside the paper's; ``now`` names the cells trained just now."""
        return [line for group in cells for line in self._group_lines(group, results, now)]

    def _group_lines(self, group: list[Cell], results: Path, now: Container[str]) -> list[Line]:
        first = group[0]
        found = [result for cell in group if (result := read_result(cell, results))]
        words = ", ".join(f"{key} = {value}" for key, value in first.settings)
        label = f"{first.label} ({words})" if words else first.label
        fresh = sum(result.cell in now for result in found)
        made = (f"{fresh} now: " if fresh < len(found) else "now: ") * bool(fresh) + made_by(found)
        trained, command = _trained(found), first.command

        def line(
            what: str, paper: float | None, values: list[float], single: tuple[float, float] | None
        ) -> Line:
            interval, over = _interval(values, single)
            return Line(
                first.dataset, label, what, paper, tuple(values), interval, over, trained, made, command
            )

        figures = self.paper.get((first.dataset, _published(first.model)), {})
        if self.relations:
            names = sorted({name for result in found for name in result.relations} | figures.keys())
            return [
                line(name, figures.get(name), [r.relations[name] for r in found if name in r.relations], None)
                for name in names or [""]
            ]
        metrics = self.metrics if first.split == "test" else (VALID,)
        return [
            line(m, None, [max(mrr for _, mrr in r.curve) for r in found], None)
            if m == VALID
            else line(m, figures.get(m), [r.both[m] for r in found], found[0].intervals[m] if found else None)
            for m in metrics
        ]


def _trained(found: list[Result]) -> str:
    if not found:
        return ""
    best = _span(result.best_epoch for result in found)
    epochs = _span(result.epochs for result in found)
    seconds = _span(round(result.train_seconds) for result in found)
    return f"{best} of {epochs}; {seconds} s"


def made_by(found: Iterable[Result]) -> str:
    """Say when results were made, by which commits of the code, and on what."""
    found = list(found)
    if not found:
        return ""
    commits = ", ".join(sorted({result.commit for result in found}))
    devices = " and ".join(sorted({result.device for result in found}))
    return f"{_span(result.date for result in found)}, {commits}, {devices}"


def _span(values: Iterable[Any]) -> str:
    """`least .. most`, or the one that all are: ten seeds take no more room than two."""
    found = sorted(set(values))
    return f"{found[0]} .. {found[-1]}" if len(found) > 1 else str(found[0])


def _interval(
    values: list[float], single: tuple[float, float] | None
) -> tuple[tuple[float, float] | None, str]:
    if len(values) < 2:
        return (tuple(single), "triples") if values and single else (None, "")  # type: ignore[return-value]
    return spread_over_seeds(values), f"{len(values)} seeds"


def _published(model: str) -> str:
    """Return under which name the paper has figures of a model: of vectors there are two interpretations."""
    return model.removesuffix("-xy").replace("-rotation", "-vector")


def _base(model: str) -> str:
    """An ablation is trained with the recipe of the model it is one of."""
    for ending in ("-scalar", "-vector", "-rotation"):
        if model.endswith(ending):
            return model.removesuffix(ending)
    return ""


def _known_dataset(name: str) -> str:
    known = name_or_path(name)
    if not is_known(known):
        raise DataError(
            f"{name}: a study is of data sets that are known by name, as 'modulekge data list' has them; "
            f"'modulekge train {name}' trains on it"
        )
    return known


def _known(kind: str, name: str, among: Sequence[str]) -> str:
    for other in among:
        if other.casefold() == name.casefold():
            return other
    raise unknown(f"{kind} of this study", name, among, f"it has {', '.join(among)}")


def curves(cells: Iterable[list[Cell]], results: Path) -> dict[Cell, Result]:
    """Return the results of the cells that have been run."""
    return {cell: found for group in cells for cell in group if (found := read_result(cell, results))}
