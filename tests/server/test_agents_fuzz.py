"""Tools called at random, by their schemas and against them: no traceback, every answer as declared."""

import pytest
import torch
from agents import Agent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modulekge.server.growing import GrowingRun
from modulekge.server.mcp import make_server
from modulekge.server.problems import INTERNAL
from modulekge.server.service import Service

pytestmark = pytest.mark.integration

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
LIKELY = {
    "question": st.sampled_from(
        [
            "?y where ada parent ?x and ?x parent ?y",
            "?x where (ada parent ?x or ?x sibling bob) and not ?x child ?y",
            "SELECT ?x { ?x :parent ?y . ?y :sibling ?z . ?z :child ?x }",
            "?x where nobody parent ?x",
            "?x where",
        ]
    ),
    "relations": st.lists(st.sampled_from(["parent", "child", "none"]), max_size=3),
    **dict.fromkeys(("head", "tail", "name", "text"), st.sampled_from(["ada", "bob", "Ada Lovelace", "zoe"])),
    "relation": st.sampled_from(["parent", "sibling", "cousin"]),
    **dict.fromkeys(("k", "limit", "known", "predicted"), st.integers(-1, 12)),
    "min_probability": st.floats(-0.1, 1.1),
    "types": st.sampled_from(["any", "constrained"]),
    "t_norm": st.sampled_from(["product", "godel", "other"]),
}


def arguments(schema):
    """Arguments as a schema wants them, some of them anything, or others."""
    fields = {name: LIKELY.get(name, JSON) | JSON for name in schema["properties"]}
    needed = {name: LIKELY.get(name, JSON) for name in schema.get("required", ())}
    some = st.fixed_dictionaries({}, optional=fields)
    meant = st.fixed_dictionaries(
        needed, optional={name: LIKELY[name] for name in fields if name in LIKELY and name not in needed}
    )
    return meant | some | st.dictionaries(st.text(), JSON, max_size=3)


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # these strategies do not use it
def test_no_call_gives_a_traceback(folder, capsys):
    growing = GrowingRun(Service.open([folder], torch.device("cpu"))["kin"])
    agent, answered, refused = Agent(make_server(growing)), set(), set()
    for tool in agent.tools():

        @settings(max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(st.lists(arguments(tool.input_schema), min_size=4, max_size=4))
        def call(several):
            for result in agent.many(*((tool.name, one) for one in several)):
                (content,) = result.content
                (refused if result.is_error else answered).add(tool.name)
                assert content.text.strip()
                if result.is_error:
                    assert content.text != INTERNAL
                    assert "\n" not in content.text
                    assert "Traceback" not in content.text

        call()
    growing.served.close()
    names = {tool.name for tool in agent.tools()}
    assert (answered, refused) == (names, names)
    assert capsys.readouterr().err == ""
