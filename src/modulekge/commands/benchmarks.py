"""The data sets that are known by name."""

import json
from dataclasses import asdict
from pathlib import Path

from modulekge import render
from modulekge.data.benchmarks import benchmarks, local_folder


def data_list(data_dir: Path | None, as_json: bool) -> None:
    """List the data sets known by name, and where each would be read from."""
    places = {name: str(local_folder(b, data_dir) or "download") for name, b in benchmarks().items()}
    if as_json:
        print(json.dumps([{**asdict(b), "where": places[name]} for name, b in benchmarks().items()]))
        return
    render.console().print(render.datasets_table(benchmarks().values(), places))
