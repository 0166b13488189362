// Why a triple scores as it does: facts that speak for it, paths, and entities that are like its ends.

import { href } from "./address.js";
import { of, post, ServerError } from "./api.js";
import { labelsOf } from "./ask.js";
import { bar, count, el, entityLink, figure, later, link, percent, relationLink, section, tile, words } from "./dom.js";
import { caution, sentence } from "./entity.js";
import { graph } from "./graph.js";

/** Show what speaks for a triple. */
export async function show({ run, params, signal }) {
  const { head, relation, tail } = params;
  if (!head || !relation || !tail) throw new ServerError("This address names no triple to explain.");
  const [{ links: [scored] }, { entities }] = await Promise.all([
    post(of(run, "score"), { triples: [[head, relation, tail]] }, signal),
    labelsOf(run, { head, tail }, signal),
  ]);
  const [h, r, t] = scored.labels;
  const load = () => post(of(run, "explain"), { head, relation, tail }, signal);
  const draw = (why) => [
    ...(why.model === run.model ? [] : [el("p.quiet", `Explained by ${why.model}, the member of the mixture `,
      `that counts most for ${words(r)}; ranks and scores below are its own.`)]),
    ...("left_out" in why ? byPaths(run, why, signal) : byVectors(run, why, signal)),
  ];
  return {
    title: `Why ${h} ${words(r)} ${t}?`,
    body: [
      el("h1.question", "Why ", triple(run, scored), "?"),
      caution(entities),
      el("div.tiles",
        scored.probability === null ? tile(scored.split === null ? "new" : "known", kept(scored.split))
          : tile(percent(scored.probability), "probability of a missing fact", kept(scored.split)),
        tile(`#${count(scored.tail_rank)}`, link("ask", { run: run.name, head, relation }, sentence(h, words(r), "?")),
          "of all candidates"),
        tile(`#${count(scored.head_rank)}`, link("ask", { run: run.name, relation, tail }, sentence("?", words(r), t)),
          "of all candidates"),
      ),
      el("p.quiet", "See also the ", link("ask", { run: run.name, head, tail }, "relations between the two"), "."),
      later(load, draw, { signal, waiting: "Looking for what speaks for it…" }),
    ],
  };
}

function byVectors(run, why, signal) {
  const [h, , t] = why.triple.labels;
  return [
    section("Facts that speak for it", supports(run, why)),
    section("Paths from one to the other", together(run, why.triple, why.routes, signal), routes(run, why.routes)),
    section("Entities like them", el("div.columns",
      near(run, why.triple.head, h, why.near_head), near(run, why.triple.tail, t, why.near_tail))),
  ];
}

/** Return the paths that a model of paths followed, and what the score loses without their facts. */
function byPaths(run, why, signal) {
  const gone = why.left_out.map((fact) => el("li", triple(run, fact)));
  return [
    ...(gone.length ? [section("Left out of the graph meanwhile, as in training", el("ul", gone))] : []),
    section("Paths that carried the score", together(run, why.triple, why.routes, signal), carried(run, why)),
    ...(why.supports.length ? [section("Facts of these paths", worths(run, why))] : []),
  ];
}

function carried(run, { routes: found, reached, layers }) {
  if (!reached) {
    return el("p.quiet", `No path of up to ${count(layers, "fact")} leads there: no fact speaks for this score, `,
      "which is that of every entity out of reach.");
  }
  if (!found.length) return el("p.quiet", `No path of up to ${count(layers, "fact")} raises this score.`);
  const items = found.map((route) => el("li.panel", chain(run, route),
    el("p.quiet", `Mean gradient of the score by these edges: ${figure(route.weight, 3)}.`)));
  return el("ul.routes", items);
}

function worths(run, { supports: found, candidates, facts_between: between, as_tail: before, without }) {
  const rows = found.map(({ fact, influence, share }) =>
    el("li", triple(run, fact), bar(share), el("span", figure(influence, 2))));
  const note = `What the score loses without each: ${count(candidates)} were left out, one at a time, of ` +
    `${count(between)} on any path. Without all of these the rank goes from ${count(before.rank)} to ` +
    `${count(without.rank)}, the score from ${figure(before.score, 2)} to ${figure(without.score, 2)}.`;
  return [el("ul.bars.wide", rows), el("p.quiet", note)];
}

