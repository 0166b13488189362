// A small graph, laid out in layers from left to right, or from top to bottom where there is no room.

import { el, percent, svg } from "./dom.js";

const ROW = 50, LINE = 84; // between nodes of a layer, and between layers from top to bottom
const TALL = 28, PAD = 12; // a node: its height, and the room beside its text
const LANE = 130; // the least room beside each other for nodes of a layer, else one scrolls
const BETWEEN = 52; // layers, besides the text of what joins them
const APART = 15; // edges that join the same two nodes
const HIGH = 16; // the text of an edge
const SPOTS = [0.36, 0.64, 0.24, 0.76]; // shares of an edge where its text stands, if it has no room in the middle
const SWEEPS = 6;
const NODE_FONT = "550 14px system-ui, sans-serif", EDGE_FONT = "12.5px system-ui, sans-serif";
const pen = document.createElement("canvas").getContext("2d");

/**
 * Return the drawing of a graph. A node is { id, label, href, layer, marked }, an edge { from, to, label, known,
 * negated, probability }: solid where it is known, else dashed and with its probability.
 */
export function graph({ nodes, edges, label, signal }) {
  const box = el("figure.graph");
  new ResizeObserver(([entry], observer) => {
    if (signal?.aborted) return observer.disconnect();
    const width = Math.floor(entry.contentRect.width);
    if (width) box.replaceChildren(drawing(nodes, edges, label, width));
  }).observe(box);
  return box;
}

function drawing(nodes, edges, label, width) {
  const { layers, routes } = layered(nodes, edges);
  const long = layers.map((layer) => Math.max(...layer.map(({ label: text }) => (text ? wide(text, NODE_FONT) + 2 * PAD : 0))));
  const gaps = gapsOf(layers, routes);
  const needed = [...long, ...gaps].reduce((sum, part) => sum + part, 4);
  const most = Math.max(...layers.map(({ length }) => length)), flat = needed <= width || most * LANE > width;
  const size = flat ? [needed, ROW * most + 8] : [width, LINE * (layers.length - 1) + TALL + 8];
  const lie = flat ? fromLeft(layers, long, gaps, size[1]) : fromTop(layers, width);
  const taken = nodes.map(({ id }) => lie.get(id)).map(({ x, y, wide: own }) => ({ x, y, wide: own, high: TALL }));
  const links = routes.map((route) => edgeOf(route, lie, flat, taken));
  return svg("svg", { width: size[0], height: size[1], viewBox: `0 0 ${size[0]} ${size[1]}`, role: "group", "aria-label": label },
    svg("g", links.map(({ line }) => line)), svg("g", links.map(({ text }) => text)),
    nodes.map((node) => nodeOf(node, lie.get(node.id))));
}

/** Return nodes in their layers, and each edge with the places it passes: an edge over layers bends around them. */
function layered(nodes, edges) {
  const levels = [...new Set(nodes.map(({ layer }) => layer))].sort((a, b) => a - b);
  const layers = levels.map((level) => nodes.filter(({ layer }) => layer === level));
  const level = new Map(nodes.map(({ id, layer }) => [id, levels.indexOf(layer)]));
  const pairs = new Map();
  const routes = edges.map((edge) => {
    const turned = level.get(edge.from) > level.get(edge.to);
    const [from, to] = turned ? [edge.to, edge.from] : [edge.from, edge.to];
    const via = [from];
    for (let i = level.get(from) + 1; i < level.get(to); i++) {
      const bend = { id: Symbol(i), bend: true };
      layers[i].push(bend);
      via.push(bend.id);
    }
    const route = { edge, turned, via: [...via, to] }, pair = JSON.stringify([from, to].sort());
    if (!pairs.has(pair)) pairs.set(pair, []);
    pairs.get(pair).push(route);
    return route;
  });
  const degree = (id) => routes.filter(({ via }) => via[0] === id || via.at(-1) === id).length;
  for (const route of routes) { // texts stand nearer to the end that has room
    const [a, b] = [degree(route.via[0]), degree(route.via.at(-1))];
    route.leaning = route.via.length > 2 || a === b ? 0.5 : a < b ? 0.36 : 0.64;
  }
  for (const same of pairs.values()) {
    same.forEach((route, i) => (route.shift = APART * (i - (same.length - 1) / 2)));
  }
  order(layers, routes);
  return { layers, routes };
}

