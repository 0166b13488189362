// Two runs side by side: figures, curves, relations, and one question to both.

import { go } from "./address.js";
import { getOnce, of } from "./api.js";
import { answerList, answersTo, labelsOf } from "./ask.js";
import { curves, key } from "./charts.js";
import { bar, choice, el, figure, later, link, relationLink, section, words } from "./dom.js";
import { ALL_RELATIONS, sentence } from "./entity.js";
import { METRICS, curve } from "./run.js";
import { searchBox } from "./search.js";

const ANSWERS = 10;
const FACTS = [["Model", "model"], ["k", "k"], ["Data", "data"], ["Epochs", "epochs"]];

/** Show a run and the one of `with` side by side. */
export async function show({ run, runs, params, signal, fail }) {
  const others = runs.filter(({ name }) => name !== run.name);
  const alike = others.filter(({ graph }) => graph === run.graph);
  const other = others.find(({ name }) => name === params.with) ?? alike[0] ?? others[0];
  if (!other) return alone(run);
  const pair = [run, other], same = run.graph === other.graph;
  const [wholes, { items }] = await Promise.all([
    Promise.all(pair.map((each) => getOnce(of(each)))),
    getOnce(of(run, "relations"), { limit: ALL_RELATIONS }),
  ]);
  const change = () => go("compare", { ...params, run: run.name, with: chosen.value });
  const called = ({ name, data, graph }) => [name, graph === run.graph ? name : `${name} (another graph: ${data})`];
  const chosen = choice(others.map(called), other.name, {
    id: "with", "aria-label": "The other run", onchange: change,
  });
  const drawn = (value) => wholes.map((whole, i) => ({ name: pair[i].name, points: curve(whole, value) }));
  const question = section("Ask both", await askBoth(pair, items, params, { signal, fail }));
  const asked = params.head || params.tail;
  return {
    title: `${run.name} and ${other.name}`,
    body: [
      el("h1", "Compare runs"),
      el("p.pair", key(0, run.name), " with ", key(1, chosen)),
      same ? null : el("p.notice", `${run.name} is of ${run.data}, ${other.name} of ${other.data}: figures on `,
        "different graphs do not compare, so neither is called better."),
      asked ? question : null,
      section("Figures", figures(pair, wholes, same)),
      section("Training",
        el("div.columns", curves("MRR on valid", drawn("mrr")), curves("Loss", drawn("loss"))),
        el("p.quiet", "Losses compare only where both runs have the same one.")),
      same && wholes.every(({ report }) => report) ? section("Relations, by MRR", relations(run, wholes)) : null,
      asked ? null : question,
    ],
  };
}

function alone(run) {
  const command = el("code", `modulekge serve ${run.name} ANOTHER`);
  const notice = el("p.notice", "This server has one run. Start it with two: ", command);
  return { title: "Compare runs", body: [el("h1", "Compare runs"), notice] };
}

function figures(pair, wholes, same) {
  const row = (title, ...cells) => el("tr", el("th", { scope: "row" }, title), cells);
  const measured = METRICS.map(([name, title, write]) => {
    const [a, b] = wholes.map(({ report }) => report?.both[name] ?? NaN);
    const ahead = same ? (name === "mr" ? b - a : a - b) : NaN;
    const gap = Number.isFinite(ahead) ? `${a < b ? "−" : "+"}${write(Math.abs(a - b))}` : "–";
    const cell = (value, better) => el(better ? "td.better" : "td", write(value));
    return row(title, cell(a, ahead > 0), cell(b, ahead < 0), el("td.quiet.extra", gap));
  });
  const facts = FACTS.map(([title, field]) =>
    row(title, pair.map((each) => el("td", `${each[field]}`)), el("td.extra")));
  const title = (...text) => el("th", { scope: "col" }, ...text);
  const gap = title("difference");
  gap.classList.add("extra");
  const head = el("thead", el("tr", title(el("span.unseen", "Figure")), pair.map(({ name }, i) => title(key(i, name))), gap));
  return el("table.metrics", head, el("tbody", measured, facts));
}

function relations(run, wholes) {
  const parts = wholes.map(({ report }) => new Map(report.relations.map((each) => [each.name, each])));
  const labels = new Map(parts.flatMap((part) => [...part.values()].map(({ name, label }) => [name, label])));
  const rows = [...labels].map(([name, label]) => ({
    name, label, values: parts.map((part) => part.get(name)?.both.mrr ?? NaN),
  }));
  rows.sort((a, b) => b.values[0] - a.values[0]);
  return el("ul.bars.wide", rows.map(({ name, label, values }) =>
    el("li", relationLink(run, name, label),
      el("span.two-bars", values.map((value, i) => bar(value || 0, { second: i === 1 }))),
      el("span", values.map((value) => el("span", figure(value)))))));
}

async function askBoth(pair, items, params, { signal, fail }) {
  const [run] = pair, side = params.tail ? "tail" : "head", entity = params.head || params.tail;
  const relation = params.relation ?? items[0].name;
  const now = { run: run.name, with: pair[1].name, relation, [side]: entity };
  const to = (change) => go("compare", { ...now, ...change });
  const box = searchBox({
    run: () => run, choose: ({ name }) => to({ [side]: name }), fail,
    label: "Entity to ask both about", placeholder: entity ?? "an entity",
  });
  const chosen = choice(items.map(({ name, label }) => [name, words(label)]), relation, {
    id: "relation", "aria-label": "Relation", onchange: () => to({ relation: chosen.value }),
  });
  if (!entity) {
    return [el("div.panel.ask-row", box, chosen), el("p.quiet", "Choose an entity, and both are asked.")];
  }
  const turned = side === "head" ? { head: null, tail: entity } : { head: entity, tail: null };
  const turn = el("button", { id: "turn", onclick: () => to(turned) }, "Swap sides");
  const question = { relation, [side]: entity };
  const { head, relation: middle, tail } = await labelsOf(run, question, signal);
  const load = () => Promise.all(pair.map((each) => answersOrError(each, question, signal)));
  return [
    el("div.panel.ask-row", box, chosen, turn),
    el("h3", sentence(head, middle, tail)),
    later(load, (found) => sideBySide(pair, question, found), { signal }),
  ];
}

/** Return the answers of a run; where its graph does not have a name, the error that says so. */
async function answersOrError(run, question, signal) {
  try {
    return await answersTo(run, question, ANSWERS, false, signal);
  } catch (error) {
    if (error.status === 404) return error;
    throw error;
  }
}

/** Return the answers of both; each says where the other run ranks it, if among its best. */
function sideBySide(pair, question, found) {
  const columns = pair.map((run, i) => {
    const title = `rank in ${pair[1 - i].name}`;
    const rankThere = ({ name, rank }) => [name, el("span", { title }, key(1 - i, `#${rank}`))];
    const mine = found[i], other = found[1 - i];
    const there = new Map(other instanceof Error ? [] : other.map(rankThere));
    return el("div",
      el("p", key(i, run.name), " ", link("ask", { run: run.name, ...question }, "all answers")),
      mine instanceof Error ? el("p.notice", mine.message) : answerList(run, question, mine, there));
  });
  return el("div.columns", columns);
}
