// A run: how it was trained, how well it answers, and what its relations are to each other.

import { getOnce, of } from "./api.js";
import { curves, reliability } from "./charts.js";
import { bar, count, el, figure, later, link, percent, section, tile, words } from "./dom.js";

const METRICS = [["mrr", "MRR"], ["hits@1", "Hits@1"], ["hits@3", "Hits@3"], ["hits@10", "Hits@10"], ["mr", "Mean rank"]];

const LAWS = {
  symmetric: ([r]) => [r, " is symmetric"],
  antisymmetric: ([r]) => [r, " never goes both ways"],
  inverse: ([r, q]) => [r, " is the inverse of ", q],
  equal: ([r, q]) => [r, " is the same as ", q],
  composition: ([r, q, p]) => [r, " then ", q, " amounts to ", p],
  "not commuting": ([r, q]) => [r, " and ", q, " lead elsewhere in the other order"],
};

/** Show a run. */
export async function show({ run, runs, signal }) {
  const whole = await getOnce(of(run));
  const other = runs.find(({ name }) => name !== run.name);
  return {
    title: run.name,
    body: [
      el("h1", {}, run.name),
      el("p", { class: "lead" }, `${run.model} with k = ${run.k} on ${run.data}: ${count(run.entities, "entity", "entities")}, `,
        `${count(run.relations, "relation")}, ${count(run.triples, "fact")}; ${count(run.epochs, "epoch")}. `,
        other ? link("compare", { run: run.name, with: other.name }, "Compare with another run") : null),
      whole.report ? overall(whole.report) : notReported(run),
      section("Training", el("div", { class: "columns" },
        curves("Loss", [{ name: run.name, points: curve(whole, "loss") }]),
        curves("MRR on valid", [{ name: run.name, points: curve(whole, "mrr") }]))),
      whole.report ? section("Relations, by MRR", relationTable(whole.report.relations)) : null,
      section("Calibration", calibration(run, whole.calibration)),
      section("Laws of relations", later(() => getOnce(of(run, "algebra")), laws,
        { signal, waiting: "Comparing relations… (seconds; a minute where they are many)" })),
      el("details", {}, el("summary", {}, "Settings"), settings(whole.settings)),
    ].filter(Boolean),
  };
}

/** Return [epoch, value] of a run's curve. */
export function curve(whole, value) {
  return whole.curve.map((epoch) => [epoch.epoch, epoch[value]]);
}

/** Return the metrics as rows of [key, name], each figure written as it is usual. */
export function metricRows() {
  return METRICS.map(([key, name]) => [key, name, (value) => figure(value, key === "mr" ? 1 : 3)]);
}

function overall({ both, head, tail, intervals, split, triples }) {
  const tiles = metricRows().map(([key, name, write]) => {
    const [low, high] = intervals?.[key] ?? [];
    return tile(write(both[key]), name, low === undefined ? null : `${write(low)} – ${write(high)}`);
  });
  const sides = [["heads asked for", head], ["tails asked for", tail]].map(([name, side]) =>
    `${name}: MRR ${figure(side.mrr)}`);
  return section(`On ${split}`, el("div", { class: "tiles" }, tiles),
    el("p", { class: "quiet" }, `Filtered ranks of ${count(triples, "fact")}, with 95 % intervals. ${sides.join("; ")}.`));
}

function notReported(run) {
  return el("p", { class: "notice" },
    "This run was not evaluated yet: ", el("code", {}, `modulekge evaluate ${run.name}`), " reports on it.");
}

function relationTable(relations) {
  const rows = [...relations].sort((a, b) => b.both.mrr - a.both.mrr).map(({ name, label, triples, both, head, tail }) =>
    el("tr", {}, el("th", { scope: "row", title: name }, words(label ?? name)),
      el("td", { class: "bar-cell" }, bar(both.mrr)), el("td", {}, figure(both.mrr)),
      el("td", { class: "extra" }, figure(head.mrr)), el("td", { class: "extra" }, figure(tail.mrr)),
      el("td", {}, count(triples))));
  const head = ["Relation", "", "MRR", "heads", "tails", "facts"].map((text, i) =>
    el("th", { scope: "col", class: i === 3 || i === 4 ? "extra" : null }, text));
  return el("table", { class: "relations" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
}

function calibration(run, found) {
  if (!found) {
    return el("p", { class: "notice" },
      "Not calibrated yet: ", el("code", {}, `modulekge calibrate ${run.name}`), " makes probabilities of scores.");
  }
  if (!found.measured) return el("p", { class: "quiet" }, "Calibrated, but not measured: the graph has no test facts.");
  const { before, after, questions, sets, split } = found.measured;
  return el("div", { class: "columns" }, reliability(before.bins, after.bins), el("div", {},
    el("div", { class: "tiles" },
      tile(percent(after.error), "calibration error", `softmax ${percent(before.error)}`),
      tile(percent(sets.share), `held by sets of ${percent(sets.asked)}`, `mean size ${figure(sets.size, 1)}`),
      tile(figure(after.brier, 2), "Brier score", `softmax ${figure(before.brier, 2)}`)),
    el("p", { class: "quiet" }, `The ten best answers to ${count(questions, "question")} of ${split}, which it was not fitted to. `,
      "A point on the diagonal: of the answers that were given 30 %, 30 % are true. Larger points are more answers.")));
}

function laws({ findings, commutative, compared }) {
  const rows = (supported) => findings.filter((each) => each.supported === supported).map(law);
  const list = (items, none) => (items.length ? el("ul", { class: "laws" }, items) : el("p", { class: "quiet" }, none));
  const all = commutative ? " In this model every two relations commute, whatever was learned." : "";
  return [
    el("p", { class: "quiet" }, `${count(compared, "relation")} compared by what they do to entities.${all}`),
    el("h3", {}, "The model and the facts agree"), list(rows(true), "No law is borne out by both."),
    el("h3", {}, "The model believes; the facts do not bear it out"), list(rows(false), "Nothing."),
  ];
}

function law({ kind, labels, similarity, evidence }) {
  const names = labels.map((label) => el("em", {}, words(label)));
  const { share, chance, pairs } = evidence;
  return el("li", {}, el("span", {}, ...LAWS[kind](names)),
    el("span", { class: "quiet" }, `model ${figure(similarity, 2)} · facts ${percent(share)} of ${count(pairs)} `,
      chance ? `(by chance ${percent(chance)})` : null));
}

function settings(values) {
  const rows = Object.entries(values).map(([key, value]) =>
    el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, typeof value === "string" ? value : JSON.stringify(value))));
  return el("table", { class: "settings" }, el("tbody", {}, rows));
}