/** Order each layer by where its neighbours are, to and fro, so that few edges cross. */
function order(layers, routes) {
  const joined = new Map();
  const join = (a, b) => joined.set(a, [...(joined.get(a) ?? []), b]);
  for (const { via } of routes) via.slice(1).forEach((id, i) => (join(id, via[i]), join(via[i], id)));
  const place = new Map();
  const settle = (layer) => layer.forEach(({ id }, i) => place.set(id, i - (layer.length - 1) / 2));
  layers.forEach(settle);
  const wish = ({ id }) => {
    const near = (joined.get(id) ?? []).map((other) => place.get(other));
    return near.length ? near.reduce((sum, at) => sum + at, 0) / near.length : place.get(id);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const layer of sweep % 2 ? layers.toReversed() : layers) {
      const wishes = new Map(layer.map((node) => [node, wish(node)]));
      layer.sort((a, b) => wishes.get(a) - wishes.get(b));
      settle(layer);
    }
  }
}

/** Return the room between each layer and the next: what the longest text on an edge needs. */
function gapsOf(layers, routes) {
  const level = new Map(layers.flatMap((layer, i) => layer.map(({ id }) => [id, i])));
  const gaps = layers.slice(1).map(() => BETWEEN);
  for (const { edge, via } of routes) {
    const at = level.get(via[Math.ceil(via.length / 2) - 1]);
    if (at < gaps.length) gaps[at] = Math.max(gaps[at], wide(textOf(edge), EDGE_FONT) + BETWEEN);
  }
  return gaps;
}

function fromLeft(layers, long, gaps, height) {
  const lie = new Map();
  let left = 2;
  layers.forEach((layer, i) => {
    layer.forEach((node, j) => {
      const own = node.bend ? 0 : wide(node.label, NODE_FONT) + 2 * PAD;
      const y = height / 2 + ROW * (j - (layer.length - 1) / 2);
      lie.set(node.id, { x: left + long[i] / 2, y, wide: own, room: long[i] });
    });
    left += long[i] + (gaps[i] ?? 0);
  });
  return lie;
}

function fromTop(layers, width) {
  const lie = new Map();
  layers.forEach((layer, i) => layer.forEach((node, j) => {
    const room = width / layer.length - 6;
    const own = node.bend ? 0 : Math.min(room, wide(node.label, NODE_FONT) + 2 * PAD);
    lie.set(node.id, { x: (width * (j + 0.5)) / layer.length, y: 4 + TALL / 2 + LINE * i, wide: own, room });
  }));
  return lie;
}

/** Return the line of an edge, with an arrow at its end, and its text, where it covers nothing of what is taken. */
function edgeOf({ edge, turned, via, shift, leaning }, lie, flat, taken) {
  const places = via.map((id) => lie.get(id)), level = flat ? places[0].x === places.at(-1).x : places[0].y === places.at(-1).y;
  const points = level ? arc(places, shift, flat) : through(places, shift, flat);
  const kind = `${edge.known ? "" : ".predicted"}${edge.negated ? ".negated" : ""}`;
  const [start, end] = [points[0], points.at(-1)], tip = turned ? start : end, way = (turned ? -1 : 1) * (level ? -1 : 1);
  const line = svg(`path.edge${kind}`, { d: `M${points.map(({ to }) => to).join("C")}` });
  const arrow = svg(`path.arrow${edge.negated ? ".negated" : ""}`, {
    d: flat ? `M${tip.x} ${tip.y}l${-7 * way} -4v8z` : `M${tip.x} ${tip.y}l-4 ${-7 * way}h8z`,
  });
  const middle = Math.floor((points.length - 1) / 2), [a, b] = [points[middle], points[middle + 1]];
  const chance = chanceOf(edge), room = wide(textOf(edge), EDGE_FONT) + 8;
  const bow = flat ? [a.x + 34, (a.y + b.y) / 2] : [(a.x + b.x) / 2, a.y + 30];
  const spots = level ? [bow] : [flat ? 0.5 : leaning, ...SPOTS].map((t) => along(a, b, t, flat));
  const boxes = spots.map(([x, y]) => ({ x, y, wide: room, high: HIGH }));
  const box = boxes.find((one) => !taken.some((other) => touch(one, other))) ?? boxes[0], { x, y } = box;
  taken.push(box);
  const under = svg("rect.under", { x: x - room / 2, y: y - HIGH / 2, width: room, height: HIGH });
  const text = svg(`text.edge-text${edge.negated ? ".negated" : ""}`, { x, y: y + 4, "text-anchor": "middle" },
    edge.label, chance && svg("tspan.probability", ` ${chance}`), svg("title", `${edge.label}, ${edge.known ? "known" : "predicted"}`));
  return { line: svg("g", line, arrow), text: svg("g", under, text) };
}

