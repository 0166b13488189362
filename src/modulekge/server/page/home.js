// The start page: a place to ask, questions the run got right, and what there is to look at.

import { get, getOnce, of } from "./api.js";
import { askBox } from "./askbox.js";
import { bar, count, el, figure, later, link, percent, relationLink, section } from "./dom.js";
import { sentence } from "./entity.js";

const EXAMPLES = 8;
const RELATIONS = 12;

/** Show where to ask the run that is chosen, and its relations. */
export async function show({ run, runs, signal, fail }) {
  const relations = await getOnce(of(run, "relations"), { limit: RELATIONS });
  const load = () => get(of(run, "examples"), { limit: EXAMPLES }, signal);
  return {
    title: run.data,
    body: [
      el("div.hero",
        el("h1", `Ask ${run.data === "graph" ? run.name : run.data}`),
        el("p.lead",
          `${count(run.triples, "fact")} about ${count(run.entities, "entity", "entities")}; `,
          `${run.model} says what is missing.`)),
      askBox({ run, fail }),
      el("p.actions",
        link("compound", { run: run.name }, "Question of several links"),
        link("review", { run: run.name }, "Review new links"),
        link("bulk", { run: run.name }, "Many questions at once")),
      section("It found these held-out facts", later(load, ({ links }) => examples(run, links), {
        signal, waiting: "Looking for questions it answers…",
      })),
      el("div.columns",
        section("Relations", relationBars(run, relations)),
        section("Runs", el("ul.runs", runs.map((each) => card(each, run)))),
      ),
    ],
  };
}

/** Return facts that training did not see and the run gives first, each as the question it answers. */
function examples(run, links) {
  if (!links.length) return el("p.quiet", "None of those that were tried: ask something of your own.");
  return el("ul.examples", links.map(({ head, relation, labels: [h, r, t], probability, split }) =>
    el("li", link("ask", { run: run.name, head, relation },
      sentence(h, r, t),
      el("span.quiet", probability === null ? "" : `${percent(probability)}, `, `held out (${split})`)))));
}

function relationBars(run, { items, total }) {
  const most = Math.max(1, ...items.map(({ triples }) => triples));
  const rows = items.map(({ name, label, triples }) =>
    el("li", relationLink(run, name, label), bar(triples / most), el("span", count(triples))));
  const rest = total - items.length;
  return [el("ul.bars", rows), rest ? el("p.quiet", `and ${count(rest)} more`) : null];
}

function card(run, current) {
  const state = run.calibrated ? "calibrated" : "not calibrated";
  return el(run.name === current.name ? "li.panel.current" : "li.panel",
    link("", { run: run.name }, el("strong", run.name)),
    el("span.quiet", `${run.data}: ${run.model}, k = ${run.k}, ${count(run.epochs, "epoch")}, ${state}`),
    el("span", `test MRR ${figure(run.test_mrr)} · `, link("run", { run: run.name }, "how well it answers")),
  );
}
