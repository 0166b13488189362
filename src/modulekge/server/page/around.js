// The neighbourhood of an entity, drawn: facts solid, predicted links dashed.

import { go, href, turnInto } from "./address.js";
import { get, of } from "./api.js";
import { choice, count, el, entityLink, link, percent, svg, toggle, words } from "./dom.js";

const KNOWN = 24; // facts, until more are asked for
const MOST = 192;
const PREDICTED = 8;
const ROW = 24; // height of a line of text, so that labels never lie over each other
const OPENED = 6; // entities whose neighbourhood is shown, too, the last ones
const KNOWN_BEYOND = 6, PREDICTED_BEYOND = 2; // links of each of these
const WIDE = 820; // what two hops need
const INDENT = 30; // of what is beyond an entity
const LETTER = 7.4; // width of a letter of a label, about

/** Show an entity amid its facts and its most probable new links; of those that are opened, what is around them, too. */
export async function show({ run, params, signal }) {
  const types = params.types === "any" ? "any" : "constrained";
  const most = Math.min(MOST, Number.parseInt(params.known, 10) || KNOWN);
  const name = params.name ?? "", names = opened(params), only = params.relation ? { relation: params.relation } : {};
  const [card, { nodes, links }, ...further] = await Promise.all([
    get(of(run, "entity"), { name, limit: 1 }, signal),
    get(of(run, "neighbours"), { name, known: most, predicted: PREDICTED, types, ...only }, signal),
    ...names.map((each) => get(of(run, "neighbours"), { name: each, known: KNOWN_BEYOND, predicted: PREDICTED_BEYOND, types }, signal)),
  ]);
  const same = { ...params, run: run.name }, [centre] = nodes;
  const beyond = new Map(further.map((found) => [found.nodes[0].name, endsOf(found, centre.name)]));
  const toggled = (each) => (beyond.has(each) ? names.filter((other) => other !== each) : [...names, each].slice(-OPENED));
  const open = (each) => href("around", { ...same, open: listOf(toggled(each)) });
  const predicted = links.filter(({ known }) => !known).length, known = links.length - predicted;
  const nearest = [...new Set(links.filter((each) => each.known).map(({ head, tail }) => (head === centre.name ? tail : head)))].slice(0, OPENED);
  return {
    title: `Around ${centre.label}`,
    said: `${count(known, "fact")} and ${count(predicted, "predicted link")} around ${centre.label}`,
    body: [
      el("h1", "Around ", entityLink(run, centre.name, centre.label)),
      el("div.tools", relationChoice(card, params, same),
        toggle("two-hops", "Two hops", names.length > 0, (on) => go("around", { ...same, open: on ? listOf(nearest) : null })),
        toggle("any-type", "Predict entities of any type, also what does not fit", types === "any",
          (on) => go("around", { ...same, types: on ? "any" : null }))),
      ...(links.length
        ? [legend(known, predicted, known === most ? centre.degree : null),
          figureOf(run, nodes, links, { open, beyond, signal }), known === most && most < MOST
            ? el("p", el("button.plain", { id: "more", onclick: () => turnInto("around", { ...params, known: 2 * most }) },
              "Show more facts"))
            : null]
        : [el("p.notice", "Nothing is known around it, and nothing predicted.")]),
      el("p.quiet", "Click an entity to see what is around it, too, and again to close it; the one in the middle opens its card. ",
        link("map", { run: run.name, name: centre.name }, "See it on the map")),
    ],
  };
}

/** Return what is around an entity, but for one that is drawn already. */
function endsOf({ nodes, links }, without) {
  const byName = new Map(nodes.map((node) => [node.name, node])), [{ name }] = nodes;
  return links.map((each) => ({ ...each, out: each.head === name, node: byName.get(each.head === name ? each.tail : each.head) }))
    .filter(({ node }) => node && node.name !== without && node.name !== name);
}

/** Return the entities whose neighbourhood is shown, too. */
function opened({ open }) {
  try {
    const names = JSON.parse(open ?? "[]");
    return Array.isArray(names) ? names.filter((name) => typeof name === "string").slice(-OPENED) : [];
  } catch {
    return [];
  }
}

function listOf(names) {
  return names.length ? JSON.stringify(names) : null;
}

/** Return a choice of the relations that an entity has, of which one can be shown alone. */
function relationChoice({ facts }, params, same) {
  const names = new Map(facts.map(({ relation }) => [relation.name, relation.label]));
  const chosen = choice([["", "all relations"], ...names], params.relation, {
    id: "only", onchange: () => go("around", { ...same, relation: chosen.value }),
  });
  return el("label.asked", el("span", "Show"), chosen);
}

/** Return the drawing of an entity amid its links, as wide as there is room. */
function figureOf(run, nodes, links, { open, beyond, signal }) {
  const byName = new Map(nodes.map((node) => [node.name, node])), [centre] = nodes;
  const groups = grouped(links, centre.name, byName, beyond), figure = el("figure.neighbourhood.panel");
  new ResizeObserver(([entry], observer) => {
    if (signal.aborted) return observer.disconnect();
    figure.replaceChildren(drawing(run, centre, groups, entry.contentRect.width, open));
    figure.scrollLeft = (figure.scrollWidth - figure.clientWidth) / 2;
  }).observe(figure);
  return figure;
}

function legend(known, predicted, all) {
  const line = (dashed) => svg("svg", { width: 34, height: 10, "aria-hidden": "true" },
    svg(dashed ? "path.edge.predicted" : "path.edge", { d: "M1 5h32" }));
  const least = all ? `, of ${count(all)}` : "";
  return el("p.legend",
    el("span", line(false), ` known (${count(known)} drawn${least})`),
    el("span", line(true), ` predicted (${count(predicted)}), with its probability`));
}

