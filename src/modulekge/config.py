"""Settings: strict TOML into frozen dataclasses, and back."""

import dataclasses
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from modulekge.errors import ConfigError
from modulekge.suggest import nearest


@dataclass(frozen=True)
class ModelConfig:
    """Which row, at which size, started how. Words left empty are the named row's."""

    name: str = "ModulE-HH"
    k: int = 128  # blocks: the paper's embedding multiplier
    parametrization: Literal["normalised", "exponential", "angles"] = "normalised"  # of unit elements
    reciprocal: Literal["own", "tied"] = "own"  # heads are asked for with relations of their own, or adjoints
    scalar_scale: float = 1e-3  # standard deviation of free scalars at the start
    vector_scale: float = 1.0  # scale of the numbers that parametrize unit elements at the start
    bias: bool = False  # each entity adds a learned number to its scores
    score_weights: tuple[float, ...] = ()  # where the learned weights of a score start; empty: at its own
    scalar: str = ""
    vector: str = ""
    scaling: str = ""
    rotation: str = ""
    score: str = ""


@dataclass(frozen=True)
class LossConfig:
    """What is minimised: over which candidates, with which answers, how weighted."""

    kind: Literal["softmax", "logistic", "self-adversarial"] = "softmax"
    candidates: Literal["all", "sampled", "shared"] = "all"  # entities, or negatives per question or batch
    negatives: int = 256  # how many are sampled; those known to be true are left out
    targets: Literal["one", "all"] = "one"  # a triple's tail, or all known tails of (head, relation): KvsAll
    smoothing: float = 0.0  # this share of the target is spread over all entities
    degree_weight: float = 0.0  # a in the weight 1 - a + a deg(t) / max deg of a question with answer t
    subsampling: float = 0.0  # a in the weight count^-a of a question whose head or answer occurs so often
    margin: float = 0.0  # gamma, added to scores by the self-adversarial loss
    temperature: float = 1.0  # alpha, by which it sharpens the weights of negatives
    relation_prediction: float = 0.0  # weight of predicting the relation from head and tail


@dataclass(frozen=True)
class RegularizerConfig:
    r"""$\lambda (\lambda_1 G(h) + \lambda_2 G(r) + \lambda_3 G(t) + \mu (G(hr) + G(tr)))$, averaged.

    N3 is p = 3 and F2 p = 2 with equal rates; DURA is p = 2, relation = 0, moved = head = tail.
    """

    weight: float = 0.05
    head: float = 2.0
    relation: float = 0.5
    tail: float = 2.0
    moved: float = 0.0
    p: int = 3
    form: Literal["power", "rooted", "G"] = "power"


@dataclass(frozen=True)
class RerankConfig:
    """How candidates of a trained model are reranked: what is added to a candidate's score."""

    inverse: float = 0.0  # weight of the head's score as an answer to the candidate's inverse question
    hubness: float = 0.0  # weight, subtracted, of the best score that any entity has as an answer to that
    prior: float = 0.0  # weight of the log of 1 + how often the candidate answers the relation in train

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

    epochs: int = 100
    parts: int = 1  # epochs that make one pass over the questions: those of a large graph end sooner
    batch: int = 500
    optimizer: Literal["adagrad", "adam"] = "adagrad"
    lr: float = 0.1
    decay: float = 1.0  # the learning rate is multiplied by this after each epoch
    drop_after: int = 0  # after this epoch it is divided by 10 and the optimiser starts anew; 0: never
    plateau_steps: int = 0  # so many without a lower loss halve it, and half as many rest; 0: never
    dropout: float = 0.0  # share of a query's numbers set to 0 in training
    ema: float = 0.0  # a: what is validated and kept is a mean of weights, a mean + (1 - a) weights
    eval_every: int = 5  # epochs from one validation to the next
    patience: int = 0  # validations without a better valid MRR before stopping; 0: never stop early
    seed: int = 0
    device: str = "auto"
    shards: int = 0  # processes of torchrun that hold the entities between them; 0: all of them
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"  # of matrix products


