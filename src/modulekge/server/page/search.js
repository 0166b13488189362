// A box that finds entities as one types: a combobox with a list of suggestions.

import { get, of } from "./api.js";
import { count, el } from "./dom.js";

const PAUSE = 90; // ms after a keystroke, before the server is asked
const SUGGESTIONS = 8;
let boxes = 0;

/**
 * Return a search box. `run()` says which run is searched, `choose(entity)` is called with what was chosen,
 * `fail(error, retry)` with what went wrong. `offer(text)` gives suggestions that come before those of the
 * server, and `kept(entity)` what stands in the box once something was chosen. `kind` is what is searched:
 * "entities" or "relations"; an `eager` box shows the most used before anything is typed. One that `settles`
 * takes the only suggestion when it is left.
 */
export function searchBox({
  run, choose, fail, label, placeholder, kind = "entities", eager = false, settles = false, offer = () => [], kept = () => "",
}) {
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
    input.value = kept(entity);
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

  async function ask(text = input.value.trim()) {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking, offered = offer(text);
    if (!text && !offered.length && !eager) return close();
    try {
      const { items, total } = await matches(run(), kind, text, text || eager ? signal : null);
      if (signal.aborted) return;
      found = [...offered, ...items];
      draw(text, total + offered.length);
    } catch (error) {
      if (!signal.aborted) fail(error, () => ask());
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
    timer = setTimeout(() => ask(), PAUSE);
  });
  input.addEventListener("click", () => list.hidden && (eager || offer("").length) && ask("")); // of what is offered
  input.addEventListener("blur", () => (settles && !list.hidden && found.length === 1 ? pick(0) : close()));
  return el("div.search", input, list, said);
}

/** Return what matches a text; nothing where nobody waits for it. */
async function matches(run, kind, text, signal) {
  return signal ? get(of(run, kind), { search: text, limit: SUGGESTIONS }, signal) : { items: [], total: 0 };
}

function suggestion(entity, text, attributes) {
  const name = entity.name === entity.label ? null : el("span.name", entity.name);
  const note = el("span.quiet", entity.note ?? count(entity.degree ?? entity.triples, "fact"));
  return el("li", { role: "option", ...attributes }, el("span", ...marked(entity.label, text)), name, note);
}

/** The label, with what was typed set off. */
function marked(label, text) {
  const at = label.toLowerCase().indexOf(text.toLowerCase());
  if (at < 0) return [label];
  const end = at + text.length;
  return [label.slice(0, at), el("mark", label.slice(at, end)), label.slice(end)];
}
