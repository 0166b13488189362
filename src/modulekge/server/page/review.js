// The most probable new links, to be judged one after another, by keys or by clicks.

import { go, turnInto } from "./address.js";
import { get, getOnce, of } from "./api.js";
import { reliability } from "./charts.js";
import { choice, count, el, figure, later, section } from "./dom.js";
import { ALL_RELATIONS } from "./entity.js";
import { judged, linkRow, nameBox } from "./judge.js";
import { missing } from "./run.js";
import { saveAs, tableButtons } from "./share.js";

const FIRST = 20; // links, until more are asked for
const MOST = 200;

/** Show the queue of a relation, or of all. */
export async function show({ run, params, signal, fail }) {
  const title = "Review new links";
  if (!run.calibrated) {
    const notice = missing("has no probabilities yet", `modulekge calibrate …/${run.name}`, "makes them");
    return { title, body: [el("h1", title), notice] };
  }
  const k = Math.min(MOST, Number.parseInt(params.k, 10) || FIRST);
  const asked = { limit: k, ...(params.relation && { relation: params.relation }) };
  const [{ links }, before, { items }] = await Promise.all([
    get(of(run, "links"), asked, signal), judged(run, signal), getOnce(of(run, "relations"), { limit: ALL_RELATIONS }),
  ]);
  const relation = choice([["", "all relations"], ...items.map(({ name, label }) => [name, label])], params.relation, {
    id: "relation", onchange: () => go("review", { run: run.name, relation: relation.value }),
  });
  const rows = links.map((link, i) => linkRow(run, link, i + 1, { fail, before }));
  const list = el("ol.answers.new-links.queue", { tabindex: 0, "aria-label": "New links, by probability", id: "queue" },
    rows.map(({ node }) => node));
  keys(list, rows);
  const measured = () => later(() => get(of(run, "agreement"), {}, signal), (found) => agreement(run, found, fail), { signal });
  const judgements = section("Judgements", measured());
  list.addEventListener("judged", () => judgements.lastChild.replaceWith(measured()));
  const more = links.length === k && k < MOST
    ? el("p", el("button.plain", { id: "more", onclick: () => turnInto("review", { ...params, k: 2 * k }) }, "Show more"))
    : null;
  return {
    title,
    said: `${count(links.length, "new link")} to review`,
    body: [
      el("h1", title),
      el("p.lead", "The most probable links that the graph does not hold. What you accept or reject is kept beside the run."),
      el("div.tools", el("label.asked", el("span", "Relation"), relation), nameBox(), tableButtons("links", links)),
      el("p.quiet", "In the list: ", key("j"), " ", key("k"), " next and last, ", key("a"), " accept, ", key("r"),
        " reject, ", key("u"), " take back, ", key("w"), " why."),
      links.length ? list : el("p.notice", "No new links."),
      more,
      judgements,
    ],
  };
}

/** Let keys go through the links and judge the one that is marked. */
function keys(list, rows) {
  let at = -1;
  const mark = (next) => {
    at = Math.max(0, Math.min(rows.length - 1, next));
    rows.forEach(({ node }, i) => node.classList.toggle("marked", i === at));
    rows[at]?.node.scrollIntoView({ block: "nearest" });
  };
  const judge = async (verdict) => {
    if (at < 0) return mark(0);
    await rows[at].judge.send(verdict);
    if (verdict) mark(at + 1);
  };
  const acts = {
    j: () => mark(at + 1), ArrowDown: () => mark(at + 1), k: () => mark(at - 1), ArrowUp: () => mark(at - 1),
    a: () => judge("accept"), r: () => judge("reject"), u: () => judge(null),
    w: () => rows[at]?.node.querySelector("a.why").click(),
  };
  list.addEventListener("focus", () => at < 0 && mark(0));
  list.addEventListener("click", (event) => mark(rows.findIndex(({ node }) => node.contains(event.target))));
  list.addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input");
    if (!acts[event.key] || !plain) return;
    event.preventDefault();
    acts[event.key]();
  });
}

/** Return how many links were accepted, and whether as often as their probability said. */
function agreement(run, { accepted, rejected, error, bins }, fail) {
  if (!accepted && !rejected) return el("p.quiet", "None yet.");
  const off = error === null ? "" : ` Probabilities are ${figure(error)} off what people accept.`;
  const files = [["CSV", "text/csv", "csv"], ["JSON lines", "application/x-ndjson", "jsonl"],
    ["Parquet", "application/vnd.apache.parquet", "parquet"]];
  const save = async (kind, ending) => {
    try {
      await saveAs(of(run, "judgements"), kind, `judgements.${ending}`);
    } catch (problem) {
      fail(problem, () => save(kind, ending));
    }
  };
  return el("div.columns",
    bins.length ? reliability([], bins, "Share that is accepted", "judged") : null,
    el("div", el("p", `${count(accepted)} accepted, ${count(rejected)} rejected.${off}`),
      el("p.quiet", "People judge what they are shown, which is no fair sample of all links."),
      el("p.tools", files.map(([text, kind, ending]) => el("button", { onclick: () => save(kind, ending) }, text)))));
}

function key(text) {
  return el("kbd", text);
}
