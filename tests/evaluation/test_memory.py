"""Ranking under a limit of memory: the batches get smaller, the ranks stay the same."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

PROGRAM = """
import resource
import torch
from modulekge.data.filter_index import FilterIndex
from modulekge.evaluation import evaluate
from modulekge.models.embedding import Embedding
from modulekge.models.spec import MODELS

torch.set_num_threads(1)
entities = 20_000
model = Embedding(MODELS["DistMult"], entities, 4, 4).draw(torch.Generator().manual_seed(0), 1.0, 1.0)
sizes = torch.tensor([entities, 4, entities])
questions = (torch.rand(6_000, 3, generator=torch.Generator().manual_seed(1)) * sizes).long()
known = FilterIndex.of(questions, 4)
free = evaluate.rank(model.scorer(), questions[-50:], known)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (300 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
# as if memory had no end: 480 MB of scores at once
parts = list(evaluate.rank_in_batches(model.scorer(), questions, known, len(questions)))
ranks = evaluate.Ranks.join(parts)
assert torch.equal(ranks.above[-50:], free.above) and torch.equal(ranks.not_below[-50:], free.not_below)
print(len(parts), len(ranks.above))
"""


def test_ranking_fits_into_what_memory_there_is():
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    batches, ranked = map(int, found.stdout.split())
    assert ranked == 6_000
    assert batches > 1
