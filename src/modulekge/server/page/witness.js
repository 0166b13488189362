// Why an entity answers a compound question: its links as entities with arrows between them.

import { el, entityLink, percent, svg, words } from "./dom.js";

/** Return the links that speak for an answer as chains, then those that speak against it. */
export function witness(run, { name, links }) {
  const sides = [false, true].map((negated) => chains(links.filter((link) => link.negated === negated), name));
  const [through, against] = sides.map((found) => found.map((chain) => drawn(run, chain, name)));
  for (const chain of against) chain.prepend(el("span.mark.against", "against"), " ");
  return el("div.witness", through, against);
}

/** Return what the lines of answers mean, of each kind that is among them. */
export function legend(answers) {
  const links = answers.flatMap((answer) => answer.links);
  const line = (kind) =>
    svg("svg", { width: 34, height: 10, "aria-hidden": "true" }, svg(`path.edge${kind}`, { d: "M1 5h32" }));
  const against = el("span.mark.against", "against");
  const kinds = [
    [({ known }) => known, [line(""), " known"]],
    [({ known }) => !known, [line(".predicted"), " predicted, with its probability"]],
    [({ negated }) => negated, [against, " what should not hold, and how probable it is"]],
  ];
  return el("p.legend", kinds.map(([among, said]) => (links.some(among) ? el("span", said) : null)));
}

/** Return links as few chains, each from one end of what hangs together, and rather not from the answer. */
function chains(links, answer) {
  const left = new Set(links), found = [];
  while (left.size) {
    let here = startOf([...left], answer);
    const chain = [];
    for (let link; (link = [...left].find(({ names }) => [names[0], names[2]].includes(here)));) {
      const forward = link.names[0] === here;
      left.delete(link);
      chain.push({ link, forward });
      here = link.names[forward ? 2 : 0];
    }
    found.push(chain);
  }
  return found;
}

function startOf(links, answer) {
  const ends = links.flatMap(({ names }) => [names[0], names[2]]);
  const odd = ends.filter((end) => ends.filter((each) => each === end).length % 2);
  return odd.find((end) => end !== answer) ?? odd[0] ?? ends[0];
}

function drawn(run, chain, answer) {
  const node = (name, label) =>
    el(name === answer ? "span.node.answering" : "span.node", entityLink(run, name, words(label)));
  const ends = ({ link, forward }) => {
    const there = [link.names[0], link.head], back = [link.names[2], link.tail];
    return forward ? [there, back] : [back, there];
  };
  const steps = chain.flatMap((step) => [arrow(step), " ", node(...ends(step)[1]), " "]);
  return el("p.chain", node(...ends(chain[0])[0]), " ", ...steps);
}

/** Return an arrow: solid where the link is known, else dashed and with its probability. */
function arrow({ link: { relation, names, known, negated, probability }, forward }) {
  const way = forward ? "forward" : "backward", kind = known ? "known" : "predicted";
  const chance = known ? null : el("span.probability", percent(probability));
  return el("span", { class: `step ${way} ${kind}${negated ? " negated" : ""}`, title: `${names[1]}, ${kind}` },
    el("span", words(relation), known && negated ? " (known)" : null, chance && " ", chance));
}
