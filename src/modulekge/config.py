"""Settings: strict TOML into frozen dataclasses, and back."""

import dataclasses
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints

from modulekge.errors import ConfigError
from modulekge.json_io import checked
from modulekge.suggest import nearest

LEAST_RATE = 1e-9
# Numbers with their least and their most
Rate = Annotated[float, 0, 1e6]
Weight = Annotated[float, 0, 1e3]
Share = Annotated[float, 0, 1]
Count = Annotated[int, 0, 1_000_000]


@dataclass(frozen=True)
class ModelConfig:
    """Which row, at which size, started how. Words left empty are the named row's."""

    name: str = "ModulE-HH"  # of a row of the table, or of one of your own
    k: Annotated[int, 1, 1 << 20] = 128  # blocks: the paper's embedding multiplier
    parametrization: Literal["normalised", "exponential", "angles"] = "normalised"  # of unit elements
    reciprocal: Literal["own", "tied"] = "own"  # heads are asked for with relations of their own, or adjoints
    scalar_scale: Annotated[float, 1e-12, 1e6] = 1e-3  # standard deviation of free scalars at the start
    vector_scale: Annotated[float, 1e-6, 1e6] = 1.0  # of numbers that parametrize unit elements, likewise
    bias: bool = False  # each entity adds a learned number to its scores
    score_weights: tuple[float, ...] = ()  # where the learned weights of a score start; empty: at its own
    scalar: str = ""  # S of a row of your own
    vector: str = ""  # its V
    scaling: str = ""  # its T_S
    rotation: str = ""  # its T_V
    score: str = ""  # how what was moved is compared with the tail


@dataclass(frozen=True)
class LossConfig:
    """What is minimised: over which candidates, with which answers, how weighted."""

    kind: Literal["softmax", "logistic", "self-adversarial"] = "softmax"  # of the loss
    candidates: Literal["all", "sampled", "shared"] = "all"  # entities, or negatives per question or batch
    negatives: Annotated[int, 1, 1 << 20] = 256  # how many are sampled; those known to be true are left out
    targets: Literal["one", "all"] = "one"  # a triple's tail, or all known tails of (head, relation): KvsAll
    smoothing: Annotated[float, 0, 0.999] = 0.0  # this share of the target is spread over all entities
    degree_weight: Share = 0.0  # a in the weight 1 - a + a deg(t) / max deg of a question with answer t
    subsampling: Share = 0.0  # a in the weight count^-a of a question whose head or answer occurs so often
    margin: Weight = 0.0  # gamma, added to scores by the self-adversarial loss
    temperature: Weight = 1.0  # alpha, by which it sharpens the weights of negatives
    relation_prediction: Weight = 0.0  # weight of predicting the relation from head and tail


@dataclass(frozen=True)
class RegularizerConfig:
    r"""$\lambda (\lambda_1 G(h) + \lambda_2 G(r) + \lambda_3 G(t) + \mu (G(hr) + G(tr)))$, averaged.

    N3 is p = 3 and F2 p = 2 with equal rates; DURA is p = 2, relation = 0, moved = head = tail.
    """

    weight: Rate = 0.05  # lambda, of all of it
    head: Rate = 2.0  # lambda_1
    relation: Rate = 0.5  # lambda_2
    tail: Rate = 2.0  # lambda_3
    moved: Rate = 0.0  # mu, of heads and tails that a relation has moved
    p: Annotated[int, 2, 6] = 3  # the power, or the root
    form: Literal["power", "rooted", "G"] = "power"  # G: sum |x|^p, its p-th root, or the paper's formula


@dataclass(frozen=True)
class PathsConfig:
    """How messages go along paths, for a model whose name starts with Paths."""

    layers: Annotated[int, 1, 64] = 6  # edges of the longest path
    d: Annotated[int, 1, 1 << 16] = 32  # numbers of a state
    aggregation: Literal["mean-std", "mean", "sum"] = "mean-std"  # of the messages that arrive
    prior: Literal["none", "relations"] = "none"  # of a candidate: also by the relations that arrive at it
    left_out: Literal["triple", "pair"] = (
        "triple"  # while it is asked for: the triple, or all between its ends
    )
    dropout: Annotated[float, 0, 0.99] = 0.0  # share of the edges that a step leaves out


@dataclass(frozen=True)
class RerankConfig:
    """How candidates of a trained model are reranked: what is added to a candidate's score."""

    inverse: Weight = 0.0  # weight of the head's score as an answer to the candidate's inverse question
    hubness: Weight = 0.0  # weight, subtracted, of the best score that any entity has as an answer to that
    prior: Weight = 0.0  # weight of the log of 1 + how often the candidate answers the relation in train

    @property
    def on(self) -> bool:
        """Whether anything is added."""
        return max(self.inverse, self.hubness, self.prior) > 0

    def named(self, model: str) -> str:
        """Return the name of a model that is reranked so."""
        return f"{model}, reranked" if self.on else model


