// What is shown, taken elsewhere: a link, a file, or the request that asks for it.

import { fetchFile } from "./api.js";
import { el } from "./dom.js";

/** Save a blob as a file. */
function save(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Save what the server has under a path, in a format that it knows. */
export async function saveAs(path, kind, name) {
  save(await fetchFile(path, kind), name);
}

/** Return records as comma-separated values, with a header; lists are left out. */
export function csvOf(records) {
  const columns = Object.keys(records[0] ?? {}).filter((name) => typeof (records[0][name] ?? "") !== "object");
  const cell = (value) => (/[",\r\n]/.test(`${value ?? ""}`) ? `"${`${value}`.replaceAll('"', '""')}"` : `${value ?? ""}`);
  return [columns, ...records.map((record) => columns.map((name) => record[name]))]
    .map((row) => `${row.map(cell).join(",")}\n`).join("");
}

/** Return buttons that save records as CSV and as JSON. */
export function tableButtons(name, records) {
  const files = [["CSV", "text/csv", csvOf], ["JSON", "application/json", (all) => JSON.stringify(all, null, 1)]];
  return files.map(([text, kind, write]) => el("button.plain", {
    type: "button", "aria-label": `${text}: save as a file`,
    onclick: () => save(new Blob([write(records)], { type: kind }), `${name}.${text.toLowerCase()}`),
  }, text));
}

/** Return a button that copies the address of the view. */
export function copyLink() {
  const button = el("button.plain", { type: "button", onclick: copy }, "Copy link");
  async function copy() {
    await copied(location.href);
    button.textContent = "Copied";
  }
  return button;
}

async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = el("textarea", text); // a page that is not from this machine and without TLS has no clipboard
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

/** Return a request as a command and as a program, folded. */
export function asCode(run, path, body, python) {
  const url = new URL(`api/v1/runs/${encodeURIComponent(run.name)}/${path}`, location.href.split("#")[0]).href;
  const quoted = `'${JSON.stringify(body).replaceAll("'", `'\\''`)}'`;
  const curl = `curl ${url} \\\n  -H 'content-type: application/json' \\\n  -d ${quoted}`;
  return el("details.code", el("summary", "As curl or Python"),
    el("pre", { tabindex: 0, "aria-label": "curl" }, curl),
    el("pre", { tabindex: 0, "aria-label": "Python" }, python));
}
