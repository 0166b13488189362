// Charts: curves over epochs, and whether probabilities hold.

import { count, el, figure, percent, svg } from "./dom.js";

const WIDE = 420, HIGH = 230, LEFT = 44, RIGHT = 12, TOP = 12, BOTTOM = 34;
const SIDE = 300, EDGE = 36; // of the square chart
const MARKS = 6; // numbers on an axis at most, about

/** Return curves over epochs in one chart; each of `series` has a name and points [epoch, value or null]. */
export function curves(title, series) {
  const lines = series.map(({ name, points }) => ({ name, points: points.filter(([, y]) => y !== null) }));
  const all = lines.flatMap(({ points }) => points);
  if (!all.length) return el("figure", el("figcaption", el("strong", title)), el("p.quiet", "Not measured."));
  const x = scale(all.map(([epoch]) => epoch), LEFT, WIDE - RIGHT);
  const y = scale(all.map(([, value]) => value), HIGH - BOTTOM, TOP);
  const marker = svg("line.marker", { y1: TOP, y2: HIGH - BOTTOM, x1: -9, x2: -9 });
  const read = el("span.quiet");
  const box = { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": spoken(title, lines) };
  const chart = svg("svg", box,
    axes(x, y), marker, lines.map(({ points }, i) => drawn(points, x, y, `s${i}`)));
  chart.addEventListener("pointermove", ({ clientX }) => {
    const { left, width } = chart.getBoundingClientRect(), at = ((clientX - left) / width) * WIDE;
    const near = lines.map(({ points }) => nearest(points, (point) => Math.abs(x(point[0]) - at)));
    const [epoch] = near.find(Boolean);
    for (const end of ["x1", "x2"]) marker.setAttribute(end, x(epoch));
    read.textContent = `epoch ${epoch}: ${near.map((point) => figure(point?.[1])).join(" / ")}`;
  });
  const keys = lines.length > 1 ? lines.map(({ name }, i) => key(i, name)) : null;
  return el("figure", el("figcaption", el("strong", title), keys, read), chart);
}

/** Return the name of one of two things that are shown together, with its colour. */
export function key(i, ...name) {
  return el("span", { class: `key s${i}` }, ...name);
}

/** Return the share of answers that hold by the probability they were given; the diagonal is right. */
export function reliability(before, after, title = "Share that is true", name = "calibrated") {
  const x = (value) => EDGE + value * (SIDE - EDGE - 12), y = (value) => SIDE - x(value);
  const most = Math.max(1, ...after.map(({ answers }) => answers));
  const points = (bins, i) => bins.map(({ answers, probability, true: share }) => {
    const r = 3 + 5 * Math.sqrt(Math.min(1, answers / most));
    const said = `given ${percent(probability)}, holds ${percent(share)}: ${count(answers, "answer")}`;
    return svg(`circle.point.s${i}`, { cx: x(probability), cy: y(share), r }, svg("title", said));
  });
  const ticks = [0, 0.5, 1].flatMap((value) => [
    svg("path.grid", { d: `M${x(0)} ${y(value)}H${x(1)}` }),
    text(x(value), SIDE - 18, "middle", percent(value)),
    text(EDGE - 6, y(value) + 4, "end", percent(value)),
  ]);
  const label = `${title}, by the probability that was given`;
  return el("figure.square",
    el("figcaption", el("strong", title), before.length ? key(1, "softmax") : null, key(0, name)),
    svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", "aria-label": label },
      ticks, svg("path.diagonal", { d: `M${x(0)} ${y(0)}L${x(1)} ${y(1)}` }),
      points(before, 1), points(after, 0),
      text(SIDE / 2, SIDE - 3, "middle", "probability given")));
}

function drawn(points, x, y, name) {
  const places = points.map(([epoch, value]) => [x(epoch), y(value)]);
  if (!places.length) return null;
  if (places.length === 1) return svg(`circle.point.${name}`, { cx: places[0][0], cy: places[0][1], r: 3 });
  return svg(`path.curve.${name}`, { d: `M${places.map((place) => place.join(" ")).join("L")}` });
}

function axes(x, y) {
  const rows = y.marks.flatMap((value) => [
    svg("path.grid", { d: `M${LEFT} ${y(value)}H${WIDE - RIGHT}` }),
    text(LEFT - 6, y(value) + 4, "end", tidy(value)),
  ]);
  const epochs = x.marks.filter(Number.isInteger);
  return svg("g", rows, epochs.map((value) => text(x(value), HIGH - BOTTOM + 16, "middle", tidy(value))),
    text((LEFT + WIDE - RIGHT) / 2, HIGH - 3, "middle", "epoch"));
}

function text(x, y, anchor, words) {
  return svg("text", { x, y, "text-anchor": anchor }, words);
}

/** Return the map from values to places, with round values to mark. */
function scale(values, from, to) {
  const low = Math.min(...values), high = Math.max(...values), range = high - low || 1;
  const rough = range / MARKS, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step), last = Math.floor(high / step + 1e-9);
  const place = (value) => Math.round(10 * (from + ((value - low) / range) * (to - from))) / 10;
  place.marks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  return place;
}

function tidy(value) {
  return String(Number(value.toPrecision(4)));
}

function nearest(points, far) {
  return points.toSorted((a, b) => far(a) - far(b))[0];
}

function spoken(title, lines) {
  const ends = lines.map(({ name, points }) =>
    points.length ? `${name} from ${figure(points[0][1])} to ${figure(points.at(-1)[1])}` : `${name}: none`);
  return `${title}: ${ends.join("; ")}`;
}
