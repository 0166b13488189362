// The map: entities on the plane on which their vectors differ most, coloured by what they occur in.

import { go } from "./address.js";
import { getOnce, of } from "./api.js";
import { count, el, entityLink, words } from "./dom.js";
import { searchBox } from "./search.js";
import { STEP, letMove, onCanvas, zoomBy } from "./moving.js";

const POINTS = 2000;
const COLOURS = 8; // groups with a colour of their own; the others share one more
const NAMED = 40; // labels on the map at most
const LISTED = 50; // entities of a group in the list
const CLOSE = 4; // the zoom at which one entity is shown
const KEYS = "arrows move, plus and minus zoom, Enter opens the entity in the middle";

/** Show the best-connected entities; the one of the address is in the middle. */
export async function show({ run, params, signal, fail }) {
  const { points, groups } = await getOnce(of(run, "map"), { limit: POINTS });
  const marked = points.find(({ name }) => name === params.name);
  const canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": `Map of entities: ${KEYS}` });
  const tip = el("div.tip", { role: "status", hidden: true });
  const { x, y } = marked ?? { x: 0, y: 0 };
  const state = { x, y, zoom: marked ? CLOSE : 1, active: marked, only: null };
  const swatches = Array.from({ length: COLOURS + 1 }, (_, i) => el("span", { class: `swatch g${i}` }));
  const draw = () => drawMap(canvas, tip, points, state, { marked, colours: coloursOf(groups, swatches) });
  const choose = (group) => {
    state.only = state.only === group ? null : group;
    draw();
    return state.only;
  };
  const open = ({ name }) => go("entity", { run: run.name, name });
  letMove(canvas, points, state, draw, open);
  new ResizeObserver((_, observer) => (signal.aborted ? observer.disconnect() : draw())).observe(canvas);
  document.addEventListener("theme", draw, { signal });
  return {
    title: "Entity map",
    said: `Map of ${count(points.length, "entity", "entities")}`,
    body: [
      el("h1", "Entity map"),
      explanation(run, points, params.name && !marked),
      el("div.map-find", searchBox({
        run: () => run, fail, choose: ({ name }) => go("map", { run: run.name, name }),
        label: "Find on the map", placeholder: "Find on the map",
      })),
      legend(groups, points.length, swatches, choose),
      el("div.map.panel", canvas, tip, zoomButtons(state, draw)),
      asList(run, points, groups),
    ],
  };
}

function explanation(run, points, missing) {
  const all = count(points.length, "entity", "entities");
  const some = points.length < run.entities ? ` of ${count(run.entities)}, the best-connected` : "";
  return el("p.quiet", missing ? "The one you came from is not among these: " : null,
    `${all}${some}, by the two principal components of their learned vectors: entities with similar `,
    "vectors lie close together. Point at an entity to name it, click to open it; drag and scroll, or use two fingers, to move.");
}

/** Return the points as lists of links, by group: for whoever does without the canvas. */
function asList(run, points, groups) {
  const parts = groups.slice(0, COLOURS).map((group) => {
    const own = points.filter((point) => point.group === group.name).slice(0, LISTED);
    return [el("h2", groupName(group)),
      el("ul.chips", own.map(({ name, label }) => el("li", entityLink(run, name, label))))];
  });
  const list = el("details.known", el("summary", "The same as a list"));
  list.addEventListener("toggle", () => list.open && list.children.length === 1 && list.append(...parts.flat()));
  return list;
}

function groupName({ relation, direction }) {
  return direction === "out" ? `${words(relation.label)} …` : `… ${words(relation.label)}`;
}

function zoomButtons(state, draw) {
  const button = (text, name, change) => {
    const onclick = () => {
      change();
      draw();
    };
    return el("button", { "aria-label": name, title: name, onclick }, text);
  };
  return el("div.zoom",
    button("+", "Zoom in", () => zoomBy(state, STEP)),
    button("−", "Zoom out", () => zoomBy(state, 1 / STEP)),
    button("⤢", "Show all", () => Object.assign(state, { zoom: 1, x: 0, y: 0 })));
}

/** Return the groups as switches, each of which shows its group alone. */
function legend(groups, total, swatches, choose) {
  const own = groups.slice(0, COLOURS);
  const buttons = own.map((group, i) => {
    const onclick = () => {
      const only = choose(group.name);
      buttons.forEach((each, j) => each.setAttribute("aria-pressed", String(own[j].name === only)));
    };
    return el("button.plain", { "aria-pressed": "false", onclick },
      swatches[i], groupName(group), el("span.quiet", count(group.points)));
  });
  const rest = total - own.reduce((sum, group) => sum + group.points, 0);
  const others = rest ? [el("span.other", swatches[COLOURS], "others", el("span.quiet", count(rest)))] : [];
  const items = [...buttons, ...others].map((each) => el("li", each));
  return el("ul.legend.groups", { "aria-label": "Groups, by where entities occur most" }, items);
}

/** Return the colour of each group, as the style has it now: light or dark. */
function coloursOf(groups, swatches) {
  const colours = swatches.map((swatch) => getComputedStyle(swatch).backgroundColor);
  const place = new Map(groups.slice(0, COLOURS).map(({ name }, i) => [name, i]));
  return (group) => colours[place.get(group) ?? COLOURS];
}

/** Draw the points, then as many labels as find room, the best-connected first. */
function drawMap(canvas, tip, points, state, { marked, colours }) {
  const { clientWidth: width, clientHeight: height } = canvas, ratio = devicePixelRatio || 1;
  if (!width) return;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const seen = points
    .map((point) => ({ point, at: onCanvas(point, canvas, state) }))
    .filter(({ at: [x, y] }) => x > -9 && y > -9 && x < width + 9 && y < height + 9);
  const chosen = ({ point }) => state.only === null || point.group === state.only;
  for (const each of seen.toReversed()) {
    const { point, at } = each;
    pen.globalAlpha = chosen(each) ? 0.85 : 0.12;
    pen.fillStyle = colours(point.group);
    pen.beginPath();
    pen.arc(...at, point === state.active || point === marked ? 6.5 : 3.6, 0, 2 * Math.PI);
    pen.fill();
  }
  pen.globalAlpha = 1;
  label(pen, seen.filter(chosen), state.active, getComputedStyle(canvas));
  showTip(tip, state, canvas);
}

function label(pen, seen, active, { color, backgroundColor, fontFamily }) {
  Object.assign(pen, { font: `12px ${fontFamily}`, lineJoin: "round", lineWidth: 3.5 });
  Object.assign(pen, { strokeStyle: backgroundColor, fillStyle: color });
  const taken = [];
  for (const { point, at: [x, y] } of seen) {
    if (taken.length >= NAMED) return;
    const [left, right, top, bottom] = [x + 6, x + 12 + pen.measureText(point.label).width, y - 9, y + 9];
    const free = taken.every(([l, r, t, b]) => left > r || right < l || top > b || bottom < t);
    if (!free || point === active) continue;
    taken.push([left, right, top, bottom]);
    pen.strokeText(point.label, x + 8, y + 4);
    pen.fillText(point.label, x + 8, y + 4);
  }
}

function showTip(tip, state, canvas) {
  tip.hidden = !state.active;
  if (!state.active) return;
  const [x, y] = onCanvas(state.active, canvas, state);
  const beside = x > canvas.clientWidth / 2 ? "calc(-100% - 12px)" : "12px";
  tip.textContent = state.active.label;
  tip.style.transform = `translate(${x}px, ${y}px) translate(${beside}, -50%)`;
}
