// The map: entities on a plane where those with like vectors lie together, coloured by what they occur in.

import { go } from "./address.js";
import { get, getOnce, of } from "./api.js";
import { count, el, entityLink, figure, later, link, section, words } from "./dom.js";
import { letMove, lying, onCanvas, STEP, zoomBy } from "./moving.js";
import { channels, paint, thinned } from "./scatter.js";
import { searchBox } from "./search.js";

const POINTS = 100_000;
const COLOURS = 8; // groups with a colour of their own; the others share one more
const NAMED = 40; // labels on the map at most
const TRIED = 400; // entities whose labels are tried
const LISTED = 50; // entities of a group in the list
const ALIKE = 12; // entities most like the one that is marked
const CLOSE = 4; // the zoom at which one entity is shown
const LARGE = 3.6, SMALL = 1.3; // radius of a point, in pixels
const FEW = 2000; // points that are large without zooming
const FAINT = 0.12;
const KEYS = "arrows move, plus and minus zoom, Enter opens the entity in the middle";

/** Show the entities; the one of the address is in the middle. */
export async function show({ run, params, signal, fail }) {
  const { groups, ...columns } = await getOnce(of(run, "map"), { limit: POINTS });
  const plane = planeOf(columns), total = plane.names.length;
  const found = params.name === undefined ? -1 : plane.names.indexOf(params.name);
  const marked = found < 0 ? undefined : found;
  const canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": `Map of entities: ${KEYS}` });
  const tip = el("div.tip", { role: "status", hidden: true });
  const [x, y] = marked === undefined ? [0, 0] : [plane.x[marked], plane.y[marked]];
  const state = { x, y, zoom: marked === undefined ? 1 : CLOSE, active: marked, only: null };
  const palette = Array.from({ length: COLOURS + 1 }, (_, i) => swatch(i));
  const draw = oncePerFrame(() => drawMap(canvas, tip, plane, state, { marked, palette }));
  const choose = (group) => {
    state.only = state.only === group ? null : group;
    draw();
    return state.only;
  };
  letMove(canvas, plane, state, draw, (i) => go("entity", { run: run.name, name: plane.names[i] }));
  new ResizeObserver((_, observer) => (signal.aborted ? observer.disconnect() : draw())).observe(canvas);
  document.addEventListener("theme", draw, { signal });
  return {
    title: "Entity map",
    said: `Map of ${count(total, "entity", "entities")}`,
    body: [
      el("h1", "Entity map"),
      explanation(run, total, params.name !== undefined && marked === undefined),
      el("div.map-find", searchBox({
        run: () => run, fail, choose: ({ name }) => go("map", { run: run.name, name }),
        label: "Find on the map", placeholder: "Find on the map",
      })),
      legend(groups, total, choose),
      el("div.map.panel", canvas, tip, zoomButtons(state, draw), el("span", { hidden: true }, palette)),
      marked === undefined ? null : alike(run, plane.names[marked], plane.labels[marked], signal),
      asList(run, plane, groups),
    ],
  };
}

/** Return the columns of the map as arrays of numbers and texts. */
function planeOf({ names, labels, x, y, group }) {
  const texts = labels.map(words);
  return { names, labels: texts, x: Float32Array.from(x), y: Float32Array.from(y), group: Int32Array.from(group) };
}

/** Return a function that draws with the next frame, however often it is called until then. */
function oncePerFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

function explanation(run, total, missing) {
  const all = count(total, "entity", "entities");
  const some = total < run.entities ? ` of ${count(run.entities)}, the best-connected` : "";
  return el("p.quiet", missing ? "The one you came from is not among these: " : null,
    `${all}${some}. Those with similar learned vectors lie close together; distances between far groups say little. `,
    "Point at an entity to name it, click to open it; drag and scroll, or use two fingers, to move.");
}

/** Return the entities most like one in all dimensions, each a link to its own place on the map. */
function alike(run, name, label, signal) {
  const load = () => get(of(run, "alike"), { name, limit: ALIKE }, signal);
  const draw = ({ items }) => el("ol.chips", items.map((each) => el("li",
    link("map", { run: run.name, name: each.name }, each.label, el("small", figure(each.likeness, 2))))));
  return section(el("span", "Most like ", entityLink(run, name, label)), later(load, draw, { signal }));
}