/** Return the links of the centre by relation and direction: what stands together on the drawing. */
function grouped(links, centre, byName, beyond) {
  const groups = new Map(), shown = new Set();
  for (const link of links) {
    const out = link.head === centre, other = out ? link.tail : link.head;
    if (!out && link.tail !== centre) continue;
    const key = `${out} ${link.relation}`;
    if (!groups.has(key)) groups.set(key, { name: words(link.label), out, ends: [] });
    groups.get(key).ends.push({ ...link, node: byName.get(other), beyond: shown.has(other) ? [] : beyond.get(other) ?? [] });
    if (beyond.has(other)) shown.add(other); // what stands in several relations is opened once
  }
  return [...groups.values()];
}

/** Return groups in two columns of nearly equal height; a group that does not fit goes on in the other. */
function columns(groups) {
  const rows = groups.flatMap((group) => [{ group }, ...group.ends.flatMap((end) =>
    [{ group, end }, ...end.beyond.map((child) => ({ group, end: child, child: true }))])]);
  let half = Math.ceil(rows.length / 2);
  if (rows[half - 1]?.end === undefined) half -= 1; // a heading never ends a column
  const right = rows.slice(0, half), left = rows.slice(half);
  while (left[0]?.child) right.push(left.shift()); // what is beyond an entity stays with it
  if (left[0]?.end) left.unshift({ group: left[0].group });
  return [right, left];
}

function drawing(run, centre, groups, given, open) {
  const far = groups.some(({ ends }) => ends.some(({ beyond }) => beyond.length));
  const width = far ? Math.max(WIDE, given) : given; // else one scrolls
  const sides = columns(groups);
  const height = ROW * (Math.max(...sides.map((rows) => rows.length)) + 2);
  const middle = { x: width / 2, y: height / 2 };
  const reach = Math.max(46, Math.min((far ? 0.15 : 0.3) * width, width / 2 - 18 * LETTER));
  const room = Math.floor((width / 2 - reach - 16) / LETTER);
  const edges = svg("g"), nodes = svg("g");
  sides.forEach((rows, i) => {
    const side = i === 0 ? 1 : -1, top = middle.y - (ROW * (rows.length - 1)) / 2;
    let parent;
    rows.forEach(({ group, end, child }, j) => {
      const y = top + ROW * j, bend = (y - middle.y) / (0.62 * height);
      const at = { x: middle.x + side * reach * Math.sqrt(1 - bend * bend), y };
      if (!end) nodes.append(heading(group, at, side, room));
      else if (child) {
        const there = { x: parent.x + side * INDENT, y };
        edges.append(svg(end.known ? "path.edge" : "path.edge.predicted", { d: `M${parent.x} ${parent.y}V${y}H${there.x}` }));
        nodes.append(neighbour((name) => href("around", { run: run.name, name }), end, there, side, room - INDENT / LETTER, wordsOf(end)));
      }
      else {
        parent = at;
        edges.append(edge(middle, at, end));
        nodes.append(neighbour(open, end, at, side, room));
      }
    });
  });
  const label = `Neighbourhood of ${centre.label}`;
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label },
    edges, nodes, middleNode(run, centre, middle, Math.floor((2 * reach) / LETTER)));
}

function heading({ name, out }, { x, y }, side, room) {
  const text = out ? `${name} →` : `← ${name}`;
  return svg("text.relation", { x: x + side * 4, y: y + 6, "text-anchor": anchor(side) },
    short(text, room), svg("title", out ? `the middle ${name} these` : `these ${name} the middle`));
}

function edge(from, to, { known, probability }) {
  const bend = from.x + 0.55 * (to.x - from.x);
  const d = `M${from.x} ${from.y}C${bend} ${from.y} ${bend} ${to.y} ${to.x} ${to.y}`;
  const path = svg(known ? "path.edge" : "path.edge.predicted", { d });
  if (!known && probability !== null) path.style.strokeWidth = `${1 + 2 * probability}px`;
  return path;
}

/** Return the relation of what is beyond an entity, as it reads from there. */
function wordsOf({ label, out }) {
  return out ? `${words(label)} → ` : `← ${words(label)} `;
}

function neighbour(open, { node, known, probability }, { x, y }, side, room, before = "") {
  const chance = known || probability === null ? "" : percent(probability);
  const said = known ? `${node.label}, known` : `${node.label} ${chance}, predicted`;
  const text = svg("text", { x: x + side * 10, y: y + 4.5, "text-anchor": anchor(side) },
    before && svg("tspan.relation", short(before, Math.floor(room / 2))),
    short(node.label, Math.max(4, Math.floor(room - (chance ? 5 : 0) - Math.min(before.length, room / 2)))),
    chance && svg("tspan.probability", ` ${chance}`));
  return svg("a", { href: open(node.name) }, svg("title", said),
    svg(known ? "circle.node" : "circle.node.predicted", { cx: x, cy: y, r: 5 }), text);
}

function middleNode(run, { name, label }, { x, y }, room) {
  return svg("a.middle", { href: href("entity", { run: run.name, name }) },
    svg("circle.node", { cx: x, cy: y, r: 8 }),
    svg("text", { x, y: y - 16, "text-anchor": "middle" }, short(label, room), svg("title", label)));
}

function anchor(side) {
  return side > 0 ? "start" : "end";
}

function short(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
