"""The numbers of a run on disk: a model at its best, and all that training goes on from."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.optim import Optimizer

from modulekge.config import Config, PathsConfig, RerankConfig, TrainConfig
from modulekge.data.dataset import Dataset, with_inverses
from modulekge.errors import ConfigError, RunError
from modulekge.models.adjacency import Adjacency
from modulekge.models.embedding import Embedding
from modulekge.models.model import Model
from modulekge.models.paths import Paths
from modulekge.models.reranked import Reranked
from modulekge.models.spec import spec_of
from modulekge.run.tensors import Part, read_tensors, write_tensors
from modulekge.training.ema import MEAN
from modulekge.training.finite import finite, not_finite
from modulekge.training.optimizers import WHOLE, fits, fresh_state, load_state, make_optimizer, pick_device
from modulekge.training.plateau import PLATEAU
from modulekge.workers import ALONE, Workers, workers

_MARKED = 100  # rows of a table at least, if it has so many
_DIGITS = 18  # of the number of an epoch at most
_OFFSET = "offset:"  # before the number of a relation
_STATE = "optimizer:"  # before the names of the optimiser's tensors in a checkpoint


def new_model(config: Config, dataset: Dataset, workers: Workers = ALONE) -> Model:
    """Return an undrawn model of the configured row for a graph."""
    if config.rerank.on and workers.shards > 1:
        raise ConfigError(
            "rerank: candidates are reranked where one process holds all entities; evaluate without "
            "torchrun or with train.shards = 1, or train without [rerank] and rerank the run after that"
        )
    spec, entities, relations = (
        spec_of(config.model),
        len(dataset.entities),
        dataset.n_relations_with_inverses,
    )
    if spec.along_paths:
        return Paths(spec, entities, relations, config.paths, _edges(dataset, config.paths), workers)
    tied = config.model.reciprocal == "tied"
    return Embedding(spec, entities, relations, config.model.k, tied, config.model.bias, workers)


def paths_along(model: Paths, dataset: Dataset) -> Paths:
    """Return the same weights on another graph with the same relations."""
    return model.along(len(dataset.entities), _edges(dataset, model.config))


def _edges(dataset: Dataset, config: PathsConfig) -> Callable[[], Adjacency]:
    """Return what makes edges of the facts of a graph, both ways; nothing else of it is held."""
    facts, whole_pairs = dataset.train, config.left_out == "pair"
    entities, relations = len(dataset.entities), len(dataset.relations)
    return lambda: Adjacency.of(with_inverses(facts, relations), entities, 2 * relations, whole_pairs)


def begin(config: Config, dataset: Dataset) -> tuple[Model, Optimizer]:
    """Return a model as drawn from its seed, on its device, and its optimiser."""
    shards = 1 if spec_of(config.model).along_paths else config.train.shards  # weights of paths are few
    model = new_model(config, dataset, workers(shards))
    seed = torch.Generator().manual_seed(config.train.seed)
    model.draw(seed, config.model.scalar_scale, config.model.vector_scale).to(
        pick_device(config.train.device)
    )
    return model, make_optimizer(model, config.train)


def write_weights(path: Path, model: Model, metadata: Mapping[str, str] | None = None) -> None:
    """Write the tables of a model; each process those of its rows."""
    write_tensors(path, _parts(model, model.state_dict()), metadata, model.workers)


def weights_hash(model: Model) -> str:
    """Return a short hash of a model: of its row, and of rows of each table."""
    digest = hashlib.sha256(repr(model.signature).encode())
    for name, weights in model.state_dict().items():
        rows = weights[:: max(1, len(weights) // _MARKED)].cpu().contiguous()
        digest.update(f"{name}{tuple(weights.shape)}".encode() + rows.numpy().tobytes())
    return digest.hexdigest()[:16]


def write_checkpoint(path: Path, model: Model, state: Mapping[str, Tensor], epoch: int) -> None:
    """Write the tables of a model and its optimiser's memory after an epoch."""
    memory = {_STATE + key: value for key, value in state.items()}
    tensors = _parts(model, {**model.state_dict(), **memory})
    write_tensors(path, tensors, {"epoch": str(epoch)}, model.workers)


