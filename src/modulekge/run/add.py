"""New facts in a trained run: rows of what is new are found, rows of what is old stay bit for bit."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from modulekge.config import LEAST_RATE, Config, nested
from modulekge.data.addition import Addition, enlarge
from modulekge.data.batches import batches
from modulekge.data.readers.columns import named_columns
from modulekge.data.readers.tabular import Source, of_source
from modulekge.data.reading import read_facts
from modulekge.errors import ConfigError, RunError, TrainingError
from modulekge.models.embedding import Embedding
from modulekge.models.mixture import Mix
from modulekge.models.model import Model
from modulekge.models.paths import Paths
from modulekge.run.calibrate import scored_by, scored_with
from modulekge.run.checkpoint import new_model, paths_along, read_state
from modulekge.run.files import as_text
from modulekge.run.folder import RunFolder
from modulekge.run.lock import is_training
from modulekge.run.mix import fill_mixture
from modulekge.run.plan import check_settings
from modulekge.run.run import Run, load
from modulekge.run.train import continue_run
from modulekge.training.ema import MEAN
from modulekge.training.fold import Fold
from modulekge.training.optimizers import fresh_state, pick_device
from modulekge.training.plateau import PLATEAU
from modulekge.training.questions import Questions
from modulekge.training.records import EpochProgress, EpochRecord

_LARGE = 1 << 13  # entities, beyond which the mean that rows start from is near what a bilinear score wants
_LEAST_EPOCHS = 5
_STEPS, _RATE = 200, 0.05  # at least, and of Adagrad
_FEW_STEPS, _SMALL_RATE = 20, 0.03  # where little has to change
_MOST_SCORES, _LEAST_BATCH = 1 << 21, 32  # at once, so that a step on a large graph takes a moment


def add(
    run: Run | str | Path,
    data: Source,
    out: str | Path | None = None,
    refresh: int = 0,
    settings: Mapping[str, Any] | None = None,
    columns: str | Sequence[str | int] | None = None,
    labels: Source | None = None,
    descriptions: Source | None = None,
    header: bool | None = None,
) -> Run:
    """Add facts to a trained run and return the new run that has them; the old one is not changed.

    ``data`` is a file of triples, or any table, list or graph of them. Ids, rows and so scores of what was
    known stay, and what is new is fitted to them; ``refresh`` epochs then train all of it together. ``out``
    is the folder of the new run, None: beside the old one. ``settings`` are dotted keys of ``train``;
    ``data``, ``columns``, ``labels``, ``descriptions`` and ``header`` are those of
    :func:`modulekge.open_dataset`.

    >>> run = add("runs/demo", [("Atlantis", "borders", "Portugal")])  # doctest: +SKIP
    """
    source = run if isinstance(run, Run) else load(run)
    check_refresh(source, refresh)
    chosen = named_columns(columns)
    texts = of_source(labels), of_source(descriptions)
    given = Path(data) if isinstance(data, str) else data
    facts = read_facts(given, chosen, *texts, header, source.dataset)
    changes = [nested(key, value) for key, value in (settings or {}).items()]
    folder = fold_in(source, enlarge(source.dataset, facts), Path(out) if out else None, changes)
    for _ in train_on(folder, refresh):
        pass
    return load(folder.path)


def check_refresh(run: Run, epochs: int) -> None:
    """Refuse to train on what is not one model, or for less than no epochs."""
    if epochs < 0:
        raise ConfigError(f"refresh = {epochs}: expected a number of epochs, 0 for none")
    if epochs and run.mix:
        members = " and ".join(str(member.folder.path) for member in run.members)
        raise RunError(
            f"{run.folder.path}: a mixture is not trained; add to {members} with --refresh, each with an "
            "--out, then join what was made with 'modulekge mix'"
        )


def fold_in(
    run: Run, addition: Addition, out: Path | None = None, settings: Iterable[Mapping[str, Any]] = ()
) -> RunFolder:
    """Make a run of the enlarged graph in which what is new has rows that fit its facts."""
    if is_training(run.folder):
        raise RunError(f"{run.folder.path}: a process is training this run; wait for it")
    run.check_current()
    if out:
        RunFolder.check_free(out)
    origin = {
        "from": as_text(str(run.folder.path)),
        "fingerprint": addition.before.fingerprint,
        **addition.counts(),
    }
    if run.mix:
        return _fold_members(run, run.mix, addition, out, list(settings), origin)
    records = run.folder.records()
    last = {}
    if records:  # as its training ended
        last = {"train": {"lr": max(LEAST_RATE, records[-1].lr), "drop_after": 0}}
    config = run.folder.changed([last, *settings])
    check_settings(config)
    start = (
        _along_more(run, addition, config) if run.model.spec.along_paths else _fitted(run, addition, config)
    )
    create = partial(RunFolder.create, config=config, dataset=addition.after, start=start)
    folder = _created(run, out, partial(create, origin={"added": origin}))
    _keep_calibration(run, folder, addition, lambda: scored_with(start[0], config))
    return folder


def _created(run: Run, out: Path | None, create: Callable[[Path], RunFolder]) -> RunFolder:
    """Make a folder where it is asked for, or at the next free name."""
    while True:
        path = out or free_folder(run.folder.path)
        try:
            return create(path)
        except RunError:
            if out or not path.exists():
                raise


def _fold_members(
    run: Run,
    mix: Mix,
    addition: Addition,
    out: Path | None,
    settings: list[Mapping[str, Any]],
    origin: dict[str, Any],
) -> RunFolder:
    """Add to each member of a mixture in its own way, and mix them as before."""
    larger = mix.enlarged(addition.after.n_relations_with_inverses)
    with tempfile.TemporaryDirectory() as new:
        paths = [Path(new) / str(number) for number in range(len(run.members))]
        for member, path in zip(run.members, paths, strict=True):
            fold_in(member, addition, path, settings)
        fill = partial(fill_mixture, mix=larger, members=paths)
        create = partial(RunFolder.create, config=run.config, dataset=addition.after, fill=fill)
        folder = _created(run, out, partial(create, origin={"added": origin}))
    _keep_calibration(run, folder, addition, lambda: scored_by(load(folder.path)))
    return folder


def _fitted(run: Run, addition: Addition, config: Config) -> tuple[Model, dict[str, Tensor]]:
    """Return an embedding with rows for what is new, fitted to its facts, and its optimiser's memory."""
    model = _larger(run, addition)
    sums = _fold(model, run.embedding, addition, config) if addition.is_new(addition.facts).any() else {}
    return model, _memory(model, run, sums, config)


