"""Vectors of entities for other tools: arrays of numpy, a Parquet file, the text format of word2vec."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from jaxtyping import Float
from torch import Tensor

from modulekge.algebra.groups import Group
from modulekge.data.vocabulary import Vocabulary
from modulekge.errors import ConfigError
from modulekge.models.embedding import Embedding, Some, take
from modulekge.run.run import Run
from modulekge.shapes import Queries

Vectors = Float[Tensor, "_rows _length"]
_ROWS = 1 << 13  # of the table at a time, so that text and columns of it stay small
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


# Scores of one query q with all entities t in numpy, where both are split into components and blocks
def entity_vectors(model: Embedding, rows: Some = slice(None)) -> Vectors:
    r"""$s_e \odot v_e$, flattened; of an inner product with a bias, $(s_e \odot v_e, b_e)$.

    Where the score is an inner product, it is that of these with :func:`query_vectors`.
    """
    vectors = model.entities(rows).flatten(1)
    return torch.cat([vectors, take(model.entity_bias, rows)[:, None]], 1) if _joined(model) else vectors


def query_vectors(model: Embedding, queries: Queries) -> Vectors:
    """Queries, flattened; a 1 more meets the bias of an inner product."""
    vectors = queries.flatten(1)
    return torch.cat([vectors, vectors.new_ones(len(vectors), 1)], 1) if _joined(model) else vectors


def _joined(model: Embedding) -> bool:
    """Whether the bias is one more number of the vectors."""
    return model.spec.score.bilinear and len(model.entity_bias) > 0


def _apart(model: Embedding) -> bool:
    """Whether there is a bias that no vector can hold: one that is added to a distance."""
    return not model.spec.score.bilinear and len(model.entity_bias) > 0


@torch.no_grad()
def write_numpy(run: Run, path: Path) -> str:
    """Write a folder of arrays with their names, and how to score with them."""
    model, dataset = run.embedding, run.dataset
    spec, device = model.spec, model.entity_scalar.device
    heads, relations, _ = dataset.questions("test").to(device).unbind(1)
    arrays = {
        "entities": entity_vectors(model),
        "queries": query_vectors(model, model.queries(heads, relations)),
        "heads": _elements(spec.entity_groups, (model.entity_scalar, model.entity_vector)),
        "relations": _elements(spec.relation_groups, (model.relation_scaling, model.relation_rotation)),
    }
    if _apart(model):
        arrays["bias"] = model.entity_bias
    path.mkdir()
    for name, array in arrays.items():
        np.save(path / f"{name}.npy", array.float().cpu().numpy())
    _write_lines(path / "entities.tsv", ("name", "label"), _named(dataset.entities))
    asks = ("tail",) if model.tied else ("tail", "head")
    named = (name for side in asks for name in _named(dataset.relations, side))
    _write_lines(path / "relations.tsv", ("name", "label", "asks for"), named)
    _write_lines(path / "queries.tsv", ("given", "relation", "asks for", "answer"), _questions(run))
    (path / "README.md").write_text(_readme(run, arrays), "utf-8")
    rows, length = arrays["entities"].shape
    return f"{rows:,} entities of {length} numbers; README.md says how to score with them"


def _elements(groups: tuple[Group, Group], tables: tuple[Tensor, Tensor]) -> Vectors:
    """The elements that stored numbers name, those of the two groups side by side."""
    points = [group.point(table).flatten(1) for group, table in zip(groups, tables, strict=True)]
    return torch.cat(points, dim=1)


def _named(vocabulary: Vocabulary, *more: str) -> Iterator[tuple[str, ...]]:
    return ((name, vocabulary.label(i), *more) for i, name in enumerate(vocabulary.names))


def _questions(run: Run) -> Iterator[tuple[str, ...]]:
    entities, relations = run.dataset.entities.names, run.dataset.relations.names
    for given, relation, answer in run.dataset.questions("test").tolist():
        side = "tail" if relation < len(relations) else "head"
        yield entities[given], relations[relation % len(relations)], side, entities[answer]


def _write_lines(path: Path, heading: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(heading) + "\n")
        file.writelines("\t".join(cell.translate(_ESCAPED) for cell in row) + "\n" for row in rows)


def _readme(run: Run, arrays: dict[str, Tensor]) -> str:
    model, spec = run.embedding, run.embedding.spec
    shapes = {name: " x ".join(map(str, array.shape)) for name, array in arrays.items()}
    back = (
        "ask for tails; heads are asked for with their adjoints"
        if model.tied
        else "ask for tails, and as many more after them for heads"
    )
    extra = "; the last number is a bias, which meets a 1 in every query" if _joined(model) else ""
    bias = f"| `bias.npy` | {shapes['bias']} | added to scores |\n" if _apart(model) else ""
    parts = [f"{group.size} x k" for group in (*spec.entity_groups, *spec.relation_groups)]
    return f"""# {spec.name} on {run.dataset.name}, as arrays

