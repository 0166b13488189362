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
  const intro = el("div.hero",
    el("h1", `Explore ${run.data}`),
    el("p.lead",
      `${count(run.triples, "fact")} about ${count(run.entities, "entity", "entities")}; `,
      `${run.model} says what is missing. Search for an entity, or begin with one of these.`),
  );
  const examples = entities.items.map((entity) =>
    el("li", entityLink(run, entity.name, [el("span", entity.label), degree(entity)])),
  );
  return {
    title: run.data,
    body: [
      intro,
      section("Best-connected entities", el("ul.examples", examples)),
      el("div.columns",
        section("Relations", relationBars(relations)),
        section("Runs", el("ul.runs", runs.map((each) => card(each, run)))),
      ),
    ],
  };
}

function degree(entity) {
  return el("span.quiet", count(entity.degree, "fact"));
}

function relationBars({ items, total }) {
  const most = Math.max(1, ...items.map(({ triples }) => triples));
  const rows = items.map(({ name, label, triples }) =>
    el("li", el("span", { title: name }, words(label)), bar(triples / most), el("span", count(triples))),
  );
  const rest = total - items.length;
  return [el("ul.bars", rows), rest ? el("p.quiet", `and ${count(rest)} more`) : null];
}

function card(run, current) {
  const state = run.calibrated ? "calibrated" : "not calibrated";
  return el(run.name === current.name ? "li.panel.current" : "li.panel",
    link("", { run: run.name }, el("strong", run.name)),
    el("span.quiet", `${run.model}, k = ${run.k}, ${count(run.epochs, "epoch")}, ${state}`),
    el("span", `test MRR ${figure(run.test_mrr)} · `, link("run", { run: run.name }, "how well it answers")),
  );
}
