// The form of a compound question: rows and text, which say the same, and how it is to be answered.

import { go } from "./address.js";
import { choice, el, link, toggle } from "./dom.js";
import { blank, linkRows } from "./links.js";
import { questionOf, textOf } from "./question.js";

const LONGEST = 10_000; // characters of a question
const T_NORMS = [
  ["product", "product: links are independent"],
  ["godel", "Gödel: the weakest link counts"],
  ["lukasiewicz", "Łukasiewicz: doubts add up"],
];
const USUAL = T_NORMS[0][0];
const INSTEAD = "Rows cannot show this: it has other brackets, is SPARQL, or is not whole. The text is asked.";
const HINT = "Names of several words stand in quotes. Enter asks, Shift and Enter begin a new line.";

/** Return a form for the question of an address; `wrong` is where it says what is wrong with it. */
export function questionForm({ run, params, relations, wrong, signal, fail }) {
  const text = textBox(params.q ?? "");
  const rows = linkRows({ run, relations, signal, fail, changed: write });
  const instead = el("p.notice", INSTEAD), settings = { new: params.new, t_norm: params.t_norm };

  /** Bring the rows up to the text; where they cannot, they stay, so that nothing moves while one types. */
  function read() {
    const question = text.value.trim() ? questionOf(text.value) : blank();
    if (question) rows.show(question);
    else rows.giveWay();
    instead.hidden = Boolean(question);
    forgive();
  }

  function write(question) {
    text.value = textOf(question);
    forgive();
  }

  function forgive() {
    wrong.replaceChildren();
    text.removeAttribute("aria-invalid");
  }

  function ask() {
    go("compound", { run: run.name, q: text.value, ...settings });
  }

  /** Keep a setting; what was asked is asked anew. */
  function set(part) {
    Object.assign(settings, part);
    if (params.q) ask();
  }

  function submit(event) {
    event.preventDefault();
    const open = text.value.trim() ? rows.gap() : { id: text.id, said: "Choose links, or write a question." };
    if (!open) return ask();
    wrong.replaceChildren(el("p", open.said));
    document.getElementById(open.id).focus();
  }

  text.addEventListener("input", read);
  read();
  rows.node.hidden = rows.node.inert;
  return el("form.panel.compound-form", { onsubmit: submit, "aria-label": "Question" },
    rows.node,
    el("label.text", { for: text.id }, "The question as text"), text,
    el("p.quiet", { id: "question-hint" }, HINT), instead, wrong,
    el("div.tools", el("button.main", { id: "ask" }, "Ask"), settingsOf(params, set),
      params.q ? link("compound", { run: run.name }, "Start afresh") : null));
}

function textBox(value) {
  const enter = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  };
  return el("textarea", {
    id: "question", rows: 2, maxlength: LONGEST, spellcheck: "false", autocapitalize: "off",
    "aria-describedby": "question-hint wrong", placeholder: '?x where "some entity" relation ?x', onkeydown: enter,
  }, value);
}

/** Return what else can be chosen: only new answers, and how values are joined. */
function settingsOf(params, set) {
  const norm = choice(T_NORMS, params.t_norm ?? USUAL, {
    id: "t-norm", onchange: () => set({ t_norm: norm.value === USUAL ? null : norm.value }),
  });
  return [
    toggle("new", "New answers only", Boolean(params.new), (on) => set({ new: on ? 1 : null })),
    el("label.norm", el("span", "Join by"), norm),
  ];
}
