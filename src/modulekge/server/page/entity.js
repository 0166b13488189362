// The card of an entity: what is known about it, and what can be asked.

import { go } from "./address.js";
import { get, getOnce, of } from "./api.js";
import { choice, count, el, entityLink, link, relationLink, section, words } from "./dom.js";
import { copyLink, tableButtons } from "./share.js";
import { textOf } from "./question.js";
import { searchBox } from "./search.js";

const PAGE = 50; // facts that "show more" adds
export const ALL_RELATIONS = 500; // that can be chosen from a list

/** Show an entity with its facts by relation. */
export async function show({ run, params, signal, fail }) {
  const [entity, relations] = await Promise.all([
    get(of(run, "entity"), { name: params.name ?? "" }, signal),
    getOnce(of(run, "relations"), { limit: ALL_RELATIONS }),
  ]);
  const facts = undirected(entity.facts).map((group) => factGroup(run, entity, group, { signal, fail }));
  return {
    title: entity.label,
    said: `${entity.label}, ${count(entity.degree, "fact")}`,
    body: [
      el("div.entity-head",
        el("h1", entity.label),
        entity.name === entity.label ? null : el("p.name", entity.name),
        entity.description ? el("p.lead", { dir: "auto" }, entity.description) : null,
        caution([entity]),
        el("p.actions",
          link("around", { run: run.name, name: entity.name }, "Neighbourhood"),
          link("map", { run: run.name, name: entity.name }, "On the map"),
          link("compound", { run: run.name, q: startOf(entity) }, "Question of several links"),
        ),
      ),
      section("Ask the model", askForm(run, entity, relations.items, fail)),
      section(count(entity.degree, "known fact"), facts.length
        ? [el("div.panel", facts), el("div.tools", copyLink(), factFiles(run, entity, fail))]
        : el("p.quiet", "The graph says nothing about it.")),
    ],
  };
}

/** Leave out the facts of a symmetric relation the other way round: they say the same. */
function undirected(groups) {
  const said = ({ relation, total, items }) => JSON.stringify([relation.name, total, items.map(({ name }) => name)]);
  const seen = new Set();
  return groups.filter((group) => !seen.has(said(group)) && seen.add(said(group)));
}

/** Return a question as the sentence it completes: "France borders ?". */
export function sentence(head, relation, tail) {
  return el("span.sentence", head, " ", el("em", relation), " ", tail);
}

/** Return what has to be said of entities that training did not see, if there are any. */
export function caution(entities) {
  const guessed = entities.filter(({ trained }) => !trained).map(({ label }) => label);
  const are = guessed.length > 1 ? "are" : "is";
  return guessed.length
    ? el("p.notice", `${guessed.join(" and ")} ${are} in no training fact: what the model answers is a guess.`)
    : null;
}

/** Return the parameters that ask for what is at the other end of a relation. */
export function asking(run, entity, relation, direction) {
  const side = direction === "out" ? "head" : "tail";
  return { run: run.name, [side]: entity, relation };
}

function factGroup(run, entity, group, { signal, fail }) {
  const { relation, direction, total } = group, name = words(relation.label);
  const linked = relationLink(run, relation.name, name);
  const title = direction === "out" ? sentence(entity.label, linked, "…") : sentence("…", linked, entity.label);
  const list = el("ul.chips", group.items.map((item) => fact(run, item)));
  const more = el("button.plain", { onclick: add, hidden: group.items.length >= total });
  const tell = () => (more.textContent = `Show more (${count(total - list.children.length)})`);
  async function add() {
    const page = {
      name: entity.name, relation: relation.name, direction, offset: list.children.length, limit: PAGE,
    };
    more.disabled = true;
    try {
      const { facts } = await get(of(run, "entity"), page, signal);
      const fresh = facts[0].items.map((item) => fact(run, item));
      list.append(...fresh);
      fresh[0]?.querySelector("a").focus();
      more.hidden = list.children.length >= total;
      tell();
    } catch (error) {
      if (!signal.aborted) fail(error, add);
    } finally {
      more.disabled = false;
    }
  }
  tell();
  const ask = link("ask", asking(run, entity.name, relation.name, direction), "Predict more");
  ask.classList.add("ask");
  return el("div.facts", el("h3", title), el("div", list, more), ask);
}

function fact(run, { name, label, split }) {
  const held = split === "train" ? null : el("small", { title: `held out from training: ${split}` }, split);
  return el("li", entityLink(run, name, [label, held]));
}

/** Return a compound question to begin with, of the relation that an entity has most. */
function startOf({ name, facts: [group] }) {
  if (!group) return null;
  const [head, tail] = group.direction === "out" ? [{ name }, { variable: "x" }] : [{ variable: "x" }, { name }];
  return textOf({ asked: "x", links: [{ join: "and", head, relation: { name: group.relation.name }, tail }] });
}

/** Return buttons that fetch all facts of an entity, a thousand of each relation at most, and save them. */
function factFiles(run, { name }, fail) {
  const place = el("span");
  async function load() {
    try {
      const { facts } = await get(of(run, "entity"), { name, limit: 1000 });
      const rows = facts.flatMap(({ relation, direction, items }) => items.map((other) => (direction === "out"
        ? { head: name, relation: relation.name, tail: other.name, split: other.split }
        : { head: other.name, relation: relation.name, tail: name, split: other.split })));
      place.replaceChildren(...tableButtons("facts", rows));
      place.firstChild.focus();
    } catch (error) {
      fail(error, load);
    }
  }
  place.append(el("button.plain", { type: "button", onclick: load }, "Save the facts"));
  return place;
}

/** Return what can be asked: either end of any relation, or how two entities are related. */
function askForm(run, entity, relations, fail) {
  const names = new Map(relations.map(({ name, label }) => [name, words(label)]));
  const usual = entity.facts[0]?.relation.name;
  const relation = choice([...names], usual, { "aria-label": "Relation", onchange: name });
  const ask = (direction) => () => go("ask", asking(run, entity.name, relation.value, direction));
  const [out, back] = ["out", "in"].map((way) => el("button", { onclick: ask(way) }));
  function name() {
    const chosen = names.get(relation.value);
    out.replaceChildren(sentence(entity.label, chosen, "?"));
    back.replaceChildren(sentence("?", chosen, entity.label));
  }
  const other = searchBox({
    run: () => run,
    choose: ({ name }) => go("ask", { run: run.name, head: entity.name, tail: name }),
    fail,
    label: `How is ${entity.label} related to`,
    placeholder: "another entity",
  });
  name();
  return el("div.panel.asks",
    el("div.ask-row", relation, out, back),
    el("div.ask-row", el("span", `How is ${entity.label} related to`), other),
  );
}
