// What is shown in the place of a view that cannot be: what is wrong, and where to go from there.

import { get, of } from "./api.js";
import { el, link } from "./dom.js";

const NEAR = 5; // names that may have been meant

/** Return the view of an error; an unknown name comes with links to the same view of names like it. */
export async function problem(error, { run, view, params, signal }) {
  const part = error.field?.split(".").at(-1), given = params[part];
  const near = error.status === 404 && given ? await like(run, part, given, signal) : [];
  const title = near.length || given ? `“${given}” is not in ${run.name}` : "This cannot be shown";
  const items = near.map(({ name, label }) => el("li", link(view, { ...params, [part]: name, run: run.name }, label)));
  return {
    title,
    said: error.message,
    body: [
      el("h1", title),
      el("p", error.message),
      items.length ? [el("h2", "Did you mean"), el("ul.chips", items)] : null,
      el("p.quiet", link("", { run: run.name }, "Start page")),
    ],
  };
}

async function like(run, part, text, signal) {
  const kind = part === "relation" ? "relations" : "entities";
  return (await get(of(run, kind), { search: text, limit: NEAR }, signal)).items;
}
