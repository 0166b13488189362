// The address of a view stands in the hash: "#/ask?run=demo&head=France&relation=borders".

/** Return the view and the parameters that an address names. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** Return the address of a view; parameters without a value are left out. */
export function href(view, params = {}) {
  const given = Object.entries(params).filter(([, value]) => (value ?? "") !== "");
  const query = new URLSearchParams(given).toString();
  return `#/${view}${query && `?${query}`}`;
}

/** Go to a view, as a link to it would. */
export function go(view, params) {
  location.hash = href(view, params);
}

/** Go to a view in the place of this one: "back" leads to what was before it. */
export function turnInto(view, params) {
  location.replace(href(view, params));
}
