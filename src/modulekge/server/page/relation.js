// A relation: what it joins, how well it is answered, its patterns, and its most probable new links.

import { get, getOnce, of } from "./api.js";
import { askBox } from "./askbox.js";
import { reliability } from "./charts.js";
import { count, el, entityLink, figure, later, link, percent, section, tile } from "./dom.js";
import { linkList } from "./judge.js";
import { missing, pattern } from "./run.js";

const PAGE = 50; // facts that "show more" adds
const NEW = 10; // links that are shown

/** Show a relation. */
export async function show({ run, params, signal, fail }) {
  const relation = await get(of(run, "relation"), { name: params.name ?? "" }, signal);
  const { name, label } = relation, own = { relation: { name, label } };
  const fresh = () => get(of(run, "links"), { relation: name, limit: NEW }, signal);
  return {
    title: label,
    said: `${label}, ${count(relation.triples, "fact")}`,
    body: [
      el("h1", label),
      name === label ? null : el("p.name", name),
      el("div.tiles",
        tile(count(relation.triples), "facts",
          `${count(relation.n_heads, "start")}, ${count(relation.n_tails, "end")}`),
        relation.figures ? tile(figure(relation.figures.both.mrr), "MRR on test",
          `ends ${figure(relation.figures.tail.mrr)}, starts ${figure(relation.figures.head.mrr)}`) : null,
        calibrated("ends", relation.tails), calibrated("starts", relation.heads)),
      section("Ask", askBox({ run, fail, given: own })),
      section("Best new links", run.calibrated
        ? [later(fresh, ({ links }) => linkList(run, links, { fail, signal }), { signal, waiting: "Looking for them…" }),
          el("p", link("review", { run: run.name, relation: name }, "Review more of them"))]
        : missing("has no probabilities yet", `modulekge calibrate …/${run.name}`, "makes them")),
      section("How true its probabilities are", charts(relation)),
      section("Patterns", later(() => getOnce(of(run, "algebra")), (found) => patterns(run, name, found), {
        signal, waiting: "Comparing relations: seconds, or a minute where they are many…",
      })),
      section("Facts", members(run, relation, { signal, fail })),
    ],
  };
}

function calibrated(what, found) {
  return found && tile(percent(found.after.error), `calibration error, ${what}`, count(found.questions, "question"));
}

function charts({ tails, heads }) {
  const drawn = [["Ends", tails], ["Starts", heads]].filter(([, found]) => found)
    .map(([title, { before, after }]) => reliability(before.bins, after.bins, title));
  return drawn.length ? el("div.columns", drawn)
    : el("p.quiet", "Too few held-out facts to measure it on its own; the run has what holds for all relations.");
}

function patterns(run, name, { findings }) {
  const own = findings.filter(({ relations }) => relations.includes(name));
  return own.length ? el("ul.patterns", own.map((each) => pattern(run, each)))
    : el("p.quiet", "None that the model shows.");
}

/** Return the facts, page by page. */
function members(run, { name, triples, facts }, { signal, fail }) {
  const row = ({ head, tail, split }) => el("li",
    entityLink(run, head.name, head.label), " → ", entityLink(run, tail.name, tail.label),
    split === "train" ? null : el("small", ` ${split}`));
  const list = el("ul.pairs", facts.map(row));
  const more = el("button.plain", { onclick: add, hidden: facts.length >= triples });
  const tell = () => (more.textContent = `Show more (${count(triples - list.children.length)})`);
  async function add() {
    try {
      const page = await get(of(run, "relation"), { name, limit: PAGE, offset: list.children.length }, signal);
      list.append(...page.facts.map(row));
      more.hidden = list.children.length >= triples;
      tell();
    } catch (error) {
      if (!signal.aborted) fail(error, add);
    }
  }
  tell();
  return [list, more];
}
