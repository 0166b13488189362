"""A real future: trained on one release of a distribution, compared with the next."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from modulekge.answers.predictor import Predictor
from modulekge.answers.triples import Named, NamedTriples
from modulekge.data.dataset import Dataset
from modulekge.data.registry import open_dataset
from modulekge.errors import DataError, RunError
from modulekge.evaluation.evaluate import rank
from modulekge.evaluation.metrics import bootstrap, metrics
from modulekge.json_io import typed
from modulekge.run.calibrate import calibrate
from modulekge.run.files import parse_json, write_file
from modulekge.run.plotting import markdown_table
from modulekge.run.provenance import source_commit
from modulekge.run.run import Run, load
from modulekge.run.train import train
from modulekge.shapes import Triples
from modulekge.studies.releases import (
    BUILT,
    LINKS,
    Predicted,
    Release,
    by_neighbours,
    by_popularity,
)
from modulekge.studies.steps import Step

MINUTES = 7.0  # for each of two trainings
# Studies by name: the releases that are learned from, and the one they are compared with
FUTURES = {
    "debian": ("bullseye", "bookworm", "trixie"),
    "debian-forky": ("bookworm", "trixie", "forky"),
}
GRAPHS = Path(".data/graphs")
SHARE = 10  # one source in so many is what runs are trained on
LOOKED_AT = (100, 1000)
PAGE = "# A real future\n\n" + "\n".join(f"<!-- {i} -->\n<!-- / -->\n" for i in range(4))
_SHOWN = 20  # of the first predictions
_SCORED = "common neighbours"  # whose numbers are no probabilities
_VALIDATED = 50  # triples by which a run of paths is watched
_MOST_QUESTIONS = 200  # about new packages


@dataclass(frozen=True)
class Came:
    """Of the ``k`` most probable: how many came true, as was stated, and how many names are still there."""

    k: int
    true: int
    stated: float | None  # the mean of the probabilities; None where scores are none
    there: int  # of a package and a name that the next release has


@dataclass(frozen=True)
class Way:
    """A way to predict, and what it gave; the first hundred with what became of them."""

    name: str
    came: tuple[Came, ...]
    first: tuple[tuple[float, str, str, str, bool], ...]


@dataclass(frozen=True)
class Ranked:
    """Filtered ranks of tails among all entities, with the interval over facts."""

    name: str
    facts: int
    entities: int
    mrr: float
    interval: tuple[float, float]
    hits_at_10: float


@dataclass(frozen=True)
class Future:
    """The study's result, and how it was made."""

    date: str
    commit: str
    device: str
    torch: str
    trained: dict[str, float]  # seconds of the epochs of each run
    releases: dict[str, dict[str, int]]
    added: dict[str, int]  # facts that the next release adds, by what they touch
    ways: tuple[Way, ...]
    ranked: tuple[Ranked, ...]

    @property
    def made(self) -> str:
        """When, by which code and on what."""
        return f"{self.date}, {self.commit}, {self.device}"


def read_releases(folder: Path, study: str) -> list[Release]:
    """Read the three releases of a study, or say what makes their files."""
    files = [folder / f"debian-{name}.tsv" for name in FUTURES[study]]
    for file in files:
        if not file.exists():
            raise DataError(f"{file}: is not there; 'python scripts/build_graphs.py {folder}' makes it")
    return [Release.read(file) for file in files]


def read_future(path: Path) -> Future | None:
    """Return the stored result, if there is one."""
    if not path.exists():
        return None
    try:
        return typed(Future, parse_json(path.read_text("utf-8")))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: not a result of this study ({error}); remove it to run it anew") from None


