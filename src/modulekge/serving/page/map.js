// The map: entities on the plane on which their vectors differ most, coloured by what they occur in.

import { go } from "./address.js";
import { getOnce, of } from "./api.js";
import { count, el, words } from "./dom.js";

const POINTS = 2000;
const COLOURS = 8; // groups with a colour of their own; the others share the last
const NAMED = 40; // labels on the map at most
const NEAR = 18; // pixels from a point that still mean it
const STEP = 1.4; // of the zoom
const WIDEST = 60;

/** Show the best-connected entities; the one of the address is in the middle. */
export async function show({ run, params, signal }) {
  const { points, groups } = await getOnce(of(run, "map"), { limit: POINTS });
  const canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Map of entities: arrows move, plus and minus zoom, Enter opens the entity in the middle" });
  const tip = el("div", { class: "tip", role: "status", hidden: true });
  const { list, colours } = legend(groups, points, (group) => {
    state.only = state.only === group ? undefined : group;
    draw();
    return state.only;
  });
  const place = new Map(groups.map(({ name }, i) => [name, Math.min(i, COLOURS)]));
  const marked = points.find(({ name }) => name === params.name);
  const state = { zoom: marked ? 4 : 1, x: marked?.x ?? 0, y: marked?.y ?? 0, active: marked, only: undefined };
  const draw = drawer(canvas, tip, points, state, { marked, colour: (group) => colours()[place.get(group) ?? COLOURS] });
  move(canvas, state, draw, {
    near: (x, y) => nearest(points, canvas, state, x, y),
    open: (point) => go("entity", { run: run.name, name: point.name }),
  });
  new ResizeObserver((_, observer) => (signal.aborted ? observer.disconnect() : draw())).observe(canvas);
  document.addEventListener("theme", draw, { signal });
  const zoom = (text, name, change) => el("button", { type: "button", "aria-label": name, onclick: () => { change(); draw(); } }, text);
  return {
    title: `Map of ${run.data}`,
    said: `Map of ${count(points.length, "entity", "entities")}`,
    body: [
      el("h1", {}, `Map of ${run.data}`),
      el("p", { class: "quiet" }, `${count(points.length, "entity", "entities")}`,
        points.length < run.entities ? ` of ${count(run.entities)}, the best-connected` : "",
        ", placed by their learned vectors (two principal components): what lies together, the model holds alike. ",
        params.name && !marked ? "The one you came from is not among them. " : "",
        "Point at an entity to name it, click to open it; drag and scroll to move and zoom."),
      el("div", { class: "map panel" }, canvas, tip, el("div", { class: "zoom" },
        zoom("+", "Zoom in", () => zoomTo(state, STEP)), zoom("−", "Zoom out", () => zoomTo(state, 1 / STEP)),
        zoom("⤢", "All", () => Object.assign(state, { zoom: 1, x: 0, y: 0 })))),
      list,
    ],
  };
}

/** Return the groups as switches that show one alone, and a function that reads their colours off. */
function legend(groups, points, choose) {
  const swatches = [], buttons = [];
  const item = (name, text, total, i) => {
    const swatch = el("span", { class: `swatch g${i}` });
    swatches.push(swatch);
    const button = el("button", { type: "button", class: "plain", "aria-pressed": "false", onclick: () => {
      const only = choose(name);
      buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button && only === name)));
    } }, swatch, `${text} `, el("span", { class: "quiet" }, count(total)));
    buttons.push(button);
    return el("li", {}, name === null ? el("span", { class: "other" }, swatch, `${text} `, el("span", { class: "quiet" }, count(total))) : button);
  };
  const own = groups.slice(0, COLOURS);
  const items = own.map(({ name, relation, direction, points: total }, i) =>
    item(name, direction === "out" ? `${words(relation.label)} …` : `… ${words(relation.label)}`, total, i));
  const rest = points.length - own.reduce((sum, group) => sum + group.points, 0);
  items.push(item(null, "others", rest, COLOURS));
  const colours = () => swatches.map((swatch) => getComputedStyle(swatch).backgroundColor);
  return { list: el("ul", { class: "legend groups", "aria-label": "Groups" }, items), colours };
}

/** Return where a point is on the canvas, in pixels. */
function onCanvas(point, { clientWidth: width, clientHeight: height }, { zoom, x, y }) {
  const unit = 0.46 * Math.min(width, height) * zoom, stretch = Math.max(1, Math.min(1.6, width / height));
  return [width / 2 + (point.x - x) * unit * stretch, height / 2 - (point.y - y) * unit];
}

function nearest(points, canvas, state, x, y) {
  let best, least = NEAR ** 2;
  for (const point of points) {
    if (state.only !== undefined && point.group !== state.only) continue;
    const [a, b] = onCanvas(point, canvas, state), far = (a - x) ** 2 + (b - y) ** 2;
    if (far < least) [best, least] = [point, far];
  }
  return best;
}