@dataclass(frozen=True)
class Config:
    """Everything that determines a run, apart from the data set."""

    data: str = "world"
    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    regularizer: RegularizerConfig = field(default_factory=RegularizerConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    rerank: RerankConfig = field(default_factory=RerankConfig)

    def __post_init__(self) -> None:
        for key, least, most in _BOUNDS:
            section, name = key.split(".")
            value = getattr(getattr(self, section), name)
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


LEAST_RATE = 1e-9
_BOUNDS = (
    ("model.k", 1, 1 << 20),
    ("model.scalar_scale", 1e-12, 1e6),
    ("model.vector_scale", 1e-6, 1e6),
    ("loss.negatives", 1, 1 << 20),
    ("loss.smoothing", 0, 0.999),
    ("loss.degree_weight", 0, 1),
    ("loss.subsampling", 0, 1),
    ("loss.margin", 0, 1e3),
    ("loss.temperature", 0, 1e3),
    ("loss.relation_prediction", 0, 1e3),
    ("regularizer.weight", 0, 1e6),
    ("regularizer.head", 0, 1e6),
    ("regularizer.relation", 0, 1e6),
    ("regularizer.tail", 0, 1e6),
    ("regularizer.moved", 0, 1e6),
    ("regularizer.p", 2, 6),
    ("train.epochs", 1, 1_000_000),
    ("train.parts", 1, 1_000_000),
    ("train.batch", 1, 1 << 24),
    ("train.lr", LEAST_RATE, 1e3),
    ("train.decay", 1e-3, 1),
    ("train.drop_after", 0, 1_000_000),
    ("train.plateau_steps", 0, 1_000_000_000),
    ("train.dropout", 0, 0.99),
    ("train.ema", 0, 0.9999),
    ("train.eval_every", 1, 1_000_000),
    ("train.patience", 0, 1_000_000),
    ("train.seed", 0, 2**32 - 1),
    ("train.shards", 0, 1 << 20),
    ("rerank.inverse", 0, 1e3),
    ("rerank.hubness", 0, 1e3),
    ("rerank.prior", 0, 1e3),
)

Section = TypeVar("Section")


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
    for section, values in settings.items():
        if not isinstance(values, Mapping):
            found[section] = values
            continue
        for name, value in values.items():
            key = f"{section}.{name}"
            key = _RENAMED.get(key, f"{_RENAMED_SECTIONS.get(section, section)}.{name}")
            value = _RENAMED_VALUES.get((key, value), value) if isinstance(value, str) else value
            found = merge(found, nested(key, value))
        if not values:
            found = merge(found, {_RENAMED_SECTIONS.get(section, section): {}})
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
        parsed = {}
    return current(nested(key.strip(), parsed["value"] if parsed.keys() == {"value"} else value.strip()))


def nested(key: str, value: Any) -> dict[str, Any]:
    """Return the setting of a dotted key, ``train.epochs``, as it stands in a recipe."""
    section, dot, name = key.partition(".")
    return {section: {name: value}} if dot else {section: value}


def dotted(config: Config) -> dict[str, Any]:
    """Return every setting by its dotted key, as ``--set`` names it."""
    settings: dict[str, Any] = {}
    for section, value in dataclasses.asdict(config).items():
        if isinstance(value, dict):
            settings |= {f"{section}.{name}": item for name, item in value.items()}
        else:
            settings[section] = value
    return settings


def holds(settings: Mapping[str, Any], key: str) -> bool:
    """Whether a dotted key is among settings."""
    section, _, name = key.partition(".")
    return name in settings.get(section, {})


def make_config(layers: Iterable[Mapping[str, Any]], place: str = "config") -> Config:
    """Lay settings over the defaults, later ones over earlier ones, and check every one of them."""
    merged: dict[str, Any] = {}
    for layer in map(current, layers):
        _build(Config, layer, "", place)
        merged = merge(merged, layer)
    return _build(Config, merged, "", place)


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


def _build(kind: type[Section], settings: Mapping[str, Any], prefix: str, place: str) -> Section:
    types = get_type_hints(kind)
    values = {}
    for key, value in settings.items():
        dotted = prefix + key
        if key not in types:
            raise ConfigError(f"{place}: unknown key {dotted}; {_advice(key, prefix, types)}")
        values[key] = _check(types[key], value, dotted, place)
    try:
        return kind(**values)
    except ConfigError as error:  # of values that are well-formed but do not do
        raise ConfigError(f"{place}: {error}") from None


def _advice(key: str, prefix: str, types: Mapping[str, Any]) -> str:
    """Name the nearest key of this section, or else of another."""
    if near := nearest(key, types, 1):
        return f"did you mean {prefix}{near[0]}?"
    elsewhere = [
        f"{section}.{name}"
        for section, kind in get_type_hints(Config).items()
        if dataclasses.is_dataclass(kind)
        for name in nearest(key, get_type_hints(kind), 1)
    ]
    return f"did you mean {elsewhere[0]}?" if elsewhere else f"known: {', '.join(types)}"


def _check(wanted: Any, value: Any, key: str, place: str) -> Any:
    if type(value) is int and value.bit_length() > _MOST_BITS:
        raise ConfigError(f"{place}: {key}: the number has too many digits")
    if dataclasses.is_dataclass(wanted):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{place}: {key} = {value!r}: expected a section [{key}] with keys of its own")
        return _build(wanted, value, f"{key}.", place)  # type: ignore[arg-type]
    if get_origin(wanted) is Literal:
        if value not in get_args(wanted):
            raise ConfigError(f"{place}: {key} = {value!r}: expected one of {', '.join(get_args(wanted))}")
        return value
    if get_origin(wanted) is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{place}: {key} = {value!r}: expected a list of numbers, such as [1.0, 0.5]")
        return tuple(_check(float, item, key, place) for item in value)
    if wanted in (float, str) and type(value) is int:
        return wanted(value)
    if type(value) is not wanted:
        raise ConfigError(f"{place}: {key} = {value!r}: expected {_NAMES[wanted]}")
    return value


_MOST_BITS = 64  # of a whole number: TOML promises no more, and a larger one may be no float
_NAMES = {int: "a whole number", float: "a number", str: "text in quotes", bool: "true or false"}