/** Return the points as lists of links, by group: for whoever does without the canvas. */
function asList(run, plane, groups) {
  const parts = () => groups.slice(0, COLOURS).flatMap((group, place) => {
    const own = [...plane.names.keys()].filter((i) => plane.group[i] === place).slice(0, LISTED);
    return [el("h2", groupName(group)),
      el("ul.chips", own.map((i) => el("li", entityLink(run, plane.names[i], plane.labels[i]))))];
  });
  const list = el("details.known", el("summary", "The same as a list"));
  list.addEventListener("toggle", () => list.open && list.children.length === 1 && list.append(...parts()));
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

/** Return a disc of a group's colour; the canvas reads its colours from those that lie beside it. */
function swatch(group) {
  return el("span", { class: `swatch g${group}` });
}

/** Return the groups as switches, each of which shows its group alone. */
function legend(groups, total, choose) {
  const own = groups.slice(0, COLOURS);
  const buttons = own.map((group, i) => {
    const onclick = () => {
      const only = choose(i);
      buttons.forEach((each, j) => each.setAttribute("aria-pressed", String(j === only)));
    };
    return el("button.plain", { "aria-pressed": "false", onclick },
      swatch(i), groupName(group), el("span.quiet", count(group.points)));
  });
  const rest = total - own.reduce((sum, group) => sum + group.points, 0);
  const others = rest ? [el("span.other", swatch(COLOURS), "others", el("span.quiet", count(rest)))] : [];
  const items = [...buttons, ...others].map((each) => el("li", each));
  return el("ul.legend.groups", { "aria-label": "Groups, by where entities occur most" }, items);
}

/** Draw the points, then as many labels as find room, the best-connected first. */
function drawMap(canvas, tip, plane, state, { marked, palette }) {
  const { clientWidth: width, clientHeight: height } = canvas, ratio = devicePixelRatio || 1;
  if (!width) return; // not on the page, or not any more
  const style = getComputedStyle(canvas), paper = channels(style.backgroundColor), { only, zoom } = state;
  const colours = palette.map((each) => channels(getComputedStyle(each).backgroundColor));
  const faint = colours.map((colour) => thinned(colour, paper, FAINT));
  const small = Math.max(SMALL, LARGE * Math.min(1, Math.sqrt(FEW / plane.x.length)));
  const r = Math.min(LARGE, small * Math.sqrt(zoom)), lie = lying(canvas, state);
  const pen = canvas.getContext("2d"), image = imageOf(canvas, pen, Math.round(width * ratio), Math.round(height * ratio));
  const scaled = Object.fromEntries(Object.entries(lie).map(([name, value]) => [name, ratio * value]));
  paint(image, plane, scaled, { paper, colours, faint, only, r: ratio * r });
  pen.putImageData(image, 0, 0);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  Object.assign(pen, { fillStyle: style.color, strokeStyle: style.backgroundColor, lineWidth: 2 });
  for (const i of new Set([state.active, marked])) {
    if (i === undefined) continue;
    pen.beginPath();
    pen.arc(...onCanvas(plane, i, lie), r + 3, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
  }
  label(pen, plane, state, { lie, width, height, font: style.fontFamily });
  showTip(tip, plane, state, lie, canvas);
}

const images = new WeakMap(); // the pixels of a canvas, made anew where its size changes

function imageOf(canvas, pen, width, height) {
  if (!images.has(canvas) || canvas.width !== width || canvas.height !== height) {
    Object.assign(canvas, { width, height });
    images.set(canvas, pen.createImageData(width, height));
  }
  return images.get(canvas);
}

function label(pen, plane, { active, only }, { lie, width, height, font }) {
  Object.assign(pen, { font: `12px ${font}`, lineJoin: "round", lineWidth: 3.5 });
  const taken = [];
  for (let i = 0, tried = 0; i < plane.x.length && tried < TRIED && taken.length < NAMED; i++) {
    const [x, y] = onCanvas(plane, i, lie);
    if (x < 0 || y < 0 || x > width || y > height || i === active || (only !== null && plane.group[i] !== only)) continue;
    tried += 1;
    const text = plane.labels[i], long = pen.measureText(text).width;
    const start = x + 8 + long > width ? x - 8 - long : x + 8; // beside the point, where it is not cut off
    const [left, right, top, bottom] = [start - 2, start + long + 4, y - 9, y + 9];
    if (left < 0 || taken.some(([l, r, t, b]) => left < r && right > l && top < b && bottom > t)) continue;
    taken.push([left, right, top, bottom]);
    pen.strokeText(text, start, y + 4);
    pen.fillText(text, start, y + 4);
  }
}

function showTip(tip, plane, { active }, lie, canvas) {
  tip.hidden = active === undefined;
  if (active === undefined) return;
  const [x, y] = onCanvas(plane, active, lie);
  const beside = x > canvas.clientWidth / 2 ? "calc(-100% - 12px)" : "12px";
  tip.textContent = plane.labels[active];
  tip.style.transform = `translate(${x}px, ${y}px) translate(${beside}, -50%)`;
}
