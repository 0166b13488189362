"""The graph of a run on disk: names and labels in vocabulary.json, ids in triples.safetensors."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from modulekge.data.benchmarks import SPLITS
from modulekge.data.dataset import Dataset
from modulekge.data.vocabulary import Unread, Vocabulary
from modulekge.errors import RunError
from modulekge.json_io import typed
from modulekge.run.files import read_json, read_top
from modulekge.run.tensors import read_tensors

VOCABULARY, TRIPLES = "vocabulary.json", "triples.safetensors"


def graph_files(dataset: Dataset) -> dict[str, bytes]:
    """Return the files of a graph by name; entities stand last, in a line that need not be read."""
    entities, relations = dataset.entities, dataset.relations
    top = {
        "name": dataset.name,
        "relations": relations.names,
        "relation_labels": of_known(relations.labels, relations.names),
    }
    rest = {
        "entities": entities.names,
        "entity_labels": of_known(entities.labels, entities.names),
        "entity_descriptions": of_known(entities.descriptions, entities.names),
    }
    splits: dict[str, Tensor] = {split: dataset[split].to(torch.int32).contiguous() for split in SPLITS}
    return {VOCABULARY: f"{as_json(top)[:-1]},\n{as_json(rest)[1:]}".encode(), TRIPLES: save(splits)}


def as_json(value: Any) -> str:
    """Return a value as the files of a graph hold it."""
    return json.dumps(value, ensure_ascii=False)


def of_known(texts: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Texts of names that the graph has; the file they come from may hold many more."""
    return {name: texts[name] for name in names if name in texts}


@dataclass(frozen=True)
class _Top:
    """What the first line of vocabulary.json holds."""

    name: str
    relations: tuple[str, ...]
    relation_labels: dict[str, str]


@dataclass(frozen=True)
class _Names(_Top):
    """What all of it holds."""

    entities: tuple[str, ...]
    entity_labels: dict[str, str]
    entity_descriptions: dict[str, str]


def read_graph(folder: Path, about: Mapping[str, Any], names: bool = True) -> Dataset:
    """Read a graph and compare it with what run.json says ``about`` it.

    Without ``names``, those of entities stay in their file, if it is known how many they are.
    """
    count, made_for = int(about.get("entities", -1)), about.get("fingerprint")
    lean = not names and count >= 0
    older: dict[str, Any] = {"entity_descriptions": {}}  # what older runs have not
    fields = read_top(folder / VOCABULARY) if lean else {**older, **read_json(folder / VOCABULARY)}
    tensors, _ = read_tensors(folder / TRIPLES)
    try:
        if lean:
            found: _Top = typed(_Top, fields)
            entities = Vocabulary("entity", Unread(count))
        else:
            found = known = typed(_Names, fields)
            entities = Vocabulary("entity", known.entities, known.entity_labels, known.entity_descriptions)
        relations = Vocabulary("relation", found.relations, found.relation_labels)
        if any(len(set(each.names)) < len(each) for each in (relations, *(() if lean else (entities,)))):
            raise ValueError("a name stands twice")
        if any(tensors[split].dtype != torch.int32 for split in SPLITS):
            raise ValueError("ids are no whole numbers of 32 bits")
        splits = [tensors[split].long() for split in SPLITS]
        facts = len(splits[0]) > 0
        notes = () if facts else (f"{folder}: shared without its facts, so all answers look new",)
        digest = str(made_for) if lean else ""
        graph = Dataset(found.name, entities, relations, *splits, notes=notes, facts=facts, digest=digest)
        fingerprint = graph.fingerprint
    except (KeyError, ValueError, RuntimeError) as error:
        finding = f"{VOCABULARY} and {TRIPLES} do not make a graph ({error})"
        raise RunError(f"{folder}: {finding}; restore them from a copy") from None
    if fingerprint != made_for:
        finding = f"{VOCABULARY} or {TRIPLES} is not what run.json was written with"
        raise RunError(f"{folder}: {finding}; restore it from a copy")
    return graph