def read_weights(path: Path, model: Model, average: bool) -> None:
    """Set a model to a file of weights or a checkpoint; of the latter, to its mean if that is asked for."""
    tensors, _ = read_tensors(path, _held(model))
    own = {name: value for name, value in tensors.items() if not name.startswith(_STATE)}
    if average:
        own = {name: tensors.get(f"{_STATE}{name}.{MEAN}", value) for name, value in own.items()}
    _load(model, own, path)


def read_checkpoint(path: Path, model: Model, optimizer: Optimizer) -> int:
    """Set a model and its optimiser to a checkpoint; return its epoch."""
    tensors, metadata = read_tensors(path, _held(model))
    state = _taken(tensors)
    _load(model, tensors, path)
    epoch = metadata.get("epoch", "")
    whole = epoch.isdecimal() and len(epoch) <= _DIGITS and load_state(model, optimizer, state)
    if not whole or not_finite(model, optimizer):
        raise _other(path)
    return int(epoch)


def read_state(path: Path, model: Model, config: TrainConfig) -> dict[str, Tensor]:
    """Return what the optimiser of a model remembers in a checkpoint."""
    tensors, _ = read_tensors(path)
    state = _taken(tensors)
    whole = all(finite(value) for key, value in state.items() if not key.endswith(PLATEAU))
    if not (whole and fits(model, state, fresh_state(model, config))):
        raise _other(path)
    return state


def _taken(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Take the optimiser's memory out of the tensors of a checkpoint."""
    return {key.removeprefix(_STATE): tensors.pop(key) for key in list(tensors) if key.startswith(_STATE)}


def _other(path: Path) -> RunError:
    return RunError(f"{path}: not a checkpoint of this run; train a new run")


def write_offsets(path: Path, scorer: Reranked, model: Model) -> None:
    """Write what reranking adds to the scores of candidates."""
    tensors = {f"{_OFFSET}{relation}": x for relation, x in scorer.offsets.items()}
    write_tensors(path, tensors, {"rerank": repr(scorer.weights), "weights": weights_hash(model)})


def read_offsets(path: Path, model: Model, weights: RerankConfig) -> dict[int, Tensor]:
    """Read what was written so, for the relations for which it was worked out with these weights."""
    try:
        tensors, metadata = read_tensors(path)
    except RunError:
        raise RunError(f"{path}: not a readable safetensors file; remove it, it is made anew") from None
    if metadata.get("rerank") != repr(weights) or metadata.get("weights") != weights_hash(model):
        return {}  # the settings were changed by hand, or a run was trained on meanwhile
    found = {}
    for key, offset in tensors.items():
        relation = key.removeprefix(_OFFSET)
        if not (relation.isdecimal() and offset.shape == (model.n_entities,) and finite(offset.float())):
            raise RunError(f"{path}: {key} is not of this run; remove the file, it is made anew")
        found[int(relation)] = offset
    return found


def _of_entities(key: str) -> bool:
    """Whether a tensor has a row for each entity."""
    owner, _, quantity = key.removeprefix(_STATE).partition(".")
    return owner.startswith("entity_") and quantity not in WHOLE


def _parts(model: Model, tensors: Mapping[str, Tensor]) -> dict[str, Tensor | Part]:
    """Return tensors with the place of their rows among those of all entities."""
    first, count = model.held.start, model.n_entities
    return {key: Part(x, first, count) if _of_entities(key) and len(x) else x for key, x in tensors.items()}


def _held(model: Model) -> Callable[[str, list[int]], slice | None]:
    """Return which rows of a tensor in a file are the model's: all, where processes hold none apart."""

    def rows(key: str, shape: list[int]) -> slice | None:
        whole = model.workers.shards == 1 or not _of_entities(key) or shape[:1] != [model.n_entities]
        return None if whole else model.held

    return rows


def _load(model: Model, tensors: dict[str, Tensor], path: Path) -> None:
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            raise RunError(
                f"{path}: {name} is {found.get(name, 'missing')}, config.toml makes it "
                f"{expected.get(name, 'absent')}; the two do not belong together"
            )
        if not (tensors[name].is_floating_point() and finite(tensors[name].float())):
            raise RunError(f"{path}: {name} has weights that are no numbers; train it anew")
    model.load_state_dict(tensors)
