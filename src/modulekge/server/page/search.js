// A box that finds entities as one types: a combobox with a list of suggestions.

import { get, of } from "./api.js";
import { count, el } from "./dom.js";

const PAUSE = 90; // ms after a keystroke, before the server is asked
const SUGGESTIONS = 8;
let boxes = 0;

/**
 * Return a search box. `run()` says which run is searched, `choose(entity)` is called with what was chosen,
 * `fail(error, retry)` with what went wrong.
 */
export function searchBox({ run, choose, fail, label, placeholder }) {
  const id = `suggestions-${++boxes}`;
  const list = el("ul", { role: "listbox", id, "aria-label": "Suggestions", hidden: true });
  const said = el("span.unseen", { role: "status" });
  const input = el("input", {
    type: "search", role: "combobox", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    placeholder, "aria-label": label,
    "aria-autocomplete": "list", "aria-controls": id, "aria-expanded": "false",
  });
  let found = [], active = -1, asking = new AbortController(), timer;

  function close() {
    asking.abort();
    clearTimeout(timer);
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    mark(-1);
  }

  function mark(index) {
    active = index;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
    if (index < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", `${id}-${index}`);
    list.children[index]?.scrollIntoView({ block: "nearest" });
  }

  function step(by) {
    if (found.length) mark((active + by + found.length) % found.length);
  }

  function pick(index) {
    const entity = found[index];
    if (!entity) return;
    input.value = "";
    found = [];
    close();
    choose(entity);
  }

  function draw(text, total) {
    list.replaceChildren(...found.map((entity, i) => suggestion(entity, text, {
      id: `${id}-${i}`, onpointerdown: (event) => event.preventDefault(), onclick: () => pick(i),
    })));
    if (!found.length) list.append(el("li.none.quiet", `Nothing is called “${text}”.`));
    said.textContent = found.length ? `${count(total, "suggestion")}` : `Nothing is called ${text}.`;
    list.hidden = false;
    input.setAttribute("aria-expanded", String(found.length > 0));
    mark(found.length ? 0 : -1);
  }

  async function ask() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking, text = input.value.trim();
    if (!text) return close();
    try {
      const { items, total } = await get(of(run(), "entities"), { search: text, limit: SUGGESTIONS }, signal);
      if (signal.aborted) return;
      found = items;
      draw(text, total);
    } catch (error) {
      if (!signal.aborted) fail(error, ask);
    }
  }

  const keys = {
    ArrowDown: () => (list.hidden ? ask() : step(1)),
    ArrowUp: () => step(-1),
    Enter: () => (list.hidden ? ask() : pick(active)),
    Escape: () => (list.hidden ? (input.value = "") : close()),
  };
  input.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.isComposing) return;
    event.preventDefault();
    keys[event.key]();
  });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  });
  input.addEventListener("blur", close);
  return el("div.search", input, list, said);
}

function suggestion(entity, text, attributes) {
  const name = entity.name === entity.label ? null : el("span.name", entity.name);
  const degree = el("span.quiet", count(entity.degree, "fact"));
  return el("li", { role: "option", ...attributes }, el("span", ...marked(entity.label, text)), name, degree);
}

/** The label, with what was typed set off. */
function marked(label, text) {
  const at = label.toLowerCase().indexOf(text.toLowerCase());
  if (at < 0) return [label];
  const end = at + text.length;
  return [label.slice(0, at), el("mark", label.slice(at, end)), label.slice(end)];
}
