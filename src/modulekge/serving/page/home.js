// The start page: what the run knows, and where to begin.

import { get, getOnce, of } from "./api.js";
import { bar, count, el, entityLink, figure, link, section, words } from "./dom.js";

const EXAMPLES = 12;
const RELATIONS = 12;

/** Show the run that is chosen, its best-connected entities and its relations. */
export async function show({ run, runs, signal }) {
  const [entities, relations] = await Promise.all([
    get(of(run, "entities"), { limit: EXAMPLES }, signal),
    getOnce(of(run, "relations"), { limit: RELATIONS }),
  ]);
  const intro = el("div", { class: "hero" },
    el("h1", {}, `Explore ${run.data}`),
    el("p", { class: "lead" },
      `${run.model} has learned ${count(run.triples, "fact")} about ${count(run.entities, "entity", "entities")} `,
      "and says what is missing. Search for an entity, or begin with one of these."),
  );
  const examples = entities.items.map((entity) =>
    el("li", {}, entityLink(run, entity.name, [el("span", {}, entity.label), degree(entity)])),
  );
  return {
    title: run.data,
    body: [
      intro,
      section("Best-connected entities", el("ul", { class: "examples" }, examples)),
      el("div", { class: "columns" },
        section("Relations", relationBars(relations)),
        section(runs.length > 1 ? "Runs" : "Run", el("ul", { class: "runs" }, runs.map((each) => card(each, run)))),
      ),
    ],
  };
}

function degree(entity) {
  return el("span", { class: "quiet" }, count(entity.degree, "fact"));
}

function relationBars({ items, total }) {
  const most = Math.max(1, ...items.map(({ triples }) => triples));
  const rows = items.map(({ name, label, triples }) =>
    el("li", {}, el("span", { title: name }, words(label)), bar(triples / most), el("span", {}, count(triples))),
  );
  const rest = total > items.length ? el("p", { class: "quiet" }, `and ${count(total - items.length)} more`) : null;
  return [el("ul", { class: "bars" }, rows), rest];
}

function card(run, current) {
  const state = run.calibrated ? "calibrated" : "not calibrated";
  return el("li", { class: run.name === current.name ? "panel current" : "panel" },
    link("", { run: run.name }, el("strong", {}, run.name)),
    el("span", { class: "quiet" }, `${run.model}, k = ${run.k}, ${count(run.epochs, "epoch")}, ${state}`),
    el("span", {}, `test MRR ${figure(run.test_mrr)} · `, link("run", { run: run.name }, "how well it answers")),
  );
}
