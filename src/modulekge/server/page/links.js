// The links of a compound question, to be chosen row by row.

import { get, of } from "./api.js";
import { choice, el, words } from "./dom.js";
import { freshVariable, variablesOf } from "./question.js";
import { searchBox } from "./search.js";

const JOINS = [["and", "and"], ["not", "and not"], ["or", "or"]];
const FIRST = [["and", "where"], ["not", "where not"]];
const PARTS = { head: "start", relation: "relation", tail: "end" };

/** Return a question to begin with: one link that ends in what is asked for. */
export function blank() {
  return { asked: "x", links: [{ join: "and", head: null, relation: null, tail: { variable: "x" } }] };
}

/**
 * Return rows for a question. `changed(question)` is called with every change made in them. `show` takes another
 * question, `giveWay` leaves all to a text that rows cannot say, and `gap` finds the first part that is open.
 */
export function linkRows({ run, relations, changed, fail, signal }) {
  let question = blank();
  const list = el("ol.links");
  const asked = choice([], null, { id: "asked", onchange: () => change({ asked: asked.value }) });
  const add = el("button", { type: "button", id: "add-link", onclick: addLink }, "Add a link");
  const rows = el("div.rows", list,
    el("div.tools", add, el("label.asked", el("span", "Asked for"), asked)));
  const context = { run, relations, fail, signal, links: () => question.links, set };

  function change(part) {
    question = { ...question, ...part };
    const variables = variablesOf(question.links);
    if (variables.length && !variables.includes(question.asked)) question.asked = variables[0];
    nameAsked();
    changed(question);
  }

  function set(i, part) {
    change({ links: question.links.map((link, j) => (j === i ? { ...link, ...part } : link)) });
  }

  function addLink() {
    const { tail } = question.links.at(-1);
    const head = tail?.variable === undefined ? { variable: question.asked } : tail;
    change({ links: [...question.links, { join: "and", head, relation: null, tail: null }] });
    draw();
    document.getElementById(partId(question.links.length - 1, "relation")).focus();
  }

  function remove(i) {
    const left = question.links.filter((_, j) => j !== i);
    if (left[0].join === "or") left[0] = { ...left[0], join: "and" };
    change({ links: left });
    draw();
    add.focus();
  }

  function nameAsked() {
    const names = new Set([question.asked, ...variablesOf(question.links)]);
    asked.replaceChildren(...[...names].map((name) =>
      el("option", { value: name, selected: name === question.asked }, `?${name}`)));
  }

  function draw() {
    const alone = question.links.length === 1;
    list.replaceChildren(...question.links.map((link, i) => row(context, link, i, alone ? null : () => remove(i))));
    nameAsked();
  }

  function show(other) {
    rows.inert = rows.hidden = false;
    question = other;
    draw();
  }

  show(question);
  const giveWay = () => (rows.inert = true);
  return { node: rows, show, giveWay, gap: () => (rows.inert ? null : gapOf(question)) };
}

function gapOf({ links }) {
  for (const [i, link] of links.entries()) {
    const part = Object.keys(PARTS).find((each) => !link[each]);
    if (part) return { id: partId(i, part), said: `Link ${i + 1} has no ${PARTS[part]} yet.` };
  }
  return null;
}

function partId(i, part) {
  return `link-${i + 1}-${part}`;
}

function row(context, link, i, remove) {
  const join = choice(i ? JOINS : FIRST, link.join, {
    "aria-label": `Link ${i + 1}: how it is joined`, onchange: () => context.set(i, { join: join.value }),
  });
  const button = el("button.plain.remove", {
    type: "button", "aria-label": `Remove link ${i + 1}`, disabled: !remove, onclick: remove,
  }, "×");
  return el("li.link", join, term(context, link, i, "head"), relationOf(context, link, i),
    term(context, link, i, "tail"), button);
}

/** Return the list of relations; one that is too rare for it, or that nobody knows, is added to it. */
function relationOf({ relations, set }, link, i) {
  const options = relations.map(({ name, label }) => [name, words(label)]), now = link.relation?.name ?? "";
  const meant = relations.find(({ name, label }) => [name, label].includes(now))?.name ?? now;
  if (!options.some(([name]) => name === meant)) options.unshift([meant, meant || "relation"]);
  const box = choice(options, meant, {
    id: partId(i, "relation"), "aria-label": `Link ${i + 1}: relation`,
    onchange: () => set(i, { relation: box.value ? { name: box.value } : null }),
  });
  return box;
}

/** Return a box for an entity or a variable; what is typed and not chosen counts as it stands. */
function term({ run, links, set, fail, signal }, link, i, part) {
  const box = searchBox({
    run: () => run, fail, offer, kept: ({ label }) => label,
    choose: ({ name, label, variable }) => take(variable === undefined ? { name } : { variable }, label),
    label: `Link ${i + 1}: ${PARTS[part]}`, placeholder: "entity or ?variable",
  });
  const input = box.querySelector("input"), first = link[part];
  let shown = first?.variable === undefined ? (first?.name ?? "") : `?${first.variable}`;

  function offer(text) {
    const known = variablesOf(links());
    return [...new Set([...known, variableIn(text) ?? freshVariable(links())])]
      .map((name) => ({ name: `?${name}`, label: `?${name}`, variable: name,
        note: known.includes(name) ? "variable" : "new variable" }))
      .filter(({ label }) => label.startsWith(text));
  }

  function take(chosen, label) {
    shown = label;
    set(i, { [part]: chosen });
  }

  function typed() {
    const text = input.value.trim();
    if (text === shown) return;
    const variable = variableIn(text);
    take(variable ? { variable } : text ? { name: text } : null, text);
  }

  async function nameIt({ name }) {
    const label = await labelOf(run, name, signal);
    if (input.value !== shown || document.activeElement === input) return;
    input.value = shown = label;
    input.title = name;
  }

  input.id = partId(i, part);
  input.value = shown;
  input.addEventListener("focus", () => input.select());
  input.addEventListener("blur", typed);
  if (first?.name) nameIt(first);
  return box;
}

/** Return the name of the variable that a text is, if it is one. */
function variableIn(text) {
  return /^\?([\p{L}\p{N}_]+)$/u.exec(text)?.[1];
}

/** Return what an entity is called; its name where the search does not find it. */
async function labelOf(run, name, signal) {
  try {
    const { items } = await get(of(run, "entities"), { search: name, limit: 8 }, signal);
    return items.find((item) => item.name === name)?.label ?? name;
  } catch {
    return name; // the box can do without
  }
}
