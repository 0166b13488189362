// Charts: curves over epochs, and whether probabilities hold.

import { el, figure, percent, svg } from "./dom.js";

const WIDE = 420, HIGH = 230, LEFT = 44, RIGHT = 12, TOP = 12, BOTTOM = 34;
const MARKS = 4; // numbers on an axis, about

/**
 * Return curves in one chart. Each of `series` has a name and points [x, y]; those whose y is no number are left
 * out. Pointing at the chart reads the values off.
 */
export function curves(title, series, { x: xName = "epoch", digits = 3 } = {}) {
  const lines = series.map(({ name, points }) => ({ name, points: points.filter(([, y]) => Number.isFinite(y)) }));
  const all = lines.flatMap(({ points }) => points);
  if (all.length === 0) return el("figure", {}, el("figcaption", {}, title), el("p", { class: "quiet" }, "No figures."));
  const x = scale(all.map(([value]) => value), LEFT, WIDE - RIGHT);
  const y = scale(all.map(([, value]) => value), HIGH - BOTTOM, TOP);
  const marker = svg("line", { class: "marker", y1: TOP, y2: HIGH - BOTTOM, x1: -9, x2: -9 });
  const drawn = lines.map(({ points }, i) =>
    svg("path", { class: `curve s${i}`, d: points.map(([a, b], j) => `${j ? "L" : "M"}${x(a)} ${y(b)}`).join("") }));
  const dots = lines.flatMap(({ points }, i) => (points.length > 1 ? [] : points.map(([a, b]) =>
    svg("circle", { class: `point s${i}`, cx: x(a), cy: y(b), r: 3 }))));
  const keys = lines.map(({ name }, i) => el("span", { class: `key s${i}` }, name));
  const read = el("span", { class: "quiet" });
  const chart = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": spoken(title, lines, digits) },
    axes(x, y, xName), marker, drawn, dots);
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * WIDE;
    const near = lines.map(({ points }) => nearest(points, (point) => Math.abs(x(point[0]) - at)));
    const shown = near.find(Boolean);
    for (const end of ["x1", "x2"]) marker.setAttribute(end, x(shown[0]));
    const values = near.map((point) => (point ? figure(point[1], digits) : "–")).join(" / ");
    read.textContent = `${xName} ${shown[0]}: ${values}`;
  });
  return el("figure", {}, el("figcaption", {}, el("strong", {}, title), lines.length > 1 ? keys : null, read), chart);
}

/** Return the share of answers that hold against the probability they were given; on the diagonal is right. */
export function reliability(before, after) {
  const side = 300;
  const at = (value) => 36 + value * (side - 48), up = (value) => side - 36 - value * (side - 48);
  const most = Math.max(...after.map(({ answers }) => answers), 1);
  const points = (bins, name) => bins.map(({ answers, probability, true: share }) =>
    svg("circle", { class: `point ${name}`, cx: at(probability), cy: up(share), r: 3 + 5 * Math.sqrt(Math.min(1, answers / most)) },
      svg("title", {}, `given ${percent(probability)}, true ${percent(share)}, ${answers} answers`)));
  const ticks = [0, 0.5, 1].flatMap((value) => [
    svg("text", { x: at(value), y: side - 18, "text-anchor": "middle" }, percent(value)),
    svg("text", { x: 30, y: up(value) + 4, "text-anchor": "end" }, `${100 * value}`),
    svg("path", { class: "grid", d: `M${at(0)} ${up(value)}H${at(1)}` }),
  ]);
  return el("figure", { class: "square" },
    el("figcaption", {}, el("strong", {}, "Share that is true"),
      el("span", { class: "key s1" }, "softmax"), el("span", { class: "key s0" }, "calibrated")),
    svg("svg", { viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": "Share of answers that is true, by probability" },
      ticks, svg("path", { class: "diagonal", d: `M${at(0)} ${up(0)}L${at(1)} ${up(1)}` }),
      points(before, "s1"), points(after, "s0"),
      svg("text", { x: side / 2, y: side - 3, "text-anchor": "middle" }, "probability given")));
}

function axes(x, y, xName) {
  return svg("g", { class: "axes" },
    y.marks.flatMap((value) => [
      svg("path", { class: "grid", d: `M${LEFT} ${y(value)}H${WIDE - RIGHT}` }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, tidy(value))]),
    x.marks.map((value) => svg("text", { x: x(value), y: HIGH - BOTTOM + 16, "text-anchor": "middle" }, tidy(value))),
    svg("text", { x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 3, "text-anchor": "middle" }, xName));
}

/** Return the map from values to places, with round values to mark. */
function scale(values, from, to) {
  const low = Math.min(...values), high = Math.max(...values), range = high - low || 1;
  const rough = range / MARKS, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const place = (value) => Math.round(10 * (from + ((value - low) / range) * (to - from))) / 10;
  const first = Math.ceil(low / step);
  place.marks = Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
  return place;
}

function tidy(value) {
  return String(Number(value.toPrecision(4)));
}

function nearest(points, far) {
  return points.reduce((best, point) => (best === undefined || far(point) < far(best) ? point : best), undefined);
}

function spoken(title, lines, digits) {
  const ends = lines.map(({ name, points }) => (points.length
    ? `${name} from ${figure(points[0][1], digits)} to ${figure(points.at(-1)[1], digits)}` : `${name}: none`));
  return `${title}: ${ends.join("; ")}`;
}
