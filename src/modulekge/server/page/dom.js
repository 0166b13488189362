// Elements of the page. What the server says becomes text nodes and attributes, never markup.

import { href } from "./address.js";
import { words } from "./words.js";

export { words };

/**
 * Return an element, with classes as in "p.quiet". First come its attributes and listeners ("onclick"), if
 * any, then its children: nodes, text, or null for none.
 */
export function el(tag, ...rest) {
  const [name, ...classes] = tag.split(".");
  return filled(document.createElement(name), classes, rest);
}

/** Return an element of a drawing. */
export function svg(tag, ...rest) {
  const [name, ...classes] = tag.split(".");
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), classes, rest);
}

function filled(node, classes, rest) {
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  if (classes.length) node.classList.add(...classes);
  node.append(...rest.flat(2).filter((child) => child !== undefined && child !== null));
  return node;
}

/** Return a link to a view. */
export function link(view, params, ...children) {
  return el("a", { href: href(view, params) }, ...children);
}

/** Return a link to an entity's card. */
export function entityLink(run, name, label = words(name)) {
  return link("entity", { run: run.name, name }, label);
}

/** Return a link to a relation. */
export function relationLink(run, name, label = words(name)) {
  return link("relation", { run: run.name, name }, label);
}

/** Return a part of the page under a heading. */
export function section(title, ...children) {
  return el("section", el("h2", title), ...children);
}

/** Return a bar that is filled to a share, with words for those who do not see it. */
export function bar(share, { words, second = false } = {}) {
  const fill = el("span.fill");
  fill.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  const role = words ? { role: "img", "aria-label": words, title: words } : { "aria-hidden": "true" };
  return el("span", { class: second ? "bar second" : "bar", ...role }, fill);
}

/** Return a figure with what it is called. */
export function tile(value, name, more) {
  return el("div.tile", el("strong", value), el("span", name), more ? el("small", more) : null);
}

/** Return a list to choose from: [value, text] each. */
export function choice(options, chosen, attributes = {}) {
  const items = options.map(([value, text]) => el("option", { value, selected: value === chosen }, text));
  return el("select", attributes, items);
}

/** Return a place that says it is loading, until what it waits for is there, or says what went wrong. */
export function later(load, draw, { signal, waiting = "Loading…" } = {}) {
  const place = el("div.later");
  const start = async () => {
    place.replaceChildren(el("p.quiet.loading", waiting));
    try {
      const value = await load();
      if (!signal?.aborted) place.replaceChildren(...[draw(value)].flat());
    } catch (error) {
      if (signal?.aborted) return;
      const retry = el("button", { onclick: start }, "Retry");
      place.replaceChildren(el("p.notice", `${error.message} `, retry));
    }
  };
  start();
  return place;
}

const whole = new Intl.NumberFormat("en");

/** 12345 as "12,345". */
export function count(number, one, many = `${one}s`) {
  return one === undefined ? whole.format(number) : `${whole.format(number)} ${number === 1 ? one : many}`;
}

/** A figure with so many digits after the point; a dash where there is none. */
export function figure(number, digits = 3) {
  return Number.isFinite(number) ? number.toFixed(digits) : "–";
}

/** 0.123 as "12 %", with a digit more below one per cent. */
export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "<\u202f0.1\u202f%";
  return `${value < 1 && value > 0 ? value.toFixed(1) : Math.round(value)}\u202f%`;
}

/** Return a switch; its id keeps the focus on it when the view is drawn anew. */
export function toggle(id, text, checked, change) {
  const box = el("input", { type: "checkbox", id, checked, onchange: () => change(box.checked) });
  return el("label.switch", box, el("span", text));
}
