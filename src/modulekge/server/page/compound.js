// A question of several links, chosen in rows or written, and its answers with what speaks for them.

import { turnInto } from "./address.js";
import { getOnce, of, post } from "./api.js";
import { bar, count, el, entityLink, later, link, percent, section } from "./dom.js";
import { ALL_RELATIONS } from "./entity.js";
import { examples } from "./examples.js";
import { questionForm } from "./form.js";
import { pointedAt } from "./question.js";
import { missing } from "./run.js";
import { legend, witness } from "./witness.js";

const TITLE = "Ask a compound question";
const FIRST = 10; // answers, until more are asked for
const MOST = 200;
const REFUSED = [400, 404, 422]; // what the question itself is to blame for

/** Show a question and its answers, or questions to begin with. */
export async function show({ run, params, signal, fail }) {
  const relations = await getOnce(of(run, "relations"), { limit: ALL_RELATIONS });
  const text = params.q ?? "", wrong = el("div.wrong", { id: "wrong", role: "alert" });
  const form = questionForm({ run, params, relations: relations.items, wrong, signal, fail });
  return {
    title: text || TITLE,
    said: TITLE,
    body: [
      el("h1", TITLE),
      el("p.lead", "Several links joined by and, or, not. A word with a question mark is a variable: ",
        "whatever fits in all of its places."),
      form,
      text ? answersTo(run, params, wrong, signal) : beginnings(run, signal),
    ],
  };
}

/** Return questions to begin with, made of facts of the graph. */
function beginnings(run, signal) {
  const list = (found) => found.length
    ? el("ul.beginnings", found.map(({ text: q, shown }) => el("li", link("compound", { run: run.name, q }, shown))))
    : el("p.quiet", "The graph is too small for one.");
  const waiting = "Looking for examples…";
  return section("For example", later(() => examples(run, signal), list, { signal, waiting }));
}

/** Return the answers to a question, once they are there; what is wrong with it is said where it is written. */
function answersTo(run, params, wrong, signal) {
  const k = Math.min(MOST, Number.parseInt(params.k, 10) || FIRST);
  const body = { question: params.q, k, known: params.new ? "exclude" : "mark" };
  if (params.t_norm) body.t_norm = params.t_norm;
  const load = async () => {
    try {
      return await post(of(run, "ask"), body, signal);
    } catch (error) {
      if (!REFUSED.includes(error.status)) throw error;
      return { refused: error.message };
    }
  };
  const summary = el("p.quiet.summary", { role: "status" });
  const draw = (found) => {
    if (found.refused) return refuse(wrong, params.q, found.refused);
    summary.textContent = summaryOf(found, params);
    return answers(run, params, found, k, signal);
  };
  return [summary, later(load, draw, { signal, waiting: "Working out the answers…" })];
}

function refuse(wrong, text, message) {
  wrong.replaceChildren(...refusal(text, message));
  document.getElementById("question").setAttribute("aria-invalid", "true");
  return [];
}

/** Return what the server says, and the question with the word that it points at marked. */
function refusal(text, message) {
  const [, character, finding] = /^character (\d+): (.*)$/s.exec(message) ?? [];
  if (!character) return [el("p", message)];
  const [before, word, behind] = pointedAt(text, Number(character));
  const marked = el("code.pointed", before, el("mark", word.trim() ? word : "\u00a0\u00a0"), behind);
  return [el("p", finding), el("p", marked)];
}

function summaryOf({ answers: { length }, possible, threshold }, params) {
  const kind = params.new ? "new answer" : "answer";
  const least = `what is below ${percent(threshold)} counts as impossible`;
  const best = `The ${count(length, `best ${kind}`)}`, all = count(possible ?? 0, `possible ${kind}`);
  return `${length ? (possible === null ? best : all) : `No ${kind}s`}; ${least}.`;
}

function answers(run, params, { answers: found, possible, probabilities }, k, signal) {
  const onclick = () => turnInto("compound", { ...params, run: run.name, k: 2 * k });
  const more = found.length === k && k < MOST && found.length !== possible;
  return [
    probabilities === "calibrated" ? null
      : missing("has no calibrated probabilities yet", `modulekge calibrate …/${run.name}`, "makes them"),
    found.length ? legend(found) : null,
    found.length ? el("ol.answers.compound", found.map((answer) => row(run, answer, signal))) : null,
    more ? el("p", el("button.plain", { id: "more", onclick }, "Show more answers")) : null,
  ].filter(Boolean);
}

function row(run, answer, signal) {
  const { rank, name, label, known, probability } = answer, text = percent(probability);
  return el("li",
    el("span.rank", `${rank}`),
    el("span.answer", entityLink(run, name, label), known ? el("span.mark", "known") : el("span.mark.new", "new")),
    el("span.chance", bar(probability, { words: `probability ${text}` }), el("span", text)),
    witness(run, answer, signal));
}
