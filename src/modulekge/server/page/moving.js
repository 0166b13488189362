// Moving over a plane of points with a mouse, with fingers, or with keys.

export const STEP = 1.4; // of the zoom
const CLOSEST = 60;
const NEAR = 18; // pixels from a point that still mean it
const STILL = 5; // pixels of movement that are still a click
const STRIDE = 50; // pixels that an arrow key moves

/** Return where a point is on the canvas, in pixels; `state` has what is in the middle, and the zoom. */
export function onCanvas(point, canvas, state) {
  const [across, up] = units(canvas, state);
  return [
    canvas.clientWidth / 2 + (point.x - state.x) * across,
    canvas.clientHeight / 2 - (point.y - state.y) * up,
  ];
}

/** Pixels of a unit of the plane; a wide canvas is filled, but not at any cost. */
function units({ clientWidth: width, clientHeight: height }, { zoom }) {
  const up = 0.46 * Math.min(width, height) * zoom;
  return [up * Math.max(1, Math.min(1.6, width / height)), up];
}

/** Say whether a point is on the canvas, not at its very edge. */
function isSeen(point, canvas, state) {
  const [x, y] = onCanvas(point, canvas, state);
  return x > NEAR && y > NEAR && x < canvas.clientWidth - NEAR && y < canvas.clientHeight - NEAR;
}

/** Zoom in or out, within bounds. */
export function zoomBy(state, factor) {
  state.zoom = Math.min(CLOSEST, Math.max(1, state.zoom * factor));
}

/** Let pointers and keys move the points and open one; a finger's first tap only names it. */
export function letMove(canvas, points, state, draw, open) {
  const down = new Map(); // pointers, by their id
  let walked = 0, apart = 0, named;

  const shift = (dx, dy) => {
    const [across, up] = units(canvas, state);
    const moved = { ...state, x: state.x - dx / across, y: state.y + dy / up };
    if (points.some((point) => isSeen(point, canvas, moved))) Object.assign(state, moved); // never to where nothing is
  };
  const name = (point) => {
    canvas.classList.toggle("pointing", Boolean(point));
    if (state.active === point) return;
    state.active = point;
    draw();
  };
  const near = (x, y) => nearest(points, canvas, state, x, y);
  const listen = (kind, act) => canvas.addEventListener(kind, act, { passive: false });

  listen("touchmove", (event) => event.touches.length > 1 && event.preventDefault()); // one finger scrolls the page
  listen("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, event);
    [walked, apart, named] = [0, 0, state.active];
  });
  listen("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return name(near(event.offsetX, event.offsetY));
    down.set(event.pointerId, event);
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    walked += Math.abs(dx) + Math.abs(dy);
    if (walked < STILL) return;
    const [a, b] = down.values();
    shift(dx / down.size, dy / down.size);
    if (b !== undefined) {
      const now = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
      if (apart) zoomBy(state, now / apart);
      apart = now;
    }
    draw();
  });
  listen("pointerup", (event) => {
    down.delete(event.pointerId);
    if (walked >= STILL) return;
    const point = near(event.offsetX, event.offsetY);
    if (point && (event.pointerType === "mouse" || point === named)) open(point);
    else name(point);
  });
  listen("pointercancel", (event) => {
    down.delete(event.pointerId);
    walked = STILL; // the browser scrolls: that is no tap
  });
  listen("pointerleave", () => down.size || name(undefined));
  listen("wheel", (event) => {
    event.preventDefault();
    const dx = event.offsetX - canvas.clientWidth / 2, dy = event.offsetY - canvas.clientHeight / 2;
    shift(-dx, -dy);
    zoomBy(state, STEP ** (-event.deltaY / 120));
    shift(dx, dy);
    draw();
  });
  const keys = {
    ArrowLeft: () => shift(STRIDE, 0),
    ArrowRight: () => shift(-STRIDE, 0),
    ArrowUp: () => shift(0, STRIDE),
    ArrowDown: () => shift(0, -STRIDE),
    "+": () => zoomBy(state, STEP),
    "-": () => zoomBy(state, 1 / STEP),
    Enter: () => state.active && open(state.active),
  };
  listen("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    if (event.key !== "Enter") state.active = near(canvas.clientWidth / 2, canvas.clientHeight / 2);
    draw();
  });
}

/** Return the point that is meant by a place on the canvas, among those of the group that is shown. */
function nearest(points, canvas, state, x, y) {
  let best, least = NEAR ** 2;
  for (const point of points) {
    if (state.only !== null && point.group !== state.only) continue;
    const [a, b] = onCanvas(point, canvas, state), far = (a - x) ** 2 + (b - y) ** 2;
    if (far < least) [best, least] = [point, far];
  }
  return best;
}