def _along_more(run: Run, addition: Addition, config: Config) -> tuple[Model, dict[str, Tensor]]:
    """Return a model of paths with the same weights on the larger graph: there is nothing to fit."""
    if new := addition.after.relations.names[len(addition.before.relations) :]:
        raise RunError(
            f"relation {new[0]!r} is new: {run.name} knows the relations it was trained with and no others; "
            "train a new run on all facts, or leave it out"
        )
    assert isinstance(run.model, Paths)
    model = paths_along(run.model, addition.after)
    return model, fresh_state(model, config.train)


def _keep_calibration(run: Run, folder: RunFolder, addition: Addition, scores: Callable[[], str]) -> None:
    """Keep the probabilities of a run whose old rows, and so the scores of what they answer, are the same.

    ``scores`` tells what makes the new ones.
    """
    found = run.folder.calibration()
    if found and found.fitted_to in ("", scored_by(run)):
        found = found.enlarged(len(run.dataset.relations), len(addition.after.relations))
        folder.save_calibration(replace(found, fitted_to=scores()))


def train_on(folder: RunFolder, epochs: int) -> Iterator[EpochProgress | EpochRecord]:
    """Train old and new together for some epochs, or not at all."""
    if epochs:
        yield from continue_run(folder, [nested("train.epochs", epochs)])


def free_folder(path: Path) -> Path:
    """Return the first of this folder's name with -2, -3, ... that does not exist."""
    path = path if path.name.strip(".") else path.resolve()
    names = (path.with_name(f"{path.name}-{i}") for i in range(2, 1000))
    return next(name for name in names if not name.exists())


@torch.no_grad()
def _larger(run: Run, addition: Addition) -> Embedding:
    """Return a model with the rows of the old one, where new relations are drawn and new entities average.

    A new entity starts as the mean, over its facts, of what answers the same relation elsewhere: there the
    mean entity is one more answer, so that a relation that nothing else has is answered by that one.
    """
    old, seed = run.embedding, torch.Generator().manual_seed(run.config.train.seed)
    model = new_model(run.config, addition.after)
    assert isinstance(model, Embedding)
    first, rows = len(addition.before.entities), len(model.relation_scaling)
    drawn = model.part(1, rows).draw(seed, run.config.model.scalar_scale, run.config.model.vector_scale)
    for table, values in zip(model.relation_tables, drawn.relation_tables, strict=True):
        table.copy_(values)
    for name, table in model.named_parameters():
        _place(table, old.get_parameter(name), name, old.tied)
    answers, facts = addition.answers
    with torch.sparse.check_sparse_tensor_invariants():  # to leave it open brings a warning
        for table in (table for table in (model.entity_scalar, model.entity_vector) if table.numel()):
            numbers = table.flatten(1)
            mean = numbers[:first].mean(0)
            usual = (answers @ numbers + mean) / (1 + answers.sum(1).to_dense()[:, None])
            start = (facts @ usual)[first:] / facts.sum(1).to_dense()[first:, None]
            table[first:] = start.view_as(table[first:])
    return model


