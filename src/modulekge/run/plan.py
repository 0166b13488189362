"""Settings resolved: defaults, then a recipe or what rules choose, then what was asked for."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from modulekge.config import Config, current, dotted, holds, make_config, merge, read_config
from modulekge.data.dataset import Dataset
from modulekge.errors import ConfigError
from modulekge.models.messages import Message
from modulekge.models.spec import COLUMNS, ModelSpec, named, parametrization, row, spec_of
from modulekge.run.defaults import Pace, choose
from modulekge.run.estimate import Pacer
from modulekge.run.load import Choice, Machine, Size, Times, with_choices
from modulekge.run.path_defaults import left_out
from modulekge.run.recipes import find_recipe, recipe_at_hand
from modulekge.training.optimizers import check_matmul, pick_device

NO_RECIPE = Path("none")  # in place of a recipe: settings are chosen by rule even where there is one


@dataclass(frozen=True)
class Plan:
    """What a run will use: its settings, and those of them that rules chose, with reasons."""

    config: Config
    choices: tuple[Choice, ...]
    pace: Pace = field(compare=False)
    recipe: Path | None = None  # whose settings they are, where no rules chose

    def time(self) -> tuple[float, Times]:
        """Return the seconds that training takes at most with its validations, and on what they rest."""
        train, times = self.config.train, self.pace(self.config)
        return train.epochs * (times.a_pass / train.parts + times.validation / train.eval_every), times


def resolve(
    dataset: Dataset,
    model: ModelSpec | str | None = None,
    settings: Iterable[Mapping[str, Any]] = (),
    recipe: Path | None = None,
    pace: Pace | None = None,
) -> Config:
    """Return the full settings: defaults, then a recipe or what rules choose, then what was asked for."""
    return plan(dataset, model, settings, recipe, pace=pace).config


def plan(
    dataset: Dataset,
    model: ModelSpec | str | None = None,
    settings: Iterable[Mapping[str, Any]] = (),
    recipe: Path | None = None,
    minutes: float | None = None,
    pace: Pace | None = None,
) -> Plan:
    """Resolve the settings, with the reasons of those that were chosen by rule.

    Without a recipe file, the one that belongs to this data set and model is used; where there is none,
    where ``minutes`` say how long it may take, or where the recipe is ``NO_RECIPE``, the rules of
    :mod:`modulekge.run.defaults`, by the ``pace`` of this machine, which is measured unless given.
    """
    dataset.check_facts()
    overrides = _overrides(model, settings)
    wanted = make_config([overrides], "settings")
    if recipe:
        recipe = recipe_at_hand(recipe)
    elif minutes is None:
        recipe = find_recipe(dataset.name, spec_of(wanted.model).name)
    pace, choices = pace or Pacer(dataset), tuple[Choice, ...]()
    if recipe in (None, NO_RECIPE):
        machine = Machine.at(pick_device(wanted.train.device))
        choices = choose(Size.of(dataset), machine, overrides, minutes, pace)
        if spec_of(wanted.model).along_paths and not holds(overrides, "paths.left_out"):
            choices = (*choices, left_out(dataset))
        config, recipe = with_choices(choices, overrides), None
    else:
        config = make_config([read_config(recipe), overrides], str(recipe))
    spec = spec_of(config.model)
    words = {"data": dataset.name, "model": {"name": spec.name, **spec.words()}}
    config = make_config([asdict(config), words])
    check_settings(config)
    _check_used(overrides, config)
    if spec.along_paths:  # which have none, whatever is asked for
        choices = tuple(choice for choice in choices if choice.key != "regularizer.weight")
    return Plan(config, choices, pace, recipe)


def _overrides(model: ModelSpec | str | None, settings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was asked for as one layer of settings."""
    overrides: dict[str, Any] = {} if model is None else {"model": _words(model)}
    for layer in settings:
        overrides = merge(overrides, _in_full(layer))
    return overrides


def check_asked(
    model: ModelSpec | str | None, settings: Iterable[Mapping[str, Any]], recipe: Path | None = None
) -> None:
    """Refuse what is wrong with settings and a named recipe, before a graph is read for them."""
    overrides = _overrides(model, settings)
    spec_of(make_config([overrides], "settings").model)
    if recipe and recipe != NO_RECIPE:
        path = recipe_at_hand(recipe)
        check_settings(make_config([read_config(path), overrides], str(path)))


def check_settings(config: Config) -> None:
    """Refuse settings that contradict each other or this machine, before anything is made of them."""
    spec = spec_of(config.model)
    if spec.along_paths:
        _check_paths(config)
    if config.model.reciprocal == "tied":
        spec.check_tieable()
    if config.loss.relation_prediction:
        spec.check_linear()
    check_matmul(config.train.precision, pick_device(config.train.device))


def _check_used(asked: Mapping[str, Any], config: Config) -> None:
    """Refuse what was asked for and does nothing in such a model or with such a loss."""
    for key in asked.get("paths", {}):
        if not spec_of(config.model).along_paths:
            raise ConfigError(
                f"paths.{key}: is for models of paths, and {config.model.name} is an embedding; leave it out"
            )
    for key in ("margin", "temperature"):
        if key in asked.get("loss", {}) and config.loss.kind != "self-adversarial":
            raise ConfigError(
                f'loss.{key}: does nothing with loss.kind = "{config.loss.kind}"; '
                'leave it out, or set loss.kind = "self-adversarial"'
            )


def _check_paths(config: Config) -> None:
    """Refuse what a model of paths does not do."""
    Message(spec_of(config.model))
    settings = dotted(config)
    for key, wanted in (
        ("loss.kind", "softmax"),
        ("loss.candidates", "all"),
        ("loss.targets", "one"),
        ("loss.smoothing", 0.0),
        ("loss.relation_prediction", 0.0),
        ("loss.degree_weight", 0.0),
        ("loss.subsampling", 0.0),
        ("regularizer.weight", 0.0),
        ("train.dropout", 0.0),
        ("train.plateau_steps", 0),
        ("model.bias", False),
        ("model.reciprocal", "own"),
        ("rerank.inverse", 0.0),
        ("rerank.hubness", 0.0),
        ("rerank.prior", 0.0),
    ):
        if (found := settings[key]) != wanted:
            raise ConfigError(
                f"{key} = {found}: is for embeddings, and {config.model.name} sends messages along paths; "
                f"set {key} = {json.dumps(wanted)}"
            )


def _in_full(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked for in full: a model's name asks for its row, whatever stood there before."""
    if "data" in settings:
        raise ConfigError("data is no setting here: name the graph as DATA")
    settings = current(settings)
    model = settings.get("model")
    if isinstance(model, Mapping) and "name" in model:
        return {**settings, "model": {**dict.fromkeys(COLUMNS, ""), **model}}
    return dict(settings)


def _words(model: ModelSpec | str) -> dict[str, str]:
    """Write a row in words, and make sure that a loaded run gives the same row back."""
    if isinstance(model, str):
        spec = named(model)
        return {"name": spec.name, **spec.words()}
    words = model.words()
    groups = (*model.entity_groups, *model.relation_groups)
    used = {g.parametrization.name for g in groups if g.parametrization.kind == "unit" and not g.trivial} or {
        "normalised"
    }
    if len(used) > 1 or row(model.name, **words).parametrized(parametrization(*used)) != model:
        raise ConfigError(f"model {model.name}: its parts are not those of these names: {words}, {used}")
    return {"name": model.name, "parametrization": used.pop(), **words}
