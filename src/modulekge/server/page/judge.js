// Predicted links.

import { href } from "./address.js";
import { bar, el, entityLink, percent, relationLink } from "./dom.js";
import { sentence } from "./entity.js";

/** Return new links, the most probable first. */
export function linkList(run, links) {
  if (!links.length) return el("p.quiet", "None.");
  return el("ol.answers.new-links", links.map((link, i) => linkRow(run, link, i + 1)));
}

function linkRow(run, link, place) {
  const { head, relation, tail, labels: [h, r, t], probability } = link, text = percent(probability);
  const why = href("why", { run: run.name, head, relation, tail });
  return el("li",
    el("span.rank", `${place}`),
    el("span.answer", sentence(entityLink(run, head, h), relationLink(run, relation, r), entityLink(run, tail, t))),
    el("span.chance", bar(probability, { words: `probability ${text}` }), el("span", text)),
    el("a.why", { href: why }, "why?"));
}
