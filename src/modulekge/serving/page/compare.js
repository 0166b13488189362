// Two runs side by side: figures, curves, relations, and one question to both.

import { go } from "./address.js";
import { getOnce, of } from "./api.js";
import { answerList, answersTo } from "./ask.js";
import { curves } from "./charts.js";
import { bar, choice, el, figure, later, link, section, words } from "./dom.js";
import { ALL_RELATIONS, sentence } from "./entity.js";
import { curve, metricRows } from "./run.js";
import { searchBox } from "./search.js";

const ANSWERS = 10;

/** Show a run and the one of `with` side by side. */
export async function show({ run, runs, params, signal, fail }) {
  const others = runs.filter(({ name }) => name !== run.name);
  const other = others.find(({ name }) => name === params.with) ?? others[0];
  if (!other) return alone(run);
  const pair = [run, other];
  const wholes = await Promise.all(pair.map((each) => getOnce(of(each))));
  const both = wholes.every(({ report }) => report);
  const change = () => go("compare", { ...params, run: run.name, with: chosen.value });
  const chosen = choice(others.map(({ name }) => [name, name]), other.name, { id: "with", onchange: change });
  const drawn = (key) => wholes.map((whole, i) => ({ name: pair[i].name, points: curve(whole, key) }));
  return {
    title: `${run.name} and ${other.name}`,
    body: [
      el("h1", {}, "Compare runs"),
      el("p", { class: "pair" }, key(0, run.name), " with ", key(1, ""), chosen),
      section("Figures", metrics(pair, wholes)),
      section("Training", el("div", { class: "columns" },
        curves("MRR on valid", drawn("mrr")), curves("Loss", drawn("loss"))),
        el("p", { class: "quiet" }, "Losses compare only where both runs have the same one.")),
      both ? section("Relations, by MRR", relations(wholes.map(({ report }) => report.relations))) : null,
      section("Ask both", await questions(pair, params, { signal, fail })),
    ].filter(Boolean),
  };
}

function alone(run) {
  return {
    title: "Compare",
    body: [el("h1", {}, "Compare runs"), el("p", { class: "notice" }, "This server has one run. Start it with two: ",
      el("code", {}, `modulekge serve ${run.name} ANOTHER`))],
  };
}

function key(i, name) {
  return el("span", { class: `key s${i}` }, name);
}

function metrics(pair, wholes) {
  const of = (whole, name) => whole.report?.both[name];
  const rows = metricRows().map(([name, title, write]) => {
    const values = wholes.map((whole) => of(whole, name));
    const order = name === "mr" ? -1 : 1, gap = order * (values[0] - values[1]);
    const cell = (value, wins) => el("td", { class: wins ? "better" : null }, write(value));
    return el("tr", {}, el("th", { scope: "row" }, title), cell(values[0], gap > 0), cell(values[1], gap < 0),
      el("td", { class: "quiet" }, Number.isFinite(gap) ? `${values[0] > values[1] ? "+" : ""}${write(values[0] - values[1])}` : "–"));
  });
  const facts = [["Model", ({ model }) => model], ["k", ({ k }) => k], ["Data", ({ data }) => data], ["Epochs", ({ epochs }) => epochs]];
  const plain = facts.map(([title, read]) =>
    el("tr", {}, el("th", { scope: "row" }, title), pair.map((each) => el("td", {}, `${read(each)}`)), el("td", {})));
  const head = ["", ...pair.map(({ name }, i) => key(i, name)), "difference"].map((each) => el("th", { scope: "col" }, each));
  return el("table", { class: "metrics" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows, plain));
}

function relations(parts) {
  const of = parts.map((part) => new Map(part.map((each) => [each.name, each])));
  const names = [...new Set(parts.flat().map(({ name }) => name))];
  const rows = names.map((name) => {
    const values = of.map((each) => each.get(name)?.both.mrr);
    const label = of[0].get(name)?.label ?? of[1].get(name)?.label ?? name;
    return { values, node: el("li", {}, el("span", { title: name }, words(label)),
      el("span", { class: "two-bars" }, values.map((value, i) => bar(value ?? 0, { second: i === 1 }))),
      el("span", {}, values.map((value) => el("span", {}, figure(value))))) };
  });
  rows.sort((a, b) => (b.values[0] ?? 0) - (a.values[0] ?? 0));
  return el("ul", { class: "bars wide" }, rows.map(({ node }) => node));
}

async function questions(pair, params, { signal, fail }) {
  const [run] = pair, { items } = await getOnce(of(run, "relations"), { limit: ALL_RELATIONS });
  const side = params.tail ? "tail" : "head", entity = params.head ?? params.tail;
  const relation = params.relation ?? items[0]?.name;
  const to = (change) => go("compare", {
    run: run.name, with: pair[1].name, relation, [side]: entity, ...change,
  });
  const box = searchBox({
    run: () => run, choose: ({ name }) => to({ [side]: name }), fail,
    label: "Entity to ask both about", placeholder: entity ?? "an entity",
  });
  const relationChoice = choice(items.map(({ name, label }) => [name, words(label)]), relation,
    { id: "compared-relation", "aria-label": "Relation", onchange: () => to({ relation: relationChoice.value }) });
  const turn = el("button", { type: "button", id: "turn", onclick: () => to(side === "head"
    ? { head: null, tail: entity } : { tail: null, head: entity }) }, side === "head" ? "ask for heads" : "ask for tails");
  const form = el("div", { class: "panel ask-row" }, box, relationChoice, entity ? turn : null);
  if (!entity) return [form, el("p", { class: "quiet" }, "Choose an entity, and both runs are asked.")];
  const question = { relation, [side]: entity };
  const load = () => Promise.all(pair.map((each) => answersTo(each, question, Math.min(ANSWERS, each.entities), false, signal)));
  const title = side === "head" ? sentence(entity, words(relation), "?") : sentence("?", words(relation), entity);
  return [form, el("h3", {}, title), later(load, (found) => sideBySide(pair, question, found), { signal })];
}

/** Return the answers of both; each says where the other run ranks it, if among its best. */
function sideBySide(pair, question, found) {
  const ranks = found.map((answers) => new Map(answers.map(({ name, rank }) => [name, rank])));
  const columns = pair.map((run, i) => {
    const shared = new Map([...ranks[1 - i]].map(([name, rank]) => [name, el("span", { class: `key s${1 - i}`, title: `rank in ${pair[1 - i].name}` }, `#${rank}`)]));
    const all = link("ask", { run: run.name, ...question }, "all answers");
    return el("div", {}, el("p", {}, key(i, run.name), " ", all), answerList(run, question, found[i], shared));
  });
  return el("div", { class: "columns" }, columns);
}
