"""The tools that an agent may call: what each takes, what it gives, and who answers. Needs 'agents'."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from modulekge.answers.predictor import Known
from modulekge.answers.questions import Answer, Question
from modulekge.choices import FEW
from modulekge.data.type_constraints import Types
from modulekge.errors import QuestionError
from modulekge.server import replies
from modulekge.server.growing import GrowingRun
from modulekge.server.links import MOST_LINKS
from modulekge.server.requests import MOST_ANSWERS, Ask, Body, Explain, Name, OneTriple
from modulekge.server.service import ServedRun
from modulekge.server.views import Addition

Probability = Annotated[float, Field(ge=0, le=1, description="Leave out what is less probable.")]
Count = Annotated[int, Field(ge=1, le=MOST_ANSWERS, description="How many at most.")]
OfTypes = Annotated[Types, Field(description="'constrained': only ends of types that the relation holds.")]


class SearchFor(Body):
    """A part of a name, and how many names."""

    text: Name = Field(description="A name, a part of one, or something like it; '' lists the most used.")
    limit: Count = FEW


class PredictPart(Body):
    """A triple with one part left out, and how many answers."""

    head: Name | None = Field(None, description="An entity, by name or label; left out: heads are asked for.")
    relation: Name | None = Field(None, description="A relation; left out: relations are asked for.")
    tail: Name | None = Field(None, description="An entity; left out: tails are asked for.")
    k: Count = FEW
    known: Known = Field("mark", description="'exclude' leaves out what the graph holds.")
    types: OfTypes = "any"
    min_probability: Probability = 0.0


class AskCompound(Ask):
    """A compound question, how many answers, and how probable at least."""

    min_probability: Probability = 0.0


class FindLinks(Body):
    """Relations, how many links of them, and how probable at least."""

    relations: list[Name] | None = Field(None, max_length=100, description="Left out: all relations.")
    k: int = Field(FEW, ge=1, le=MOST_LINKS, description="How many at most.")
    min_probability: Probability = 0.0
    types: OfTypes = "constrained"


class Around(Body):
    """An entity, and how many facts and new links around it."""

    name: Name = Field(description="An entity, by name or label.")
    known: int = Field(FEW, ge=0, le=200, description="How many facts at most.")
    predicted: int = Field(5, ge=0, le=50, description="How many predicted links at most.")
    types: OfTypes = "constrained"


class AddFact(OneTriple):
    """A triple of names that is true."""

    new_names: bool = Field(False, description="Allow names that the graph does not have, which become new.")


@dataclass(frozen=True)
class Tool:
    """A tool: its schemas are those of what it takes and gives."""

    about: str
    takes: type[BaseModel]
    gives: type[Any]
    answer: Callable[[GrowingRun, Any], Awaitable[Any]]
    text: Callable[[Any], str]
    writes: bool = False


async def _search(run: GrowingRun, asked: SearchFor) -> replies.Matches:
    lookup = run.served.lookup
    entities = lookup.entities(asked.text, asked.limit)
    relations = lookup.relations(asked.text, asked.limit)
    notes = [] if entities.items or relations.items else ["nothing is called so; try a part of the name"]
    return replies.Matches(entities.items, relations.items, entities.total, relations.total, notes)


async def _predict(run: GrowingRun, asked: PredictPart) -> replies.Predictions:
    served, question = run.served, Question(asked.head, asked.relation, asked.tail)
    _check_probabilities(served, asked.min_probability)
    (found,) = await asyncio.wrap_future(
        served.predict([served.lookup.question(question)], asked.k, asked.known, asked.types)
    )
    kept = [a for a in found if a.known or (a.probability or 0.0) >= asked.min_probability]
    notes = [*_cautions(served), *_guesses(served, asked.head, asked.tail)]
    if not any(not a.known for a in kept) and any(not a.known for a in found):
        notes.append(_too_unlikely(asked.min_probability, found))
    if not found:
        notes.append("no answer: nothing is left to ask about")
    return replies.Predictions(str(question), kept, notes)


async def _ask(run: GrowingRun, asked: AskCompound) -> replies.Reasoned:
    served = run.served
    found = await asyncio.wrap_future(
        served.ask(asked.question, asked.k, asked.known, asked.t_norm, asked.types)
    )
    kept = [a for a in found.answers if a.known or a.probability >= asked.min_probability]
    notes = [] if found.probabilities == "calibrated" else ["probabilities are a softmax, fitted to nothing"]
    if not kept:
        least = max(asked.min_probability, found.threshold)
        notes.append(f"no answer has a probability of {least:g} or more")
    return replies.Reasoned(**vars(found) | {"answers": kept}, notes=notes)


async def _explain(run: GrowingRun, asked: Explain) -> replies.Reasons:
    served, triple = run.served, (asked.head, asked.relation, asked.tail)
    why, scored = served.explain(triple, asked.k), served.score([triple])
    (link,) = await asyncio.wrap_future(scored)
    found = await asyncio.wrap_future(why)
    by = f"explained by {found.model}, the member of the mixture that counts most for {asked.relation}"
    notes = [*_cautions(served), *_guesses(served, asked.head, asked.tail), *([by] if served.run.mix else [])]
    return replies.Reasons(link, found, notes)


async def _links(run: GrowingRun, asked: FindLinks) -> replies.NewLinks:
    found = await asyncio.wrap_future(
        run.served.links(asked.relations, asked.k, asked.min_probability, asked.types)
    )
    none = f"no new link has a probability of {asked.min_probability:g} or more"
    return replies.NewLinks(found, [] if found else [none])


async def _neighbourhood(run: GrowingRun, asked: Around) -> replies.Surroundings:
    served = run.served
    found = await asyncio.wrap_future(
        served.neighbourhood(asked.name, asked.known, asked.predicted, asked.types)
    )
    notes = [*_cautions(served), *_guesses(served, asked.name)]
    if asked.predicted and all(link.known for link in found.links):
        notes.append("no new link is predicted")
    return replies.Surroundings(found.nodes, found.links, notes)


async def _add_fact(run: GrowingRun, asked: AddFact) -> Addition:
    return await run.add((asked.head, asked.relation, asked.tail), asked.new_names)


def _check_probabilities(run: ServedRun, least: float) -> None:
    if least and not run.summary.calibrated:
        raise QuestionError(f"min_probability: {_UNCALIBRATED.format(run.name)}; leave it out")


def _cautions(run: ServedRun) -> list[str]:
    return [] if run.summary.calibrated else [_UNCALIBRATED.format(run.name)]


_UNCALIBRATED = "the run {} has no probabilities: it is not calibrated, and scores only rank"


def _guesses(run: ServedRun, *names: str | None) -> list[str]:
    """Say which of the entities that were asked about have learnt nothing."""
    dataset = run.run.dataset
    ids = dict.fromkeys(run.lookup.find_entity(name, "name") for name in names if name is not None)
    return [
        f"{dataset.entities.label(i)!r} is in no training fact: what is said of it is a guess"
        for i in ids
        if dataset.untrained(i)
    ]


def _too_unlikely(least: float, found: list[Answer]) -> str:
    best = max((a for a in found if not a.known), key=lambda a: a.probability or 0.0)
    found_best = f"the best, {best.label}, has {best.probability or 0:.3g}"
    return f"no new answer has a probability of {least:g} or more; {found_best}"


TOOLS = {
    "search": Tool(
        "Find entities and relations by name; the other tools take names as they are found here. "
        'Example: {"text": "franc"}.',
        SearchFor, replies.Matches, _search, replies.matches_text,
    ),
    "predict": Tool(
        "Answer (head, relation, ?), (?, relation, tail) or (head, ?, tail): leave out what is asked for. "
        'Known facts are marked. Example: {"head": "France", "relation": "borders", "k": 5}.',
        PredictPart, replies.Predictions, _predict, replies.predictions_text,
    ),
    "ask": Tool(
        "Answer a question of several links, each answer with the links that speak for it. Links "
        "'entity relation entity' are joined by and, or, not; what is not known is a variable; names of "
        "several words go in quotes. SPARQL is understood too. "
        'Example: {"question": "?c where France borders ?x and ?x uses_currency ?c", "k": 3}.',
        AskCompound, replies.Reasoned, _ask, replies.reasoned_text,
    ),
    "explain": Tool(
        "Say how probable a triple is, and which facts and paths speak for it. "
        'Example: {"head": "France", "relation": "borders", "tail": "Austria"}.',
        Explain, replies.Reasons, _explain, replies.reasons_text,
    ),
    "links": Tool(
        "Find the most probable links of the whole graph that it does not hold. "
        'Example: {"relations": ["member_of"], "k": 5, "min_probability": 0.5}.',
        FindLinks, replies.NewLinks, _links, replies.links_text,
    ),
    "neighbourhood": Tool(
        'Show facts around an entity, and its most probable new links. Example: {"name": "France"}.',
        Around, replies.Surroundings, _neighbourhood, replies.surroundings_text,
    ),
    "add_fact": Tool(
        "Add a fact that is true, which is known from then on. A name that the graph does not have is "
        'refused unless new_names. Example: {"head": "Atlantis", "relation": "borders", "tail": "Portugal", '
        '"new_names": true}.',
        AddFact, Addition, _add_fact, replies.addition_text, writes=True,
    ),
}  # fmt: skip
