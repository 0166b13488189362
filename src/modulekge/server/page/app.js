// The frame of the page: it draws the view that the address names, and says what goes wrong.

import { go, href, parse } from "./address.js";
import { getOnce, hasToken, keepToken, ServerError } from "./api.js";
import { el } from "./dom.js";
import { searchBox } from "./search.js";
import * as around from "./around.js";
import * as ask from "./ask.js";
import * as bulk from "./bulk.js";
import * as compare from "./compare.js";
import * as compound from "./compound.js";
import * as entity from "./entity.js";
import * as home from "./home.js";
import * as map from "./map.js";
import { problem } from "./problem.js";
import * as relation from "./relation.js";
import * as review from "./review.js";
import * as run from "./run.js";
import * as why from "./why.js";

const VIEWS = new Map(Object.entries({ "": home, around, ask, bulk, compare, compound, entity, map, relation, review, run, why }));
const WRONG = [400, 404, 422]; // what the address is to blame for
const SLOW = 150; // ms after which a view that is not there yet is said to be loading
const named = (id) => document.getElementById(id);
const main = named("main"), banner = named("banner"), runChoice = named("run"), themeButton = named("theme");
const scrolled = new Map(); // how far down each entry of the history was left
let drawing = new AbortController(), entry = null, current = null; // entry: the one whose view is shown

/** Draw the view that the address names; a newer address stops an older one that is still loading. */
async function draw() {
  drawing.abort();
  drawing = new AbortController();
  const { signal } = drawing, { view, params } = parse(location.hash), drawn = visit();
  const slow = setTimeout(() => main.setAttribute("aria-busy", "true"), SLOW);
  signal.addEventListener("abort", () => clearTimeout(slow));
  try {
    const runs = await getOnce("runs");
    const chosen = params.run === undefined ? runs[0] : runs.find((each) => each.name === params.run);
    current = chosen ?? runs[0];
    frame(view, params, runs, current);
    if (!chosen) throw new ServerError(`The server has no run “${params.run}”; choose one above.`);
    if (!VIEWS.has(view)) throw new ServerError(`This page has no view “${view}”; begin at the start page.`);
    const shown = await VIEWS.get(view).show({ run: chosen, runs, params, signal, fail });
    if (signal.aborted) return;
    place(shown, drawn);
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) askForToken(drawn);
    else if (current && WRONG.includes(error.status)) await explain(error, { view, params, signal, drawn });
    else fail(error, draw);
  } finally {
    clearTimeout(slow);
    if (!signal.aborted) main.removeAttribute("aria-busy");
  }
}

/** Say in the place of a view why it cannot be shown. */
async function explain(error, { view, params, signal, drawn }) {
  try {
    const shown = await problem(error, { run: current, view, params, signal });
    if (!signal.aborted) place(shown, drawn);
  } catch (again) {
    if (!signal.aborted) fail(again, draw);
  }
}

/** Return the name of the entry of the history that the address stands for: a new one unless visited before. */
function visit() {
  const name = history.state?.entry ?? `${Date.now()} ${Math.random()}`;
  history.replaceState({ entry: name }, "");
  return name;
}

/** Put a view on the page: what had the focus keeps it where it is still there, else the heading has it. */
function place({ title, body, said }, drawn) {
  const active = document.activeElement;
  const kept = active === runChoice || (main.contains(active) && active.id);
  banner.hidden = true;
  main.replaceChildren(...body.flat().filter(Boolean));
  document.title = `${title} · modulekge`;
  named("status").textContent = said ?? title;
  const heading = main.querySelector("h1");
  heading?.setAttribute("tabindex", "-1");
  const same = kept ? named(active.id) : null;
  (same ?? heading)?.focus({ preventScroll: true });
  entry = drawn; // not the one the history is at now: it may have moved on, unheard of yet
  if (!same) scrollTo(0, scrolled.get(entry) ?? 0);
}

/** Bring the parts that all views share up to the address. */
function frame(view, params, runs, chosen) {
  lock(false);
  named("brand").href = href("", { run: chosen.name });
  for (const tab of document.querySelectorAll("nav a")) {
    tab.href = href(tab.dataset.view, { run: chosen.name });
    if (tab.dataset.view === view) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  runChoice.replaceChildren(
    ...runs.map(({ name }) => el("option", { value: name, selected: name === chosen.name }, name)),
  );
  const swapped = () => (params.with === runChoice.value ? chosen.name : params.with);
  runChoice.onchange = () => go(view, { ...params, run: runChoice.value, with: swapped() });
}

/** Say what went wrong, in the words of the server, with a way to try again. */
function fail(error, retry) {
  const again = () => {
    banner.hidden = true;
    retry();
  };
  const known = error instanceof ServerError;
  if (!known) console.error(error);
  banner.replaceChildren(
    el("span", known ? error.message : "This page made a mistake; the console of the browser names it."),
    el("button", { onclick: again }, "Retry"),
    el("button.plain", { onclick: () => (banner.hidden = true) }, "Close"),
  );
  banner.hidden = false;
}

/** Let nobody use what needs a run, while there is none. */
function lock(locked) {
  for (const part of document.querySelectorAll("#search, .run-choice, nav")) part.inert = locked;
}

function askForToken(drawn) {
  const wrong = hasToken();
  lock(true);
  const input = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const keep = (event) => {
    event.preventDefault();
    keepToken(input.value.trim());
    draw();
  };
  const form = el("form.token", { onsubmit: keep },
    el("h1", "This server asks for a token"),
    el("p", wrong ? { class: "wrong", role: "alert" } : {}, wrong
      ? "This is not the token that the server was started with; try again."
      : "Whoever started the server has it."),
    el("label", { for: "token" }, "Token"), input,
    el("button", "Continue"),
    el("p.quiet", "It is kept in this tab only, and forgotten when the tab is closed."),
  );
  place({ title: "Token", body: [form] }, drawn);
  input.focus();
}

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function nameTheme() {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", `${themeButton.textContent} colours`);
  document.dispatchEvent(new Event("theme"));
}

themeButton.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  localStorage.setItem("modulekge-theme", document.documentElement.dataset.theme);
  nameTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);

named("search").append(searchBox({
  run: () => current,
  choose: ({ name }) => go("entity", { run: current.name, name }),
  fail,
  label: "Search entities",
  placeholder: "Search entities",
}));

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") banner.hidden = true;
  const typing = event.target.closest("input, textarea, select");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  document.querySelector("#search input").focus();
});
named("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("scroll", () => scrolled.set(entry, scrollY), { passive: true });
addEventListener("hashchange", draw);
history.scrollRestoration = "manual";
nameTheme();
draw();
