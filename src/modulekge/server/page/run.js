// A run: how it was trained, how well it answers, and what its relations are to each other.

import { getOnce, of } from "./api.js";
import { curves, reliability } from "./charts.js";
import { bar, count, el, figure, later, link, percent, relationLink, section, tile } from "./dom.js";

/** The metrics: key, name, and how a figure is written. */
export const METRICS = [
  ["mrr", "MRR", figure],
  ["hits@1", "Hits@1", figure],
  ["hits@3", "Hits@3", figure],
  ["hits@10", "Hits@10", figure],
  ["mr", "Mean rank", (value) => figure(value, 1)],
];

const PATTERNS = {
  symmetric: ([r]) => [r, " is symmetric"],
  antisymmetric: ([r]) => [r, " never goes both ways"],
  inverse: ([r, q]) => [r, " is the inverse of ", q],
  equal: ([r, q]) => [r, " is the same as ", q],
  composition: ([r, q, p]) => [r, " then ", q, " amounts to ", p],
  commuting: ([r, q]) => [r, " and ", q, " lead to the same in either order"],
  "not commuting": ([r, q]) => [r, " and ", q, " lead elsewhere in the other order"],
};

/** Show a run. */
export async function show({ run, runs, signal }) {
  const { report, calibration, settings, ...whole } = await getOnce(of(run));
  const training = [["Loss", "loss"], ["MRR on valid", "mrr"]].map(([title, value]) =>
    curves(title, [{ name: run.name, points: curve(whole, value) }]));
  const patterns = later(() => getOnce(of(run, "algebra")), (found) => patternLists(run, found), {
    signal, waiting: "Comparing relations: seconds, or a minute where they are many…",
  });
  return {
    title: run.name,
    body: [
      el("h1", run.name),
      summary(run, runs.find(({ name, graph }) => name !== run.name && graph === run.graph)),
      report ? overall(report)
        : missing("was not evaluated yet", `modulekge evaluate …/${run.name}`, "reports on it"),
      section("Training", el("div.columns", training)),
      report ? section("Relations, by MRR", relationTable(run, report.relations)) : null,
      section("Calibration", calibration ? measured(calibration)
        : missing("is not calibrated yet", `modulekge calibrate …/${run.name}`, "makes probabilities")),
      section("Relation patterns", patterns),
      el("details", el("summary", "Settings"), settingsTable(settings)),
    ],
  };
}

/** Return [epoch, value] of a run's training. */
export function curve(whole, value) {
  return whole.curve.map((epoch) => [epoch.epoch, epoch[value]]);
}

function summary(run, other) {
  const { model, k, data, entities, relations, triples, epochs } = run;
  return el("p.lead", `${model} with k = ${k} on ${data}, ${count(epochs, "epoch")}: `,
    `${count(entities, "entity", "entities")}, ${count(relations, "relation")}, ${count(triples, "fact")}. `,
    other ? link("compare", { run: run.name, with: other.name }, "Compare with another run") : null);
}

/** Return what to do about what a run does not have. */
export function missing(what, command, then) {
  return el("p.notice", `This run ${what}: `, el("code", command), ` ${then}.`);
}

function overall({ both, head, tail, intervals, split, triples }) {
  const tiles = METRICS.map(([key, name, write]) =>
    tile(write(both[key]), name, intervals[key] && intervals[key].map((end) => write(end)).join(" – ")));
  return section(`On ${split}`, el("div.tiles", tiles),
    el("p.quiet", `Filtered ranks of ${count(triples, "fact")}, with 95 % intervals. `,
      `MRR of heads ${figure(head.mrr)}, of tails ${figure(tail.mrr)}.`));
}

function relationTable(run, relations) {
  const titles = ["Relation", el("span.unseen", "MRR as a bar"), "MRR", "heads", "tails", "facts"];
  const best = relations.toSorted((a, b) => b.both.mrr - a.both.mrr);
  const rows = best.map(({ name, label, triples, both, head, tail }) =>
    el("tr", el("th", { scope: "row" }, relationLink(run, name, label)),
      el("td.bar-cell", bar(both.mrr)),
      [both, head, tail].map(({ mrr }) => el("td", figure(mrr))),
      el("td", count(triples))));
  const head = el("thead", el("tr", titles.map((text) => el("th", { scope: "col" }, text))));
  return el("table.relations", head, el("tbody", rows));
}

function measured({ measured: found }) {
  if (!found) return el("p.quiet", "Calibrated, but not measured: the graph has no test facts.");
  const { before, after, questions, sets, split } = found;
  return el("div.columns", reliability(before.bins, after.bins), el("div",
    el("div.tiles",
      tile(percent(after.error), "calibration error", `softmax ${percent(before.error)}`),
      tile(percent(sets.share), `of held-out facts are in their ${percent(sets.asked)} prediction set`, `mean size ${figure(sets.size, 1)}`),
      tile(figure(after.brier, 2), "Brier score", `softmax ${figure(before.brier, 2)}`)),
    el("p.quiet", `The ten best answers to ${count(questions, "question")} of ${split}, not fitted to. `,
      "On the diagonal, 30 % of the answers that were given 30 % are true. Larger points: more answers.")));
}

function patternLists(run, { findings, commutative, compared }) {
  const list = (supported) => {
    const items = findings.filter((each) => each.supported === supported).map((each) => pattern(run, each));
    return items.length ? el("ul.patterns", items) : el("p.quiet", "None.");
  };
  const all = commutative ? " In this model every two relations commute, whatever was learned." : "";
  return [
    el("p.quiet", `${count(compared, "relation")} compared by what they do to entities.${all}`),
    el("h3", "The model and the facts agree"), list(true),
    el("h3", "The model believes it; the facts do not bear it out"), list(false),
  ];
}

/** Return a pattern of relations in words, with what speaks for it. */
export function pattern(run, { kind, relations, labels, similarity, evidence: { share, chance, pairs } }) {
  const names = labels.map((label, i) => relationLink(run, relations[i], label));
  const luck = chance ? `, by chance ${percent(chance)}` : "";
  const worth = `model ${figure(similarity, 2)} · facts ${percent(share)} of ${count(pairs)}${luck}`;
  return el("li", el("span", PATTERNS[kind](names)), el("span.quiet", worth));
}

function settingsTable(settings) {
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const rows = Object.entries(settings).map(([key, value]) =>
    el("tr", el("th", { scope: "row" }, key), el("td", text(value))));
  return el("table.settings", el("tbody", rows));
}
