// Why an entity answers a compound question: its links as a small graph that ends in the answer.

import { href } from "./address.js";
import { el, svg, words } from "./dom.js";
import { graph } from "./graph.js";

/** Return the links that speak for an answer, and those that speak against it, as one drawing. */
export function witness(run, { name, label, links }, signal) {
  const labels = new Map(links.flatMap(({ head, tail, names: [h, , t] }) => [[h, words(head)], [t, words(tail)]]));
  const far = distances(links, name), most = Math.max(...far.values());
  const nodes = [...labels].map(([id, text]) => ({
    id, label: text, href: href("entity", { run: run.name, name: id }), layer: most - far.get(id), marked: id === name,
  }));
  const edges = links.map(({ relation, names: [from, , to], known, negated, probability }) =>
    ({ from, to, label: `${negated ? "not: " : ""}${words(relation)}`, known, negated, probability }));
  return el("div.witness", graph({ nodes, edges, label: `Links that speak for ${words(label)}: ${spoken(links)}`, signal }));
}

/** Return over how many links each entity is from the answer. */
function distances(links, answer) {
  const far = new Map([[answer, 0]]), ends = links.map(({ names: [h, , t] }) => [h, t]);
  const beyond = Math.max(1, links.length);
  for (let step = 1; step <= links.length; step++) {
    for (const [a, b] of ends.flatMap(([h, t]) => [[h, t], [t, h]])) {
      if (far.get(a) === step - 1 && !far.has(b)) far.set(b, step);
    }
  }
  for (const end of ends.flat()) if (!far.has(end)) far.set(end, beyond); // of a part that does not touch the answer
  return far;
}

function spoken(links) {
  return links.map(({ head, relation, tail, negated }) => `${negated ? "not " : ""}${words(head)} ${words(relation)} ${words(tail)}`).join("; ");
}

/** Return what the lines of answers mean, of each kind that is among them. */
export function legend(answers) {
  const links = answers.flatMap((answer) => answer.links);
  const line = (kind) =>
    svg("svg", { width: 34, height: 10, "aria-hidden": "true" }, svg(`path.edge${kind}`, { d: "M1 5h32" }));
  const kinds = [
    [({ known }) => known, [line(""), " known"]],
    [({ known }) => !known, [line(".predicted"), " predicted, with its probability"]],
    [({ negated }) => negated, [line(".negated"), " what should not hold, and how probable it is"]],
  ];
  return el("p.legend", kinds.map(([among, said]) => (links.some(among) ? el("span", said) : null)));
}