function touch(one, other) {
  return 2 * Math.abs(one.x - other.x) < one.wide + other.wide && 2 * Math.abs(one.y - other.y) < one.high + other.high;
}

/** Return the place at a share of the way on the curve between two corners. */
function along(a, b, t, flat) {
  const eased = (from, to) => from + (3 * t ** 2 - 2 * t ** 3) * (to - from);
  const even = (from, to) => from + ((3 * t - 3 * t ** 2 + 2 * t ** 3) / 2) * (to - from);
  return flat ? [even(a.x, b.x), eased(a.y, b.y)] : [eased(a.x, b.x), even(a.y, b.y)];
}

/** Return the corners of a curve through places; of each, what leads to it. */
function through(places, shift, flat) {
  const points = places.flatMap((place, i) => {
    const half = (flat ? place.wide : place.wide && TALL) / 2, ends = [i ? -half : null, i < places.length - 1 ? half : null];
    return ends.filter((off) => off !== null).map((off) => (flat
      ? { x: place.x + off, y: place.y + (place.wide ? shift : 0) } : { x: place.x + (place.wide ? shift : 0), y: place.y + off }));
  });
  return points.filter(({ x, y }, i) => !i || x !== points[i - 1].x || y !== points[i - 1].y).map((point, i, all) => {
    const last = all[i - 1], { x, y } = point;
    if (!last) return { x, y, to: `${x} ${y}` };
    const bend = flat ? (last.x + x) / 2 : (last.y + y) / 2;
    return { x, y, to: flat ? `${bend} ${last.y} ${bend} ${y} ${x} ${y}` : `${last.x} ${bend} ${x} ${bend} ${x} ${y}` };
  });
}

/** Return a bow between two nodes of one layer, on the side of the next. */
function arc([from, to], shift, flat) {
  const a = flat ? { x: from.x + from.wide / 2, y: from.y } : { x: from.x, y: from.y + TALL / 2 };
  const b = flat ? { x: to.x + to.wide / 2, y: to.y } : { x: to.x, y: to.y + TALL / 2 }, out = 44 + Math.abs(shift);
  const to2 = flat ? `${a.x + out} ${a.y} ${b.x + out} ${b.y} ${b.x} ${b.y}` : `${a.x} ${a.y + out} ${b.x} ${b.y + out} ${b.x} ${b.y}`;
  return [{ ...a, to: `${a.x} ${a.y}` }, { ...b, to: to2 }];
}

function nodeOf({ label, href, marked }, { x, y, wide: own }) {
  return svg(marked ? "a.node.marked" : "a.node", { href },
    svg("rect", { x: x - own / 2, y: y - TALL / 2, width: own, height: TALL, rx: TALL / 2 }),
    svg("text", { x, y: y + 5, "text-anchor": "middle" }, cut(label, own - 2 * PAD)), svg("title", label));
}

function textOf(edge) {
  return `${edge.label} ${chanceOf(edge)}`.trim();
}

function chanceOf({ known, probability }) {
  return known || probability === null || probability === undefined ? "" : percent(probability);
}

function wide(text, font) {
  pen.font = font;
  return pen.measureText(text).width + 1;
}

/** Return as much of a text as fits. */
function cut(text, room) {
  if (wide(text, NODE_FONT) <= room + 2) return text;
  let end = text.length;
  while (end > 1 && wide(`${text.slice(0, end)}…`, NODE_FONT) > room) end -= 1;
  return `${text.slice(0, end)}…`;
}