function zoomTo(state, factor) {
  state.zoom = Math.min(WIDEST, Math.max(1, state.zoom * factor));
}

/** Return the function that draws the points, then as many labels as find room, the best-connected first. */
function drawer(canvas, tip, points, state, { marked, colour }) {
  return () => {
    const { clientWidth: width, clientHeight: height } = canvas, ratio = devicePixelRatio || 1;
    if (!width) return;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const pen = canvas.getContext("2d"), { color, backgroundColor, fontFamily } = getComputedStyle(canvas);
    pen.scale(ratio, ratio);
    pen.font = `12px ${fontFamily}`;
    pen.lineJoin = "round";
    const shown = points.map((point) => [point, ...onCanvas(point, canvas, state)])
      .filter(([, x, y]) => x > -9 && y > -9 && x < width + 9 && y < height + 9);
    const colours = new Map(points.map(({ group }) => [group, null]).map(([group]) => [group, colour(group)]));
    for (const [point, x, y] of [...shown].reverse()) {
      const faded = state.only !== undefined && point.group !== state.only;
      pen.globalAlpha = faded ? 0.12 : 0.85;
      pen.fillStyle = colours.get(point.group);
      pen.beginPath();
      pen.arc(x, y, point === state.active || point === marked ? 6.5 : 3.6, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
    labels(pen, shown.filter(([{ group }]) => state.only === undefined || group === state.only), state, { color, backgroundColor });
    showTip(tip, state.active, canvas, state);
  };
}

function labels(pen, shown, { active }, { color, backgroundColor }) {
  const taken = [];
  for (const [point, x, y] of shown) {
    if (taken.length >= NAMED) return;
    const width = pen.measureText(point.label).width;
    const box = [x + 6, y - 9, x + 12 + width, y + 9];
    const free = taken.every(([l, t, r, b]) => box[0] > r || box[2] < l || box[1] > b || box[3] < t);
    if (!free || point === active) continue;
    taken.push(box);
    pen.strokeStyle = backgroundColor;
    pen.lineWidth = 3.5;
    pen.strokeText(point.label, x + 8, y + 4);
    pen.fillStyle = color;
    pen.fillText(point.label, x + 8, y + 4);
  }
}

function showTip(tip, point, canvas, state) {
  tip.hidden = !point;
  if (!point) return;
  const [x, y] = onCanvas(point, canvas, state), left = x > canvas.clientWidth / 2;
  tip.textContent = point.label;
  tip.style.transform = `translate(${x}px, ${y}px) translate(${left ? "calc(-100% - 12px)" : "12px"}, -50%)`;
}

/** Let pointers and keys move the map; one that hardly moves is a click, a finger's first tap names only. */
function move(canvas, state, draw, { near, open }) {
  const down = new Map();
  let walked = 0, spread = 0, named;
  const shift = (dx, dy) => {
    const [right] = onCanvas({ x: state.x + 1, y: state.y }, canvas, state), [middle, height] = onCanvas(state, canvas, state);
    const [, top] = onCanvas({ x: state.x, y: state.y + 1 }, canvas, state);
    state.x -= dx / (right - middle);
    state.y += dy / (height - top);
  };
  const point = (entity) => {
    canvas.classList.toggle("pointing", Boolean(entity));
    if (state.active !== entity) {
      state.active = entity;
      draw();
    }
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, event);
    [walked, spread, named] = [0, 0, state.active];
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return point(near(event.offsetX, event.offsetY));
    down.set(event.pointerId, event);
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    walked += Math.abs(dx) + Math.abs(dy);
    if (walked < 5) return;
    const [a, b] = [...down.values()];
    if (b) {
      const apart = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
      if (spread) zoomTo(state, apart / spread);
      spread = apart;
    } else shift(dx, dy);
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    down.delete(event.pointerId);
    const entity = near(event.offsetX, event.offsetY);
    if (walked >= 5) return;
    if (entity && (event.pointerType === "mouse" || entity === named)) open(entity);
    else point(entity);
  });
  canvas.addEventListener("pointercancel", (event) => down.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => down.size || point(undefined));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [dx, dy] = [event.offsetX - canvas.clientWidth / 2, event.offsetY - canvas.clientHeight / 2];
    shift(-dx, -dy);
    zoomTo(state, STEP ** (-event.deltaY / 120));
    shift(dx, dy);
    draw();
  }, { passive: false });
  const keys = {
    ArrowLeft: () => shift(50, 0), ArrowRight: () => shift(-50, 0), ArrowUp: () => shift(0, 50), ArrowDown: () => shift(0, -50),
    "+": () => zoomTo(state, STEP), "=": () => zoomTo(state, STEP), "-": () => zoomTo(state, 1 / STEP),
    Enter: () => state.active && open(state.active),
  };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    if (event.key !== "Enter") state.active = near(canvas.clientWidth / 2, canvas.clientHeight / 2);
    draw();
  });
}
