"""The API asked at random from its own OpenAPI document: no crash, and every answer as documented."""

import shutil
from contextlib import closing

import pytest
import schemathesis
import torch
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from modulekge.server.http import make_app
from modulekge.server.service import Service

pytestmark = pytest.mark.integration

NAMES = {
    "run": ["kin"],
    "relation": ["parent", "child"],
    "head": ["ada", "bob"],
    "tail": ["cid"],
    "name": ["fay"],
}
QUESTIONS = (
    "?y where ada parent ?x and ?x parent ?y",
    "?x where (ada parent ?x or ?x sibling bob) and not ?x child ?y",
    "SELECT ?x { ?x :parent ?y . ?y :sibling ?z . ?z :child ?x }",
    "?x where nobody parent ?x",
)


@pytest.fixture
def api(folder, tmp_path):
    """An application of its own for each test, since at the end of one schemathesis shuts it down.

    The run is a copy, for judgements are written beside it.
    """
    copy = shutil.copytree(folder, tmp_path / folder.name)
    with closing(Service.open([copy, copy], torch.device("cpu"))) as service:
        yield schemathesis.openapi.from_asgi("/openapi.json", make_app(service, hosts=None))


def meant(value, key=""):
    """Put a name that the graph has in the place of most random ones: else nothing but 404 was tested."""
    if isinstance(value, dict):
        return {name: meant(part, name) for name, part in value.items()}
    if key == "question":  # of which no schema says all
        return QUESTIONS[len(value) % len(QUESTIONS)]
    if isinstance(value, list) and key == "triples":
        return [["ada", "parent", "bob"] if len(part[0]) % 4 else part for part in value]
    if isinstance(value, list):
        return [meant(part, key) for part in value]
    if isinstance(value, str) and key in NAMES and len(value) % 4:
        return NAMES[key][len(value) % len(NAMES[key])]
    return value


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # schemathesis does
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_as_documented(api, mode):
    statuses = set()
    for operation in (found.ok() for found in api.get_all_operations()):
        if mode.is_negative and not any(operation.iter_parameters()):
            continue  # what takes nothing can be asked nothing wrong
        cases = operation.as_strategy(generation_mode=mode)

        @settings(max_examples=15, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(case=cases)
        def ask(case):
            if mode.is_positive:
                case.path_parameters, case.query = meant(case.path_parameters), meant(case.query)
                case.body = meant(case.body)
            statuses.add(case.call_and_validate().status_code)

        ask()
    assert statuses >= ({200, 404} if mode.is_positive else {422})
