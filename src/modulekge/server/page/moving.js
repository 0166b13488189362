// Moving over a plane of points with a mouse, with fingers, or with keys. Points are called by their place.

export const STEP = 1.4; // of the zoom
const CLOSEST = 60;
const NEAR = 18; // pixels from a point that still mean it
const STILL = 5; // pixels of movement that are still a click
const STRIDE = 50; // pixels that an arrow key moves

/** Return how points lie on the canvas: x at left + across x, y at top + down y; `state` has the middle and the zoom. */
export function lying({ clientWidth: width, clientHeight: height }, { x, y, zoom }) {
  const down = -0.46 * Math.min(width, height) * zoom;
  const across = -down * Math.max(1, Math.min(1.6, width / height)); // a wide canvas is filled, but not at any cost
  return { left: width / 2 - across * x, top: height / 2 - down * y, across, down };
}

/** Return where a point is on the canvas, in pixels. */
export function onCanvas(plane, i, { left, top, across, down }) {
  return [left + across * plane.x[i], top + down * plane.y[i]];
}

/** Zoom in or out, within bounds. */
export function zoomBy(state, factor) {
  state.zoom = Math.min(CLOSEST, Math.max(1, state.zoom * factor));
}

/** Say whether any point is on the canvas, not at its very edge. */
function showsAny(plane, canvas, state) {
  const lie = lying(canvas, state), right = canvas.clientWidth - NEAR, bottom = canvas.clientHeight - NEAR;
  return plane.x.some((_, i) => {
    const [x, y] = onCanvas(plane, i, lie);
    return x > NEAR && y > NEAR && x < right && y < bottom;
  });
}

/** Let pointers and keys move the points and open one; a finger's first tap only names it. */
export function letMove(canvas, plane, state, draw, open) {
  const down = new Map(); // pointers, by their id
  let walked = 0, apart = 0, named;

  const shift = (dx, dy) => {
    const { across, down: up } = lying(canvas, state);
    const moved = { ...state, x: state.x - dx / across, y: state.y - dy / up };
    if (showsAny(plane, canvas, moved)) Object.assign(state, moved); // never to where nothing is
  };
  const name = (point) => {
    canvas.classList.toggle("pointing", point !== undefined);
    if (state.active === point) return;
    state.active = point;
    draw();
  };
  const near = (x, y) => nearest(plane, canvas, state, x, y);
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
    if (point !== undefined && (event.pointerType === "mouse" || point === named)) open(point);
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
    Enter: () => state.active !== undefined && open(state.active),
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
function nearest(plane, canvas, state, x, y) {
  const { left, top, across, down } = lying(canvas, state);
  let best, least = NEAR ** 2;
  for (let i = 0; i < plane.x.length; i++) {
    if (state.only !== null && plane.group[i] !== state.only) continue;
    const far = (left + across * plane.x[i] - x) ** 2 + (top + down * plane.y[i] - y) ** 2;
    if (far < least) [best, least] = [i, far];
  }
  return best;
}
