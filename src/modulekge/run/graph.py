"""The graph of a run on disk: names and labels in vocabulary.json, ids in triples.safetensors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from modulekge.data.dataset import SPLITS, Dataset
from modulekge.data.vocabulary import Unread, Vocabulary
from modulekge.errors import RunError
from modulekge.run.files import read_json, read_tensors, read_top

VOCABULARY, TRIPLES = "vocabulary.json", "triples.safetensors"


def graph_files(dataset: Dataset) -> dict[str, bytes]:
    """Return the files of a graph by name; entities stand last, in a line that need not be read."""
    entities, relations = dataset.entities, dataset.relations
    top = {"name": dataset.name, "relations": relations.names, "relation_labels": _of_known(relations)}
    rest = {"entities": entities.names, "entity_labels": _of_known(entities)}
    splits: dict[str, Tensor] = {split: dataset[split].to(torch.int32).contiguous() for split in SPLITS}
    return {VOCABULARY: f"{as_json(top)[:-1]},\n{as_json(rest)[1:]}".encode(), TRIPLES: save(splits)}


def as_json(value: Any) -> str:
    """Return a value as the files of a graph hold it."""
    return json.dumps(value, ensure_ascii=False)


def _of_known(vocabulary: Vocabulary) -> dict[str, str]:
    """Labels of names that the graph has; a labels file may hold many more."""
    return {name: vocabulary.labels[name] for name in vocabulary.names if name in vocabulary.labels}


def read_graph(folder: Path, about: Mapping[str, Any], names: bool = True) -> Dataset:
    """Read a graph and compare it with what run.json says ``about`` it.

    Without ``names``, those of entities stay in their file, if it is known how many they are.
    """
    lean = not names and "entities" in about
    fields = (read_top if lean else read_json)(folder / VOCABULARY)
    tensors, _ = read_tensors(folder / TRIPLES)
    made_for = about.get("fingerprint")
    try:
        if lean:
            entities = Vocabulary("entity", Unread(int(about["entities"])))
        else:
            entities = Vocabulary("entity", tuple(fields["entities"]), dict(fields["entity_labels"]))
        relations = Vocabulary("relation", tuple(fields["relations"]), dict(fields["relation_labels"]))
        splits = [tensors[split].long() for split in SPLITS]
        facts = len(splits[0]) > 0
        notes = () if facts else (f"{folder}: shared without its facts, so all answers look new",)
        digest = str(made_for) if lean else ""
        graph = Dataset(fields["name"], entities, relations, *splits, notes=notes, facts=facts, digest=digest)
        found = graph.fingerprint
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        finding = f"{VOCABULARY} and {TRIPLES} do not make a graph ({error!r})"
        raise RunError(f"{folder}: {finding}; restore them from a copy") from None
    if found != made_for:
        finding = f"{VOCABULARY} or {TRIPLES} is not what run.json was written with"
        raise RunError(f"{folder}: {finding}; restore it from a copy")
    return graph
