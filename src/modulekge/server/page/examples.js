// Compound questions to begin with, made from facts of whatever graph it is.

import { get, of } from "./api.js";
import { textOf } from "./question.js";
import { words } from "./words.js";

const FEW = 5; // facts of a group that are looked at
const STARTS = 3; // entities to begin from

/**
 * Return questions that the facts answer, about well-connected entities: two hops, two conditions, one "not".
 * Each is its `text`, and how it is `shown`.
 */
export async function examples(run, signal) {
  const card = (name) => get(of(run, "entity"), { name, limit: FEW }, signal);
  const { items } = await get(of(run, "entities"), { limit: STARTS }, signal);
  const makers = [twoHops, bothHold, allBut];
  const found = await Promise.all(items.map(async ({ name }, i) => makers[i](await card(name), card)));
  return found.filter(Boolean).map((question) => ({ text: textOf(question), shown: textOf(labelled(question)) }));
}

/** Return a question with labels for names: to be read, for two entities may share one. */
function labelled({ asked, links }) {
  const own = ({ name, label }) => label === undefined || label === words(name);
  const called = (term) => (own(term) ? term : { name: term.label });
  const parts = links.map(({ join, head, relation, tail }) =>
    ({ join, head: called(head), relation: called(relation), tail: called(tail) }));
  return { asked, links: parts };
}

/** What stands in a relation to what stands in a relation to an entity. */
async function twoHops(start, card) {
  for (const group of start.facts) {
    const middle = await card(group.items[0].name);
    const onward = middle.facts.find(({ relation, items }) =>
      relation.name !== group.relation.name && items.some(({ name }) => name !== start.name));
    if (onward) {
      const links = [link(named(start), group, variable("x")), link(variable("x"), onward, variable("y"))];
      return { asked: "y", links };
    }
  }
  return null;
}

/** What stands in two relations to two entities. */
async function bothHold(start, card) {
  const found = await neighbourWithMore(start, card);
  if (!found) return null;
  const { group, other, end } = found;
  return { asked: "x", links: [link(named(start), group, variable("x")), link(variable("x"), other, named(end))] };
}

/** What stands in one relation to an entity, and not in another one to another. */
async function allBut(start, card) {
  const found = await bothHold(start, card);
  return found && { ...found, links: found.links.map((each, i) => (i ? { ...each, join: "not" } : each)) };
}

async function neighbourWithMore(start, card) {
  for (const group of start.facts) {
    const near = await card(group.items[0].name);
    for (const other of near.facts) {
      const end = other.items.find(({ name }) => name !== start.name);
      if (end && other.relation.name !== group.relation.name) return { group, other, end };
    }
  }
  return null;
}

/** Return a link as a group of facts of its first end points. */
function link(from, { relation, direction }, to) {
  const [head, tail] = direction === "out" ? [from, to] : [to, from];
  return { join: "and", head, relation: named(relation), tail };
}

function named({ name, label }) {
  return { name, label };
}

function variable(name) {
  return { variable: name };
}