function kept(split) {
  if (split === null) return "not in the graph";
  return split === "train" ? "a training fact" : `held out from training: ${split}`;
}

function triple(run, { head, relation, tail, labels }) {
  const [h, r, t] = labels;
  const middle = relationLink(run, relation, words(r));
  return sentence(entityLink(run, head, h), middle, entityLink(run, tail, t));
}

function supports(run, { supports: found, candidates, facts_around: around }) {
  if (!found.length) return el("p.quiet", "No training fact around it raises its score.");
  const rows = found.map(({ fact, share }) =>
    el("li", triple(run, fact), bar(share), el("span", percent(share))));
  const looked = candidates < around ? `${count(candidates)} of ${count(around)}` : `all ${count(around)}`;
  const note = `Share of what raises the score, over ${looked} training facts that touch either end.`;
  return [el("ul.bars.wide", rows), el("p.quiet", note)];
}

function routes(run, found) {
  if (!found.length) return el("p.quiet", "No path of up to three training facts leads there.");
  const items = found.map((route) => el("li.panel", chain(run, route), worth(route)));
  return el("ul.routes", items);
}

/** Return all paths as one picture; an entity stands as far on the way as it does on average. */
function together(run, { head, tail }, found, signal) {
  if (found.length < 2) return null;
  const most = Math.max(...found.map(({ facts }) => facts.length)), shares = new Map(), labels = new Map(), edges = new Map();
  for (const { facts, ways } of found) {
    facts.forEach((fact, i) => {
      const [h, middle, t] = fact.labels, forward = ways[i] === "forward";
      labels.set(fact.head, h).set(fact.tail, t);
      edges.set(JSON.stringify([fact.head, fact.relation, fact.tail]), { from: fact.head, to: fact.tail, label: words(middle), known: true });
      const next = forward ? fact.tail : fact.head;
      shares.set(next, [...(shares.get(next) ?? []), (i + 1) / facts.length]);
    });
  }
  const layer = (id) => {
    if (id === head) return 0;
    const all = shares.get(id), mean = all.reduce((sum, share) => sum + share, 0) / all.length;
    return id === tail ? most : Math.min(most - 1, Math.max(1, Math.round(mean * most)));
  };
  const nodes = [...labels].map(([id, label]) =>
    ({ id, label, layer: layer(id), marked: id === head || id === tail, href: href("entity", { run: run.name, name: id }) }));
  return el("div.panel", graph({ nodes, edges: [...edges.values()], label: "All of these paths together", signal }));
}

/** Return a path as entities with arrows between them, each as its fact points. */
function chain(run, { facts, ways }) {
  const ends = facts.map((fact, i) => {
    const [h, , t] = fact.labels;
    const there = [fact.head, h], back = [fact.tail, t];
    return ways[i] === "forward" ? [there, back] : [back, there];
  });
  const node = ([name, label]) => el("span.node", entityLink(run, name, label));
  const steps = facts.flatMap((fact, i) => [
    el("span", { class: `step ${ways[i]}` }, relationLink(run, fact.relation, fact.labels[1]), " "),
    node(ends[i][1]),
  ]);
  return el("p.chain", node(ends[0][0]), " ", ...steps.flatMap((step) => [step, " "]));
}

function worth({ evidence, paths }) {
  const { share, chance, pairs } = evidence;
  const such = paths > 1 ? ` There are ${count(paths)} such paths here.` : "";
  return el("p.quiet",
    `Of ${count(pairs, "other pair")} joined like this, the relation holds for ${percent(share)}; `,
    `by chance for ${percent(chance)}.${such}`);
}

function near(run, name, label, found) {
  const rows = found.map((each) =>
    el("li", entityLink(run, each.name, each.label), el("span.quiet", figure(each.likeness, 2))));
  return el("div.panel", el("h3", "Nearest to ", entityLink(run, name, label)),
    el("ol.near", rows));
}