def write_future(found: Future, path: Path) -> None:
    """Keep a result as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(asdict(found), indent=1, ensure_ascii=False) + "\n")


def predict_future(releases: Iterable[Release], runs: Path, minutes: float) -> Future:
    """Predict the last of three releases from those before it, and look at it once."""
    first, old, following = releases
    part, later = old.part(SHARE), following.part(SHARE)
    run, paths = (
        trained(part, model, runs / f"debian-{old.name}-{model}", minutes) for model in ("ModulE-RC", "Paths")
    )
    ways = {
        "the step before": Step.between(first, old).predict(old),
        f"links of ModulE-RC, 1 source of {SHARE}": by_run(run),
        "most popular tails": by_popularity(old),
        _SCORED: by_neighbours(old),
    }
    return Future(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        commit=source_commit(),
        device="cpu" if run.scorer.device.type == "cpu" else torch.cuda.get_device_name(run.scorer.device),
        torch=torch.__version__,
        trained={
            each.config.model.name: round(sum((r.seconds for r in each.folder.records()), 0.0), 1)
            for each in (run, paths)
        },
        releases={
            r.name: {"packages": len(r.sources), "links": len(r.links)} for r in (first, old, following)
        },
        added={"between known": len(old.added_by(following)), "touching new": _touching_new(old, following)},
        ways=tuple(compared(name, found, following, name != _SCORED) for name, found in ways.items()),
        ranked=(*ranked_known(run, part, later), *ranked_new(paths, part, later)),
    )


def trained(release: Release, model: str, folder: Path, minutes: float) -> Run:
    """Train and calibrate a run on a release, or load the one that is there already."""
    if folder.exists():
        return load(folder)
    graph = graph_of(release)
    if model == "Paths":  # which takes long to validate
        graph = replace(graph, valid=graph.valid[:_VALIDATED])
    run = train(graph, model, out=folder, minutes=minutes)
    if model != "Paths":
        calibrate(run)
    return run


def graph_of(release: Release) -> Dataset:
    """A release as a graph whose facts are all for training, but for some to validate and calibrate on."""
    drawn = open_dataset(list(release.facts()))
    return replace(
        drawn, name=f"debian-{release.name}", train=torch.cat([drawn.train, drawn.test]), test=drawn.test[:0]
    )


def by_run(run: Run) -> Predicted:
    """The most probable new links of a calibrated run: what ``modulekge links`` prints."""
    found = Predictor(run).links([r for r in LINKS if r in run.dataset.relations.names], k=max(LOOKED_AT))
    return [(x.probability or 0.0, (x.head, x.relation, x.tail)) for x in found]


def compared(name: str, found: Predicted, following: Release, probable: bool = True) -> Way:
    """Count which of the best came true: a package or a name that is gone counts as not."""
    came = [link in following.links for _, link in found]
    there = [link[0] in following.sources and link[2] in following.names for _, link in found]
    return Way(
        name,
        tuple(
            Came(k, sum(came[:k]), _mean([p for p, _ in found[:k]]) if probable else None, sum(there[:k]))
            for k in LOOKED_AT
        ),
        tuple((round(p, 4), *link, y) for (p, link), y in zip(found[:100], came, strict=False)),
    )


def _mean(values: list[float]) -> float:
    return round(sum(values) / max(1, len(values)), 4)


def _touching_new(old: Release, following: Release) -> int:
    return sum(x[0] not in old.sources or x[2] not in old.names for x in following.links)


def tables(found: Future) -> list[str]:
    """The result as tables of Markdown, which a terminal shows as they are."""
    ways = [["predicted by", "of the first", "came true", "stated", "still there"]]
    ways += [
        [
            way.name,
            f"{c.k:,}",
            f"{c.true / c.k:.1%}",
            "" if c.stated is None else f"{c.stated:.1%}",
            f"{c.there:,}",
        ]
        for way in found.ways
        for c in way.came
    ]
    ranked = [["tails of facts", "facts", "entities", "MRR", "95 % interval", "Hits@10"]]
    ranked += [
        [
            *(r.name, f"{r.facts:,}", f"{r.entities:,}", f"{r.mrr:.3f}"),
            *(" .. ".join(f"{end:.3f}" for end in r.interval), f"{r.hits_at_10:.3f}"),
        ]
        for r in found.ranked
    ]
    first = [["stated", "package", "relation", "name", "came true"]]
    first += [[f"{p:.0%}", h, r, t, "yes" if y else "no"] for p, h, r, t, y in found.ways[0].first[:_SHOWN]]
    return [markdown_table(rows) for rows in (ways, ranked, first)]


def ranked_known(run: Run, old: Release, following: Release) -> list[Ranked]:
    """Rank the tails of the facts that were added between known entities, by a run and by popularity."""
    added = NamedTriples(list(old.added_by(following))).ids(run.dataset, "skip")
    return _ranked(run, replace(run.dataset, test=added), "added between known entities")


def ranked_new(paths: Run, old: Release, following: Release) -> list[Ranked]:
    """Rank half of the links of packages that are new; the other half is given to the graph, untrained."""
    graph = with_new(old, following)
    return _ranked(paths.along(graph), graph, "of new packages, half given")


def with_new(old: Release, following: Release) -> Dataset:
    """The next release as a graph: every second link of a package that is new is asked for, in test."""
    given: list[Named] = [(package, BUILT, source) for package, source in following.sources.items()]
    asked: list[Named] = []
    seen: Counter[str] = Counter()
    for link in following.links:
        seen[link[0]] += 1
        new = link[0] not in old.names
        (asked if new and seen[link[0]] % 2 == 0 else given).append(link)
    known = {name for head, _, tail in given for name in (head, tail)}
    asked = [link for link in asked if link[2] in known]
    asked = asked[:: max(1, -(-len(asked) // _MOST_QUESTIONS))]
    # a split in memory has all three
    return open_dataset({"train": given, "valid": asked[:1], "test": asked[1:]})


def _ranked(run: Run, dataset: Dataset, what: str) -> list[Ranked]:
    ranks = {
        run.config.model.name: rank(run.scorer, dataset.test, dataset.known).rank("bottom"),
        "most popular tails": popular_ranks(dataset),
    }
    return [
        Ranked(
            f"{what}: {name}",
            len(dataset.test),
            len(dataset.entities),
            metrics(found)["mrr"],
            bootstrap(found[None])["mrr"],
            metrics(found)["hits@10"],
        )
        for name, found in ranks.items()
    ]


def popular_ranks(dataset: Dataset) -> torch.Tensor:
    """The filtered ranks of test's tails, by how many facts of train have them with the relation."""
    shape = len(dataset.relations), len(dataset.entities)
    counts = torch.zeros(shape).index_put((dataset.train[:, 1], dataset.train[:, 2]), torch.ones(()), True)
    return torch.stack([_popular_rank(dataset, counts, triple) for triple in dataset.test.split(1)])


def _popular_rank(dataset: Dataset, counts: torch.Tensor, triple: Triples) -> torch.Tensor:
    relation, tail = triple[0, 1:].tolist()
    rivals = counts[relation] >= counts[relation, tail]
    _, known = dataset.known.of_questions(triple[:, 0], triple[:, 1])
    rivals[known] = False
    rivals[tail] = False
    return 1 + rivals.sum().double()


def written_into(page: str, found: Future) -> str:
    """Return a page with the tables of a result in the places that are marked for them."""
    said = [
        f"{len(found.ways)} ways, each scored on the next release once; {found.made}.",
        *tables(found),
    ]
    for i, text in enumerate(said):
        before, mark, rest = page.partition(f"<!-- {i} -->\n")
        _, end, after = rest.partition("<!-- / -->")
        page = f"{before}{mark}{text.strip()}\n{end}{after}"
    return page
