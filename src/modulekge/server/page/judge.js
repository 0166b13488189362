// Predicted links, and what people say of them: accepted or rejected, with a reason.

import { href } from "./address.js";
import { get, of, post } from "./api.js";
import { bar, el, entityLink, percent, relationLink } from "./dom.js";
import { sentence } from "./entity.js";

const NAME = "modulekge-name"; // who judges, kept in this browser
const VERDICTS = [["accept", "Accept", "✓"], ["reject", "Reject", "✗"]];

/** Return a box for the name under which judgements are kept. */
export function nameBox() {
  const input = el("input", { type: "text", id: "judge-name", maxlength: 100, value: localStorage.getItem(NAME) ?? "" });
  input.addEventListener("input", () => localStorage.setItem(NAME, input.value.trim()));
  return el("label.judge-name", el("span", "Your name"), input);
}

/** Return what one said of links before, by their names; where it cannot be read, nothing. */
export async function judged(run, signal) {
  const { judgements } = await get(of(run, "judgements"), {}, signal).catch(() => ({ judgements: [] }));
  return new Map(judgements.filter(({ by }) => by === me()).map((each) => [keyOf(each), each]));
}

/** Return switches to accept or reject a link, and a box for the reason once it is judged; they say "judged". */
export function judging(run, triple, { fail, said, label }) {
  const names = { head: triple.head, relation: triple.relation, tail: triple.tail };
  let verdict = said?.verdict ?? null;
  const node = el("span.judging"), reason = el("input", {
    type: "text", "aria-label": `Reason for the verdict on ${label}`, placeholder: "reason, if any", maxlength: 1000,
    value: said?.reason ?? "", onchange: () => send(verdict),
  });
  const buttons = VERDICTS.map(([name, text, sign]) =>
    el("button.plain", {
      type: "button", title: text, "aria-label": `${text} ${label}`, "data-verdict": name,
      onclick: () => send(verdict === name ? null : name),
    }, sign));

  function show() {
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.verdict === verdict)));
    reason.hidden = verdict === null;
  }

  async function send(next) {
    const body = { ...names, verdict: next ?? "withdraw", reason: next ? reason.value.trim() : "" };
    try {
      await post(of(run, "judgements"), { judgements: [body], by: me() });
      verdict = next;
      show();
      node.dispatchEvent(new CustomEvent("judged", { bubbles: true }));
    } catch (error) {
      fail(error, () => send(next));
    }
  }

  show();
  node.append(...buttons, reason);
  return { node, send };
}

/** Return new links with their probability and switches to judge them, the most probable first. */
export function linkList(run, links, { fail, signal }) {
  if (!links.length) return el("p.quiet", "None.");
  const list = el("ol.answers.new-links");
  judged(run, signal).then((before) => {
    list.append(...links.map((link, i) => linkRow(run, link, i + 1, { fail, before }).node));
  });
  return list;
}

/** Return the row of a link, and how it is judged. */
export function linkRow(run, link, place, { fail, before }) {
  const { head, relation, tail, labels: [h, r, t], probability } = link, text = percent(probability);
  const label = `${h} ${r} ${t}`, said = before.get(keyOf(link));
  const judge = judging(run, link, { fail, said, label });
  const node = el("li",
    el("span.rank", `${place}`),
    el("span.answer", sentence(entityLink(run, head, h), relationLink(run, relation, r), entityLink(run, tail, t))),
    el("span.chance", bar(probability, { words: `probability ${text}` }), el("span", text)),
    judge.node,
    el("a.why", { href: href("why", { run: run.name, head, relation, tail }), "aria-label": `why? ${label}` }, "why?"));
  return { node, judge };
}

function keyOf({ head, relation, tail }) {
  return JSON.stringify([head, relation, tail]);
}

function me() {
  return localStorage.getItem(NAME) ?? "";
}