@dataclass(frozen=True)
class TrainConfig:
    """How it is minimised, on what, and when to stop."""

    epochs: Annotated[int, 1, 1_000_000] = 100  # at most
    parts: Annotated[int, 1, 1_000_000] = 1  # epochs that make one pass over the questions
    batch: Annotated[int, 1, 1 << 24] = 500  # questions of a step
    optimizer: Literal["adagrad", "adam"] = "adagrad"  # PyTorch's
    lr: Annotated[float, LEAST_RATE, 1e3] = 0.1  # the learning rate
    beta2: Annotated[float, 0, 0.99999] = 0.999  # by which Adam's mean of squares fades
    schedule: Literal["constant", "cosine"] = "constant"  # of the rate over all epochs
    warmup: Share = 0.0  # share of the training over which the rate rises to its full height
    decay: Annotated[float, 1e-3, 1] = 1.0  # the learning rate is multiplied by this after each epoch
    drop_after: Count = 0  # after this epoch it is divided by 10 and the optimiser starts anew; 0: never
    plateau_steps: Annotated[int, 0, 1e9] = 0  # without a lower loss halve it, half as many rest; 0: never
    dropout: Annotated[float, 0, 0.99] = 0.0  # share of a query's numbers set to 0 in training
    ema: Annotated[float, 0, 0.9999] = 0.0  # a: a mean of weights is kept, a mean + (1 - a) weights
    eval_every: Annotated[int, 1, 1_000_000] = 5  # epochs from one validation to the next
    patience: Count = 0  # validations without a better valid MRR before stopping; 0: never stop early
    seed: Annotated[int, 0, 2**32 - 1] = 0  # of all that is drawn
    device: str = "auto"  # or cpu, cuda, cuda:1, ...
    shards: Annotated[int, 0, 1 << 20] = 0  # processes that hold the entities between them; 0: all
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"  # of matrix products


