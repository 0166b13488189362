// Many questions at once, pasted as lines.

import { of, post } from "./api.js";
import { href } from "./address.js";
import { count, el, figure, percent } from "./dom.js";
import { tableButtons } from "./share.js";

const AT_ONCE = 64; // questions in a request
const MOST = 1000;
const ANSWERS = 3; // to each
const PARTS = ["head", "relation", "tail"];

/** Show a place to paste questions. */
export async function show({ run, signal, fail }) {
  const title = "Many questions at once";
  const text = el("textarea", { id: "lines", rows: 8, spellcheck: "false", placeholder: "France\tborders\t?" });
  const found = el("div", { role: "status" }), button = el("button.main", { id: "ask" }, "Ask");
  const file = el("input", { type: "file", accept: ".csv,.tsv,.txt,text/plain,text/csv", onchange: read });
  async function read() {
    if (!file.files.length) return;
    text.value = await file.files[0].text();
    ask();
  }
  async function ask(event) {
    event?.preventDefault();
    const lines = text.value.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, MOST);
    const asked = lines.map(questionOf);
    found.replaceChildren(el("p.quiet.loading", "Asking…"));
    button.disabled = true;
    try {
      const rows = [];
      for (let i = 0; i < asked.length; i += AT_ONCE) rows.push(...await answersTo(run, asked.slice(i, i + AT_ONCE), signal));
      found.replaceChildren(...(rows.length ? table(run, rows) : [el("p.quiet", "Nothing was asked.")]));
    } catch (error) {
      found.replaceChildren();
      if (!signal.aborted) fail(error, ask);
    } finally {
      button.disabled = false;
    }
  }
  return {
    title,
    body: [
      el("h1", title),
      el("form.panel", { onsubmit: ask, "aria-label": "Questions" },
        el("label.text", { for: "lines" }, "One question a line: start, relation, end, with “?” for what is asked"),
        text, el("p.quiet", "Parts are separated by tabs, or by commas: copy them from a spreadsheet."),
        el("div.tools", button, el("label.asked", el("span", "or a file"), file))),
      found,
    ],
  };
}

/** Return the question of a line, or what is wrong with it. */
export function questionOf(line) {
  const parts = (line.includes("\t") ? line.split("\t") : line.split(",")).map((part) => part.trim());
  if (parts.length !== 3) return { line, error: "expected three parts" };
  const given = PARTS.map((part, i) => [part, parts[i]]).filter(([, text]) => text && text !== "?");
  if (given.length !== 2) return { line, error: "leave exactly one part open" };
  return { line, question: Object.fromEntries(given) };
}

async function answersTo(run, asked, signal) {
  const whole = asked.filter(({ question }) => question);
  const found = whole.length ? await predicted(run, whole.map(({ question }) => question), signal) : null;
  let next = 0;
  return asked.map((each) => {
    if (each.error) return each;
    const i = next++;
    return { ...each, error: found.errors[i]?.error, answers: found.answers[i] };
  });
}

/** Ask; where the server knows no name of any question, each has its error. */
async function predicted(run, questions, signal) {
  try {
    return await post(of(run, "predict"), { questions, k: ANSWERS, known: "exclude" }, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    return { errors: questions.map(() => ({ error: error.message })), answers: questions.map(() => []) };
  }
}

function table(run, rows) {
  const records = rows.flatMap(({ line, question, error, answers }) => error
    ? [{ question: line, rank: "", answer: "", probability: "", score: "", error }]
    : answers.map(({ rank, name, probability, score }) =>
      ({ question: line, rank, answer: name, probability, score, error: "", asked: question })));
  const cell = ({ question, rank, answer, probability, score, error, asked }) => el("tr",
    el("th", { scope: "row" }, rank > 1 ? "" : asked
      ? el("a", { href: href("ask", { run: run.name, ...asked }) }, question) : question),
    error ? el("td", { colspan: 3, class: "wrong" }, error)
      : [el("td", answer), el("td", percent(probability)), el("td", figure(score, 2))]);
  const head = el("thead", el("tr", ["Question", "New answer", "Probability", "Score"].map((text) =>
    el("th", { scope: "col" }, text))));
  const failed = rows.filter(({ error }) => error).length;
  return [
    el("p.tools", `${count(rows.length - failed, "question")} answered, ${count(failed)} not.`,
      tableButtons("answers", records.map(({ asked: _, ...record }) => record))),
    el("table.bulk", head, el("tbody", records.map(cell))),
  ];
}
