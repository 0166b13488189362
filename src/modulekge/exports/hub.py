"""A run to share: a run folder without what only training needs, described for the Hugging Face hub."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from modulekge.data.benchmarks import SPLITS
from modulekge.errors import ConfigError, RunError
from modulekge.evaluation.report import Report
from modulekge.models.references import reference
from modulekge.run.checkpoint import write_weights
from modulekge.run.files import read_json, write_file
from modulekge.run.folder import RunFolder
from modulekge.run.run import Run
from modulekge.run.run_files import SHARED_WEIGHTS
from modulekge.version import __version__

_PRIVATE = "command"  # of run.json: it may hold paths of the machine it was given on


def write_hub(run: Run, path: Path, *, without_facts: bool = False) -> str:
    """Write a run folder with ``model.safetensors``, ``config.json`` and a model card; it loads as any run.

    Without facts, the names stay but the triples go: what is known can then not be told from what is new.
    """
    if run.members:
        raise RunError(f"{run.folder.path}: a mixture; its folder is whole as it is, or share its members")
    run.check_current()
    dataset = run.dataset
    if without_facts:
        if run.config.rerank.prior:
            raise ConfigError(
                f"{run.folder.path}: is reranked with counts of its facts, which would give them away; "
                f"'modulekge rerank {run.folder.path} --weights INVERSE,HUBNESS,0' goes without"
            )
        none = dataset.train[:0]
        dataset = replace(dataset, train=none, valid=none, test=none, facts=False)
    began = read_json(run.folder.path / "run.json")
    graph = str(began.get("graph") or run.dataset.fingerprint)
    folder = RunFolder.create(path, run.config, dataset)
    kept = _public(began) | {"sessions": [_public(each) for each in began.get("sessions", [])]}
    kept |= {"fingerprint": dataset.fingerprint, "graph": graph}
    write_weights(path / SHARED_WEIGHTS, run.model, {"format": "pt"})
    write_file(path / "run.json", json.dumps(kept, indent=1, ensure_ascii=False))
    folder.write_records(run.folder.records())
    folder.save_offsets(run.scorer, run.model)
    report = run.folder.report()
    if report:
        folder.save_report(report)
    if not without_facts and (calibration := run.folder.calibration()):  # which is of what is not known
        folder.save_calibration(calibration)
    sizes = _sizes(run)
    write_file(folder.summary, json.dumps(_config(run, sizes, graph), indent=1, ensure_ascii=False))
    write_file(path / "README.md", _card(run, sizes, graph, report, dataset.facts))
    facts = f"{sum(len(dataset[split]) for split in SPLITS):,} facts" if dataset.facts else "no facts"
    size = f"{sizes['parameters']:,} weights, {sizes['entities']:,} entities, {facts}"
    return f"{size}; choose a license in README.md"


def _public(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != _PRIVATE}


def _sizes(run: Run) -> dict[str, int]:
    return {
        "entities": len(run.dataset.entities),
        "relations": len(run.dataset.relations),
        "parameters": sum(weights.numel() for weights in run.model.parameters()),
        "query_length": run.model.width,
    }


def _config(run: Run, sizes: dict[str, int], graph: str) -> dict[str, Any]:
    """Everything at a glance for other tools; modulekge itself reads config.toml."""
    return {
        "library_name": "modulekge",
        "library_version": __version__,
        "model_type": run.config.model.name,
        **sizes,
        "dataset": {"name": run.dataset.name, "sha256": graph},
        "settings": asdict(run.config),
    }


def _card(run: Run, sizes: dict[str, int], graph: str, report: Report | None, facts: bool) -> str:
    spec, name = run.model.spec, run.dataset.name
    held = (
        "`vocabulary.json` and `triples.safetensors` hold the graph it was trained on."
        if facts
        else "The graph's triples are left out: the model answers, but marks no answer as known."
    )
    return f"""---
library_name: modulekge
tags:
- knowledge-graph-embedding
- link-prediction
- {json.dumps(spec.name)}
pipeline_tag: graph-ml
# license: yours to choose
{_index(run.name, name, report)}---

# {run.name} on {name}

{reference(spec)}

{sizes["entities"]:,} entities, {sizes["relations"]:,} relations, {run.config.size}.
Graph: {name}, SHA-256 of names and triples {graph}.

## Use

    pip install .          # in a clone of modulekge
    modulekge predict FOLDER --head ... --relation ...

```python
import modulekge

run = modulekge.load("FOLDER")  # this folder, downloaded; no code of it is run
modulekge.predict(run, head="...", relation="...", k=10)
```

{held}
Settings are in `config.toml`, a recipe to train it anew; `config.json` repeats them for other tools.

## Figures

{_figures(report)}"""


def _index(model: str, data: str, report: Report | None) -> str:
    """The figures as front matter, which is YAML and so may be written as JSON."""
    if report is None:
        return ""
    task = {"type": "graph-ml", "name": "link prediction"}
    dataset = {"type": data, "name": data, "split": report.split}
    metrics = [{"type": name, "value": value} for name, value in report.both.items()]
    results = [{"task": task, "dataset": dataset, "metrics": metrics}]
    found = json.dumps([{"name": model, "results": results}], ensure_ascii=False)
    return f"model-index: {found}\n"


def _figures(report: Report | None) -> str:
    if report is None:
        return "Not evaluated on test.\n"
    names = " | ".join(report.both)
    values = " | ".join(f"{value:.4f}" for value in report.both.values())
    protocol = "\n".join(f"- {part}: {text}" for part, text in asdict(report.protocol).items())
    low, high = report.intervals["mrr"]
    return f"""On {report.split}, {report.triples:,} triples; 95 % interval of MRR {low:.4f} .. {high:.4f}.

| {names} |
|{"---|" * len(report.both)}
| {values} |

{protocol}
"""
