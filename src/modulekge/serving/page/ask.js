// A question and its ranked answers.

import { go, href } from "./address.js";
import { get, getOnce, of, post, ServerError } from "./api.js";
import { bar, count, el, entityLink, figure, later, link, percent, words } from "./dom.js";
import { ALL_RELATIONS, sentence } from "./entity.js";

const FIRST = 10; // answers, until more are asked for
const COVERAGE = 0.9;
const NAMED = 6; // members of an answer set that are named
const PARTS = ["head", "relation", "tail"];

/** Show the answers to a question: the part of head, relation and tail that the address leaves out. */
export async function show({ run, runs, params, signal }) {
  const question = questionOf(params);
  const candidates = question.relation ? run.entities : run.relations;
  const k = Math.min(candidates, Number.parseInt(params.k, 10) || FIRST);
  const [answers, labels] = await Promise.all([
    answersTo(run, question, k, params.new, signal),
    labelsOf(run, question, signal),
  ]);
  const same = { ...params, run: run.name };
  return {
    title: plain(labels),
    said: `${count(answers.length, "answer")} to ${plain(labels)}`,
    body: [
      el("h1", { class: "question" }, asked(run, question, labels)),
      run.calibrated ? null : notCalibrated(run),
      run.calibrated && question.relation ? answerSet(run, question, signal) : null,
      el("div", { class: "tools" },
        switchTo("new", "New answers only", params.new, (on) => go("ask", { ...same, new: on ? 1 : null })),
        elsewhere(run, runs, question),
      ),
      answers.length
        ? answerList(run, question, answers)
        : el("p", { class: "notice" }, "No answers: the graph knows all of them already."),
      more(answers, k, candidates, () => go("ask", { ...same, k: k + (k < 50 ? FIRST : 50) })),
    ].filter(Boolean),
  };
}

/** Return the question of an address. */
export function questionOf(params) {
  const given = PARTS.filter((part) => params[part]);
  if (given.length !== 2) {
    throw new ServerError("This address asks for nothing: it has to leave out one of head, relation, tail.", 400);
  }
  return Object.fromEntries(given.map((part) => [part, params[part]]));
}

/** Return the ranked answers of a run to a question. */
export async function answersTo(run, question, k, isNew, signal) {
  const body = { questions: [question], k, known: isNew ? "exclude" : "mark" };
  return (await post(of(run, "predict"), body, signal)).answers[0];
}

/** Return head, relation and tail as people call them; "?" for what is asked. */
export async function labelsOf(run, question, signal) {
  const entity = async (name) => (name ? (await get(of(run, "entity"), { name }, signal)).label : "?");
  const relation = async (name) => {
    if (!name) return "?";
    const { items } = await getOnce(of(run, "relations"), { limit: ALL_RELATIONS });
    return words(items.find((each) => each.name === name)?.label ?? name);
  };
  const { head, relation: middle, tail } = question;
  const [h, r, t] = await Promise.all([entity(head), relation(middle), entity(tail)]);
  return { head: h, relation: r, tail: t };
}

/** Return the answers, best first: a bar for the probability, whether it is known, the score, and why. */
export function answerList(run, question, answers, shared = new Map()) {
  return el("ol", { class: "answers" }, answers.map((answer) => row(run, question, answer, shared)));
}

function row(run, question, answer, shared) {
  const asked = PARTS.find((part) => !question[part]);
  const triple = { run: run.name, ...question, [asked]: answer.name };
  const name = asked === "relation" ? el("span", {}, words(answer.label)) : entityLink(run, answer.name, answer.label);
  const why = el("a", { class: "why", href: href("why", triple), "aria-label": `Why ${answer.label}?` }, "why?");
  return el("li", {},
    el("span", { class: "rank" }, `${answer.rank}`),
    el("span", { class: "answer" }, name, mark(answer), shared.get(answer.name)),
    chance(answer),
    el("span", { class: "score", title: "score of the model" }, figure(answer.score, 2)),
    why,
  );
}

/** Return whether an answer is a fact, one held out from training, or new. */
function mark({ split }) {
  if (split === null) return el("span", { class: "mark new" }, "new");
  const held = split === "train" ? "known" : `known, ${split}`;
  return el("span", { class: "mark", title: split === "train" ? "a training fact" : `held out: ${split}` }, held);
}

function chance({ probability, split }) {
  if (probability === null) {
    return el("span", { class: "chance quiet" }, split === "train" ? "a fact it was trained on" : "");
  }
  const text = percent(probability);
  return el("span", { class: "chance" }, bar(probability, { words: `probability ${text}` }), el("span", {}, text));
}

function asked(run, question, labels) {
  const side = (part) => (question[part] ? entityLink(run, question[part], labels[part]) : unknown());
  return sentence(side("head"), question.relation ? labels.relation : unknown(), side("tail"));
}

function unknown() {
  return el("span", { class: "unknown" }, "?");
}

function plain({ head, relation, tail }) {
  return `${head} ${relation} ${tail}`;
}

function answerSet(run, question, signal) {
  const load = () => post(of(run, "answer-set"), { ...question, coverage: COVERAGE }, signal);
  return later(load, (set) => el("p", { class: "set" }, ...setWords(run, set)), { signal, waiting: "Weighing…" });
}

function setWords(run, { answers, size, coverage, everything, triples, own }) {
  const sure = `${percent(coverage)}`, basis = own ? "this relation" : "all relations";
  const note = el("span", { class: "quiet" }, ` (by ${count(triples, "held-out fact")} of ${basis})`);
  if (everything) return [`At ${sure} no candidate can be left out`, note, "."];
  const named = answers
    .slice(0, NAMED)
    .flatMap(({ name, label }, i) => [i ? ", " : "", entityLink(run, name, label)]);
  const rest = size > NAMED ? ` and ${count(size - NAMED)} more` : "";
  const these = size === 1 ? "This one is" : `These ${count(size)} contain`;
  return [el("strong", {}, `${these} the missing one with ${sure}`), ": ", ...named, rest, note];
}

function notCalibrated(run) {
  return el("p", { class: "notice" },
    "This run has no probabilities yet: ", el("code", {}, `modulekge calibrate ${run.name}`), " makes them.");
}

function elsewhere(run, runs, question) {
  const other = runs.find(({ name }) => name !== run.name);
  return other ? link("compare", { run: run.name, with: other.name, ...question }, "Ask another run too") : null;
}

/** Return a switch; its name keeps the focus on it when the view is drawn anew. */
export function switchTo(id, text, on, change) {
  const box = el("input", { type: "checkbox", id, checked: Boolean(on), onchange: () => change(box.checked) });
  return el("label", { class: "switch" }, box, el("span", {}, text));
}

function more(answers, k, candidates, onclick) {
  if (answers.length < k || k >= candidates) return null;
  return el("p", {}, el("button", { type: "button", id: "more", class: "plain", onclick }, "Show more answers"));
}
