// Many points on a canvas: discs written into its pixels, so that tens of thousands take milliseconds.

const EDGE = 1; // pixels over which a disc fades out

/**
 * Paint discs of radius `r`, the first point last, so that it lies on top. `plane` has x, y and group; a point
 * is at (left + across x, top + down y) in pixels. `colours` are those of the groups, the last one of those beyond.
 * Where a group is shown alone, the others are `faint`.
 */
export function paint(image, plane, { left, top, across, down }, { paper, colours, faint, only, r }) {
  const { width, height } = image, pixels = new Uint32Array(image.data.buffer);
  const stamp = disc(r), reach = Math.ceil(r + EDGE), { x, y, group } = plane, rest = colours.length - 1;
  pixels.fill(packed(paper));
  const pass = (shades, wanted) => {
    for (let i = x.length - 1; i >= 0; i--) {
      const own = group[i] < 0 || group[i] > rest ? rest : group[i];
      if (!wanted(group[i])) continue;
      const a = Math.round(left + across * x[i]), b = Math.round(top + down * y[i]);
      if (a < -reach || b < -reach || a >= width + reach || b >= height + reach) continue;
      blot(pixels, width, height, a, b, stamp, shades[own]);
    }
  };
  if (only !== null) pass(faint, (name) => name !== only);
  pass(colours, only === null ? () => true : (name) => name === only);
}

/** Return the pixels of a disc about its middle: dx, dy, and how much of it is covered, of 256. */
function disc(r) {
  const reach = Math.ceil(r + EDGE), found = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const covered = Math.round(256 * Math.min(1, Math.max(0, r + EDGE / 2 - Math.hypot(dx, dy))));
      if (covered) found.push(dx, dy, covered);
    }
  }
  return Int32Array.from(found);
}

function blot(pixels, width, height, a, b, stamp, colour) {
  const ink = packed(colour);
  for (let i = 0; i < stamp.length; i += 3) {
    const x = a + stamp[i], y = b + stamp[i + 1], covered = stamp[i + 2];
    if (x < 0 || y < 0 || x >= width || y >= height) continue;
    const at = y * width + x;
    pixels[at] = covered === 256 ? ink : mixed(pixels[at], colour, covered);
  }
}

function packed([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0; // as the bytes of a pixel lie in memory
}

function mixed(below, [red, green, blue], covered) {
  const over = (value, shift) => {
    const under = (below >>> shift) & 255;
    return under + (((value - under) * covered) >> 8);
  };
  return ((255 << 24) | (over(blue, 16) << 16) | (over(green, 8) << 8) | over(red, 0)) >>> 0;
}

/** Return red, green and blue of a colour as a style computes it. */
export function channels(colour) {
  return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
}

/** Return a colour as it shows through when little of it is laid on another. */
export function thinned(colour, paper, share) {
  return colour.map((value, i) => Math.round(paper[i] + share * (value - paper[i])));
}