@dataclass(frozen=True)
class Config:
    """Everything that determines a run, apart from the data set."""

    data: str = "world"
    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    regularizer: RegularizerConfig = field(default_factory=RegularizerConfig)
    paths: PathsConfig = field(default_factory=PathsConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    rerank: RerankConfig = field(default_factory=RerankConfig)

    @property
    def along_paths(self) -> bool:
        """Whether the model sends messages along paths, and has no vectors of entities."""
        return self.model.name.casefold().startswith("paths")

    @property
    def size(self) -> str:
        """How large the model is, in words."""
        if self.along_paths:
            return f"{self.paths.layers} layers, d = {self.paths.d}"
        return f"k = {self.model.k}"

    def __post_init__(self) -> None:
        for key, value in dotted(self).items():
            if get_origin(_kinds()[key]) is Annotated:
                least, most = _kinds()[key].__metadata__
                if not least <= value <= most:
                    raise ConfigError(f"{key} = {value}: expected a number from {least:g} to {most:g}")
        loss, weights = self.loss, self.model.score_weights
        if not all(0 <= weight <= 1e6 for weight in weights):
            raise ConfigError(f"model.score_weights = {list(weights)}: expected numbers from 0 to 1e+06")
        if loss.smoothing and loss.kind == "self-adversarial":
            raise ConfigError('loss.smoothing: goes with loss.kind = "softmax" or "logistic"; set it to 0')
        if loss.relation_prediction and self.model.reciprocal == "tied":
            raise ConfigError(
                'loss.relation_prediction: goes with model.reciprocal = "own"; tied relations have two ends'
            )
        if loss.candidates != "all" and (loss.targets == "all" or loss.smoothing):
            raise ConfigError(
                f'loss.candidates = "{loss.candidates}": goes with loss.targets = "one", loss.smoothing = 0'
            )


# Settings by their former names, which recipes, run folders and commands may still use
_RENAMED = {
    "model.chart": "model.parametrization",
    "loss.answers": "loss.targets",
    "loss.relations": "loss.relation_prediction",
    "loss.degree": "loss.degree_weight",
    "loss.frequency": "loss.subsampling",
    "penalty.strength": "regularizer.weight",
    "train.every": "train.eval_every",
    "train.average": "train.ema",
    "train.matmul": "train.precision",
    "train.plateau": "train.plateau_steps",
    "asking.back": "rerank.inverse",
    "asking.rivals": "rerank.hubness",
    "asking.counts": "rerank.prior",
}
_RENAMED_SECTIONS = {"penalty": "regularizer", "asking": "rerank"}
_RENAMED_VALUES = {("loss.kind", "adversarial"): "self-adversarial"}


def current(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with former names and values replaced by those of today."""
    found: dict[str, Any] = {}
    for key, value in _flat(settings).items():
        section, dot, name = key.partition(".")
        key = _RENAMED.get(key, _RENAMED_SECTIONS.get(section, section) + dot + name)
        value = _RENAMED_VALUES.get((key, value), value) if isinstance(value, str) else value
        found = merge(found, nested(key, value))
    return found


def read_config(path: Path) -> dict[str, Any]:
    """Read a recipe as nested settings, still to be checked by :func:`make_config`."""
    try:
        return current(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}; name an existing recipe file") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}; correct it") from None


def parse_setting(text: str) -> dict[str, Any]:
    """Read one setting of the command line, ``train.epochs=5``; a bare word is a string."""
    key, equals, value = text.partition("=")
    if not (equals and key.strip()):
        raise ConfigError(f"--set {text}: expected section.key=value, such as train.epochs=5")
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")
    except (ValueError, RecursionError):
        parsed = _number(value.strip())
    return current(nested(key.strip(), parsed["value"] if parsed.keys() == {"value"} else value.strip()))


def _number(text: str) -> dict[str, float]:
    """Read a number that TOML would have otherwise, such as .5."""
    try:
        return {"value": float(text)} if text[:1] in ".+-" else {}
    except ValueError:
        return {}


def nested(key: str, value: Any) -> dict[str, Any]:
    """Return the setting of a dotted key, ``train.epochs``, as it stands in a recipe."""
    section, dot, name = key.partition(".")
    return {section: {name: value}} if dot else {section: value}


def dotted(config: Config) -> dict[str, Any]:
    """Return every setting by its dotted key, as ``--set`` names it."""
    return _flat(dataclasses.asdict(config))


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they stand in a recipe by dotted keys; a section without any by its name."""
    found: dict[str, Any] = {}
    for section, value in settings.items():
        filled = isinstance(value, Mapping) and value
        found |= {f"{section}.{name}": item for name, item in value.items()} if filled else {section: value}
    return found


def holds(settings: Mapping[str, Any], key: str) -> bool:
    """Whether a dotted key is among settings."""
    section, _, name = key.partition(".")
    return name in settings.get(section, {})


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay settings over others, section by section."""
    joint = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], Mapping) and isinstance(above[key], Mapping):
            joint[key] = {**below[key], **above[key]}
    return joint


def write_config(config: Config) -> str:
    """Return the settings as TOML; reading it gives the same settings."""
    lines = []
    for name, value in dataclasses.asdict(config).items():
        if isinstance(value, dict):
            lines += ["", f"[{name}]", *(f"{key} = {_toml(item)}" for key, item in value.items())]
        else:
            lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: str | bool | int | float | tuple[float, ...]) -> str:
    """A JSON string or truth value is one of TOML; numbers are written so that they read back equal."""
    if isinstance(value, tuple):
        return repr(list(value))
    if not isinstance(value, str | bool):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which JSON leaves as it is


def make_config(layers: Iterable[Mapping[str, Any]], place: str = "config") -> Config:
    """Lay settings over the defaults, later ones over earlier ones, and check every one of them."""
    merged: dict[str, Any] = {}
    for layer in map(current, layers):
        _made(layer, place)
        merged = merge(merged, layer)
    return _made(merged, place)


@cache
def _kinds() -> dict[str, Any]:
    """The type of every setting by its dotted key, with the least and the most of numbers."""
    return _flat(
        {
            name: kind if kind is str else get_type_hints(kind, include_extras=True)
            for name, kind in get_type_hints(Config).items()
        }
    )


def _made(settings: Mapping[str, Any], place: str) -> Config:
    """Lay settings over the defaults; what does not fit is said with its key."""
    sections: dict[str, Any] = {n: kind for n, kind in get_type_hints(Config).items() if kind is not str}
    found: dict[str, Any] = {name: {} for name in sections}
    try:
        for key, value in _flat(settings).items():
            if key in sections and value != {}:
                raise ValueError(f"{key} = {value!r}: expected a section [{key}] with keys of its own")
            if key not in (*sections, *_kinds()):
                raise ValueError(f"unknown key {key}; {_advice(key)}")
            if key in _kinds():
                wanted = _kinds()[key]
                value = str(value) if wanted is str and type(value) is int else value
                found = merge(found, nested(key, checked(wanted, value, f"{key} = {value!r}")))
        return Config(**found | {name: kind(**found[name]) for name, kind in sections.items()})
    except (ValueError, ConfigError) as error:
        raise ConfigError(f"{place}: {error}") from None


def _advice(key: str) -> str:
    """Name the nearest key of the same section, else of any, else those that there are."""
    section, _, name = key.rpartition(".")
    own = [other for other in _kinds() if other.startswith(f"{section}.")]
    for keys in (own, [*_kinds()]):
        names = {other.rpartition(".")[2]: other for other in reversed(keys)}
        if near := nearest(name, names, 1):
            return f"did you mean {names[near[0]]}?"
    return f"known: {', '.join(own or get_type_hints(Config))}"
