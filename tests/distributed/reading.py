"""Graphs that one process and several must read alike: ``torchrun ... reading.py GRAPHS OUT``."""

import json
import resource
import sys
from pathlib import Path

from modulekge.data import lines
from modulekge.data.layouts import plain_splits
from modulekge.data.spread import read_share
from modulekge.errors import ModulekgeError
from modulekge.run.graph import read_graph
from modulekge.run.spread import read_by_all
from modulekge.workers import part, workers

BLOCKS = 20, 1 << 20  # bytes
LIMITS = {"long line": 100}  # bytes of a line
LONGEST = lines.LONGEST


def outcome(graph, block, out, group):
    """Return what came of reading a graph, or what each process says of it."""
    lines.LONGEST = LIMITS.get(graph.name, LONGEST)
    if graph.name == "no room":
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
    try:
        with read_by_all(graph, plain_splits(graph), (None, None), out / "run", group, block) as read:
            lean = read.dataset()
            whole = read_graph(read.folder, {"fingerprint": read.fingerprint})
            group.least(0)  # the first, which takes the folder away, waits for the others
        found = whole.fingerprint, whole.entities.labels, whole.relations.labels, read.notes, lean.name
        said = json.dumps([*found, len(lean.entities), lean.relations.names, read.triples])
    except ModulekgeError as error:
        said = json.dumps(str(error))
    finally:
        lines.LONGEST = LONGEST
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return [json.loads(text) for text in group.exchange([said.encode()] * group.size)]


def held(graph, group):
    """Return how many names and triples each process holds."""
    share = read_share(plain_splits(graph), group)
    mine = [len(share.entities.held), *map(len, share.splits)]
    return [json.loads(text) for text in group.exchange([json.dumps(mine).encode()] * group.size)]


def main() -> None:
    graphs, out = map(Path, sys.argv[1:])
    group = workers()
    found = {
        graph.name: {block: outcome(graph, block, out, group) for block in BLOCKS}
        for graph in sorted(graphs.iterdir())
        if graph.name != "large"
    }
    shares = held(graphs / "large", group)
    if group.leads:
        left = [path.name for path in out.iterdir()]
        (out / "found.json").write_text(json.dumps({"graphs": found, "held": shares, "left": left}))
    part()


if __name__ == "__main__":
    main()