| file | shape | rows |
|---|---|---|
| `entities.npy` | {shapes["entities"]} | candidates, in the order of `entities.tsv`{extra} |
| `queries.npy` | {shapes["queries"]} | the questions of the test split, in the order of `queries.tsv` |
| `heads.npy` | {shapes["heads"]} | what relations move: scalar ({parts[0]}) and vector ({parts[1]}) |
| `relations.npy` | {shapes["relations"]} | scaling ({parts[2]}) and rotation ({parts[3]}) of relations, \
in the order of `relations.tsv`; they {back} |
{bias}
Here k = {model.k}; components by blocks are written component by component. The first line of a .tsv file is
a heading; a tab, a line end or a backslash within a name is written `\\t`, `\\n`, `\\r`, `\\\\`.

Score (`{spec.score.name}`) of every entity as the answer to the first question:

```python
{_code(model)}
best = np.argsort(-scores)[:10]  # rows of entities.npy, lines of entities.tsv after its heading
```

A query is the head as the relation moves it, T_S(s_h) . T_V(v_h) with T_S = {spec.scaling.name} and
T_V = {spec.rotation.name}. modulekge makes it for any question:

    run = modulekge.load(RUN)
    run.embedding.queries(heads, relations)  # ids; relation + {len(run.dataset.relations)} asks for heads

How near two rows of `entities.npy` lie to each other, by cosine or otherwise, says that entities are alike in
this model, not that they are linked: links are scores of queries with entities.
"""


def _code(model: Embedding) -> str:
    """Python that scores with the arrays alone."""
    code = model.spec.score.numpy
    lines = [
        "import numpy as np\n",
        'entities, queries = np.load("entities.npy"), np.load("queries.npy")',
    ]
    if "q[" in code or "- q," in code:
        size = model.entities(slice(0, 1)).shape[1]
        lines.append(f"t, q = entities.reshape(-1, {size}, {model.k}), queries[0].reshape(-1, {model.k})")
    if len(model.score_weights):
        lines.append(f"w = {model.score_weights.tolist()}")
    lines.append(code)
    if _apart(model):
        lines.append('scores = scores + np.load("bias.npy")')
    return "\n".join(lines)


def _parts(run: Run) -> Iterator[tuple[slice, "np.ndarray[tuple[int, int], np.dtype[np.float32]]"]]:
    """The vectors of entities, some rows at a time."""
    for start in range(0, len(run.dataset.entities), _ROWS):
        rows = slice(start, start + _ROWS)
        yield rows, entity_vectors(run.embedding, rows).float().cpu().numpy()


@torch.no_grad()
def write_parquet(run: Run, path: Path) -> str:
    """Write name, label and vector of each entity, and its bias where that is not in the vector."""
    entities, model = run.dataset.entities, run.embedding
    length = entity_vectors(model, slice(0, 1)).shape[1]
    about = {"model": model.spec.name, "score": model.spec.score.name, "data": run.dataset.name}
    fields = [("name", pa.string()), ("label", pa.string()), ("vector", pa.list_(pa.float32(), length))]
    if _apart(model):
        fields.append(("bias", pa.float32()))
    schema = pa.schema(fields, {"modulekge": json.dumps(about, ensure_ascii=False)})
    with pq.ParquetWriter(path, schema) as file:
        for rows, vectors in _parts(run):
            names = entities.names[rows]
            columns = [
                pa.array(names),
                pa.array([entities.labels.get(name, name) for name in names]),
                pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), length),
            ]
            if _apart(model):
                columns.append(pa.array(model.entity_bias[rows].float().cpu().numpy()))
            file.write_table(pa.Table.from_arrays(columns, schema=schema))
    return f"{len(entities):,} entities: name, label and a vector of {length} numbers"


@torch.no_grad()
def write_word2vec(run: Run, path: Path) -> str:
    """Write ``count length``, then a line of name and vector for each entity.

    A space would end a name: it is written as in an address, %20, and ``urllib.parse.unquote`` reads it.
    """
    if _apart(run.embedding):
        finding = (
            f"the score {run.embedding.spec.score.name} adds a bias that a line of word2vec has no place for"
        )
        raise ConfigError(f"model {run.embedding.spec.name}: {finding}; export to numpy or parquet")
    names, length = run.dataset.entities.names, entity_vectors(run.embedding, slice(0, 1)).shape[1]
    line = "%s" + " %.9g" * length + "\n"  # nine digits tell any two floats apart
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(names)} {length}\n")
        for rows, vectors in _parts(run):
            for name, vector in zip(names[rows], vectors.tolist(), strict=True):
                file.write(line % (one_word(name), *vector))
    return f"{len(names):,} entities of {length} numbers; spaces in names are %20"


def one_word(name: str) -> str:
    """Return the name with percent signs for what would end a word or a line.

    >>> one_word("New York 100%")
    'New%20York%20100%25'
    """
    return "".join(quote(c) if c == "%" or c.isspace() or not c.isprintable() else c for c in name)
