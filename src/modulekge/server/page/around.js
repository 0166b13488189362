// The neighbourhood of an entity, drawn: facts solid, predicted links dashed.

import { go, href, turnInto } from "./address.js";
import { get, of } from "./api.js";
import { choice, count, el, entityLink, link, percent, section, svg, toggle, words } from "./dom.js";

const KNOWN = 24; // facts, until more are asked for
const MOST = 192;
const PREDICTED = 8;
const ROW = 24; // height of a line of text, so that labels never lie over each other
const OPENED = 4; // entities whose neighbourhood is shown besides, the last ones
const LETTER = 7.4; // width of a letter of a label, about

/** Show an entity amid its facts and its most probable new links. */
export async function show({ run, params, signal }) {
  const types = params.types === "any" ? "any" : "constrained";
  const most = Math.min(MOST, Number.parseInt(params.known, 10) || KNOWN);
  const names = [params.name ?? "", ...opened(params)];
  const only = params.relation ? { relation: params.relation } : {};
  const asked = (name) => get(of(run, "neighbours"), { name, known: most, predicted: PREDICTED, types, ...only }, signal);
  const [card, ...around] = await Promise.all([
    get(of(run, "entity"), { name: names[0], limit: 1 }, signal), ...names.map(asked),
  ]);
  const same = { ...params, run: run.name };
  const open = (name) => href("around", { ...same, open: JSON.stringify([...new Set([...names.slice(1), name])]) });
  const close = (name) => href("around", { ...same, open: listOf(names.slice(1).filter((each) => each !== name)) });
  const figures = around.map(({ nodes, links }) => figureOf(run, nodes, links, { open, signal }));
  const [{ nodes: [centre], links }] = around;
  const predicted = links.filter(({ known }) => !known).length, known = links.length - predicted;
  return {
    title: `Around ${centre.label}`,
    said: `${count(known, "fact")} and ${count(predicted, "predicted link")} around ${centre.label}`,
    body: [
      el("h1", "Around ", entityLink(run, centre.name, centre.label)),
      ...(links.length
        ? [legend(known, predicted, known === most ? centre.degree : null), figures[0], known === most && most < MOST
          ? el("p", el("button.plain", { id: "more", onclick: () => turnInto("around", { ...params, known: 2 * most }) },
            "Show more facts"))
          : null]
        : [el("p.notice", "Nothing is known around it, and nothing predicted.")]),
      around.slice(1).map(({ nodes: [{ name, label }] }, i) => section(
        el("span", "and around ", entityLink(run, name, label), " ",
          el("a.quiet", { href: close(name), "aria-label": `close ${label}` }, "close")), figures[i + 1])),
      el("div.tools", relationChoice(card, params, same), toggle("any-type", "Predict entities of any type, also what does not fit", types === "any",
        (on) => go("around", { ...params, run: run.name, types: on ? "any" : null }))),
      el("p.quiet", "Click an entity to see what is around it, too; the one in the middle opens its card. ",
        link("map", { run: run.name, name: centre.name }, "See it on the map")),
    ],
  };
}

/** Return the entities whose neighbourhood is opened besides. */
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
function figureOf(run, nodes, links, { open, signal }) {
  const byName = new Map(nodes.map((node) => [node.name, node])), [centre] = nodes;
  const groups = grouped(links, centre.name, byName), figure = el("figure.neighbourhood.panel");
  new ResizeObserver(([entry], observer) => {
    if (signal.aborted) return observer.disconnect();
    figure.replaceChildren(drawing(run, centre, groups, entry.contentRect.width, open));
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
function grouped(links, centre, byName) {
  const groups = new Map();
  for (const link of links) {
    const out = link.head === centre, other = out ? link.tail : link.head;
    if (!out && link.tail !== centre) continue;
    const key = `${out} ${link.relation}`;
    if (!groups.has(key)) groups.set(key, { name: words(link.label), out, ends: [] });
    groups.get(key).ends.push({ ...link, node: byName.get(other) });
  }
  return [...groups.values()];
}

/** Return groups in two columns of nearly equal height; a group that does not fit goes on in the other. */
function columns(groups) {
  const rows = groups.flatMap((group) => [{ group }, ...group.ends.map((end) => ({ group, end }))]);
  let half = Math.ceil(rows.length / 2);
  if (rows[half - 1]?.end === undefined) half -= 1; // a heading never ends a column
  const right = rows.slice(0, half), left = rows.slice(half);
  if (left[0]?.end) left.unshift({ group: left[0].group });
  return [right, left];
}

function drawing(run, centre, groups, width, open) {
  const sides = columns(groups);
  const height = ROW * (Math.max(...sides.map((rows) => rows.length)) + 2);
  const middle = { x: width / 2, y: height / 2 };
  const reach = Math.max(46, Math.min(0.3 * width, width / 2 - 18 * LETTER));
  const room = Math.floor((width / 2 - reach - 10) / LETTER);
  const edges = svg("g"), nodes = svg("g");
  sides.forEach((rows, i) => {
    const side = i === 0 ? 1 : -1, top = middle.y - (ROW * (rows.length - 1)) / 2;
    rows.forEach(({ group, end }, j) => {
      const y = top + ROW * j, bend = (y - middle.y) / (0.62 * height);
      const at = { x: middle.x + side * reach * Math.sqrt(1 - bend * bend), y };
      if (!end) nodes.append(heading(group, at, side, room));
      else {
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

function neighbour(open, { node, known, probability }, { x, y }, side, room) {
  const chance = known || probability === null ? "" : percent(probability);
  const words = known ? `${node.label}, known` : `${node.label} ${chance}, predicted`;
  const text = svg("text", { x: x + side * 10, y: y + 4.5, "text-anchor": anchor(side) },
    short(node.label, chance ? room - 5 : room),
    chance && svg("tspan.probability", ` ${chance}`));
  return svg("a", { href: open(node.name) }, svg("title", words),
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