def _place(whole: Tensor, part: Tensor, name: str, tied: bool) -> None:
    """Put the rows of a table where their ids are in a larger one; reciprocals follow all relations."""
    halves = 2 if name.startswith("relation") and not tied else 1
    for large, small in zip(whole.chunk(halves), part.chunk(halves), strict=True):
        large[: len(small)] = small


def _fold(model: Embedding, old: Embedding, addition: Addition, config: Config) -> dict[str, Tensor]:
    """Fit the rows of what is new by the run's own loss; return the sums of Adagrad, 0 in old rows.

    Every epoch asks all that is new and a sample of the rest, which says what new entities do not answer
    and weighs as much as all of it.
    """
    device = pick_device(config.train.device)
    model.to(device)
    questions = Questions.of(addition.after, config.loss, device)
    fresh = _asks_new(questions, addition, config)
    new, rest = fresh.nonzero()[:, 0], (~fresh).nonzero()[:, 0]
    size = min(config.train.batch, max(_LEAST_BATCH, _MOST_SCORES // len(addition.after.entities)))
    drawn = min(len(rest), max(len(new), size - len(new)))  # as many as are new, or as fill a batch
    count = len(new) + drawn
    large = model.spec.score.bilinear and len(addition.before.entities) > _LARGE
    steps, rate = (_FEW_STEPS, _SMALL_RATE) if large else (_STEPS, _RATE)
    epochs = max(_LEAST_EPOCHS, ceil(steps / ceil(count / size)))
    questions, config = _as_a_whole(questions, rest, drawn, config)
    fold = Fold(model, old, questions, config, rate)
    for epoch in range(1, epochs + 1):
        fold.begin(epoch)
        seed = config.train.seed
        some = np.random.default_rng([seed, epoch]).choice(len(rest), drawn, replace=False)
        rows = torch.cat([new, rest[torch.from_numpy(some).to(device)]])
        losses = [fold(rows[places]) for places in batches(count, size, seed, epoch, device)]
        if not isfinite(loss := float(sum(losses))):
            raise TrainingError(f"the loss of the new facts became {loss}; nothing was kept, train a new run")
    sums = fold.finish()
    model.to("cpu")
    return {name: total.cpu() for name, total in sums.items()}


def _as_a_whole(
    questions: Questions, rest: Int[Tensor, " old"], drawn: int, config: Config
) -> tuple[Questions, Config]:
    """Let the drawn questions weigh as much as all they are drawn from, and the regularizer with them."""
    even = torch.ones(len(questions.triples), device=rest.device)
    weights = even if questions.weights is None else questions.weights.clone()
    weights[rest] *= len(rest) / max(1, drawn)
    share = (len(weights) - len(rest) + drawn) / len(weights)
    return replace(questions, weights=weights), replace(
        config,
        loss=replace(config.loss, relation_prediction=share * config.loss.relation_prediction),
        regularizer=replace(config.regularizer, weight=share * config.regularizer.weight),
    )


def _asks_new(questions: Questions, addition: Addition, config: Config) -> Bool[Tensor, " m"]:
    """Which questions have something new in them, or among their answers."""
    if config.loss.targets == "one":
        return addition.is_new(questions.triples)
    heads, relations, _ = questions.triples.unbind(1)
    rows, tails = questions.known.of_questions(heads, relations)
    new = addition.is_new(torch.stack([heads[rows], relations[rows], tails], dim=1))
    return torch.zeros_like(heads, dtype=torch.bool).index_fill(0, rows[new], True)


def _memory(model: Embedding, run: Run, sums: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:
    """Return what an optimiser remembers: of old rows what the run's own did, if that was kept."""
    memory = fresh_state(model, config.train)
    if not run.folder.checkpoint.exists():
        return memory
    old = run.embedding
    for key, value in read_state(run.folder.checkpoint, old, config.train).items():
        name, _, quantity = key.rpartition(".")
        if quantity in (MEAN, PLATEAU):
            continue  # of weights that are left behind; the rate is what plateaus left of it
        memory[key] = value
        if value.dim():
            memory[key] = torch.zeros_like(model.get_parameter(name))
            _place(memory[key], value, name, old.tied)
        if quantity == "sum" and name in sums:
            memory[key] += sums[name]
    return memory
