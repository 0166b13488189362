// A question and its ranked answers.

import { go, href, turnInto } from "./address.js";
import { get, getOnce, of, post, ServerError } from "./api.js";
import { bar, count, el, entityLink, figure, later, link, percent, relationLink, toggle, words } from "./dom.js";
import { ALL_RELATIONS, caution, sentence } from "./entity.js";
import { judged, judging } from "./judge.js";
import { missing } from "./run.js";
import { asCode, copyLink, tableButtons } from "./share.js";

const FIRST = 10; // answers, until more are asked for
const MOST = 200;
const COVERAGE = 0.9;
const USEFUL = 50; // members of an answer set that are worth a list
const NAMED = 6; // members of an answer set that are named
const PARTS = ["head", "relation", "tail"];

/** Show the answers to a question: the part of head, relation and tail that the address leaves out. */
export async function show({ run, runs, params, signal, fail }) {
  const question = questionOf(params);
  const k = Math.min(MOST, Number.parseInt(params.k, 10) || FIRST);
  const [answers, labels, before] = await Promise.all([
    answersTo(run, question, k, params.new, signal),
    labelsOf(run, question, signal),
    judged(run, signal),
  ]);
  const same = { ...params, run: run.name }, guessed = caution(labels.entities);
  return {
    title: plain(labels),
    said: `${count(answers.length, "answer")} to ${plain(labels)}`,
    body: [
      el("h1.question", asked(run, question, labels)),
      guessed,
      run.calibrated
        ? question.relation && !guessed && answerSet(run, question, signal)
        : missing("has no probabilities yet", `modulekge calibrate …/${run.name}`, "makes them"),
      el("div.tools",
        toggle("new", "Fold known answers away", Boolean(params.new), (on) => go("ask", { ...same, new: on ? 1 : null })),
        elsewhere(run, runs, question),
        copyLink(), tableButtons("answers", answers),
      ),
      answers.length
        ? answerList(run, question, answers, new Map(), { fail, before })
        : el("p.notice", "No answers: the graph knows all of them already."),
      params.new && question.relation ? folded(run, question, signal) : null,
      asCode(run, "predict", bodyOf(question, k, params.new), pythonOf(run, question, k, params.new)),
      answers.length === k && k < MOST ? more(() => turnInto("ask", { ...same, k: 2 * k })) : null,
    ],
  };
}

/** Return the question of an address. */
function questionOf(params) {
  const given = PARTS.filter((part) => params[part]);
  if (given.length !== 2) {
    throw new ServerError("This address asks nothing: it has to leave out one of head, relation and tail.");
  }
  return Object.fromEntries(given.map((part) => [part, params[part]]));
}

/** Return the ranked answers of a run to a question. */
export async function answersTo(run, question, k, isNew, signal) {
  return (await post(of(run, "predict"), bodyOf(question, k, isNew), signal)).answers[0];
}

function bodyOf(question, k, isNew) {
  return { questions: [question], k, known: isNew ? "exclude" : "mark" };
}

function pythonOf(run, question, k, isNew) {
  const given = Object.entries(question).map(([part, name]) => `${part}=${JSON.stringify(name)}, `).join("");
  const known = isNew ? "exclude" : "mark";
  return `import modulekge\n\nmodulekge.predict(${JSON.stringify(run.name)}, ${given}k=${k}, known="${known}")`;
}

/** Return head, relation and tail as people call them, "?" for what is asked, and the entities among them. */
export async function labelsOf(run, question, signal) {
  const entity = (name) => (name ? get(of(run, "entity"), { name, limit: 1 }, signal) : null);
  const relation = async (name) => {
    if (!name) return "?";
    const { items } = await getOnce(of(run, "relations"), { limit: ALL_RELATIONS });
    return words(items.find((each) => each.name === name)?.label ?? name);
  };
  const { head, relation: middle, tail } = question;
  const [h, r, t] = await Promise.all([entity(head), relation(middle), entity(tail)]);
  return { head: h?.label ?? "?", relation: r, tail: t?.label ?? "?", entities: [h, t].filter(Boolean) };
}

/** Return the answers, best first: a bar for the probability, whether it is known, the score, and why. */
export function answerList(run, question, answers, shared = new Map(), judges = null) {
  const titles = ["", "answer", "probability", "score", "", ""].map((text) => el("span", text));
  return [
    el("div.answers-head", { "aria-hidden": "true" }, titles),
    el(judges ? "ol.answers.judged" : "ol.answers", answers.map((answer) => row(run, question, answer, shared, judges))),
  ];
}

function row(run, question, answer, shared, judges) {
  const asked = PARTS.find((part) => !question[part]);
  const triple = { run: run.name, ...question, [asked]: answer.name };
  const { name, label, split } = answer, why = { href: href("why", triple), "aria-label": `why? ${label}` };
  const linked = asked === "relation" ? relationLink(run, name, label) : entityLink(run, name, label);
  return el("li",
    el("span.rank", `${answer.rank}`),
    el("span.answer", linked, mark(answer), itself(question, answer), shared.get(name)),
    chance(answer),
    el("span.score", { title: "score of the model" }, figure(answer.score, 2)),
    judges ? (split === null ? judgeOf(run, triple, label, judges) : el("span.judging")) : null,
    el("a.why", why, "why?"),
  );
}

function judgeOf(run, { head, relation, tail }, label, { fail, before }) {
  const triple = { head, relation, tail };
  return judging(run, triple, { fail, label, said: before.get(JSON.stringify([head, relation, tail])) }).node;
}

/** Return whether an answer is a fact, one held out from training, or new. */
function mark({ split }) {
  if (split === null) return el("span.mark.new", "new");
  const held = split === "train" ? "known" : `known, ${split}`;
  return el("span.mark", held);
}

/** An entity may come out as an answer about itself: the model does not know that this is odd. */
function itself({ head, tail }, { name }) {
  return name === (head ?? tail) ? el("span.quiet", "itself") : null;
}

function chance({ probability, split }) {
  if (probability === null) {
    return el("span.chance.quiet", split === "train" ? "already known" : "");
  }
  const text = percent(probability);
  return el("span.chance", bar(probability, { words: `probability ${text}` }), el("span", text));
}

/** Return the known answers, behind the new ones and folded. */
function folded(run, { head, relation, tail }, signal) {
  const asked = { name: head ?? tail, relation, direction: head ? "out" : "in", limit: MOST };
  const load = () => get(of(run, "entity"), asked, signal);
  const draw = ({ facts: [{ total, items } = { total: 0, items: [] }] }) => (total
    ? el("details.known", el("summary", `${count(total, "known answer")}`),
      el("ul.chips", items.map(({ name, label }) => el("li", entityLink(run, name, label)))))
    : el("p.quiet", "No known answers."));
  return later(load, draw, { signal });
}

function asked(run, question, labels) {
  const side = (part) => (question[part] ? entityLink(run, question[part], labels[part]) : unknown());
  const middle = question.relation ? relationLink(run, question.relation, labels.relation) : unknown();
  return sentence(side("head"), middle, side("tail"));
}

function unknown() {
  return el("span.unknown", "?");
}

function plain({ head, relation, tail }) {
  return `${head} ${relation} ${tail}`;
}

function answerSet(run, question, signal) {
  const load = () => post(of(run, "answer-set"), { ...question, coverage: COVERAGE, limit: NAMED }, signal);
  return later(load, (set) => el("p.set", setWords(run, set)), { signal, waiting: "Weighing…" });
}

function setWords(run, { answers, size, coverage, candidates, everything, triples, own, measured }) {
  const basis = `by ${count(triples, "held-out fact")} of ${own ? "this relation" : "all relations"}`;
  const seen = measured === null ? "" : `; measured on test: ${percent(measured)}`;
  const note = el("span.quiet", ` (${basis}${seen})`);
  if (everything) return ["Too uncertain to narrow down: no candidate can be left out", note, "."];
  if (size > USEFUL) {
    const many = `${count(size)} of ${count(candidates, "candidate")}`;
    return [`Too uncertain to name: it takes ${many} to hold a missing fact in ${tenths(coverage)}`, note, "."];
  }
  const named = answers
    .slice(0, NAMED)
    .flatMap(({ name, label }, i) => [i ? ", " : "", entityLink(run, name, label)]);
  const rest = size > NAMED ? ` and ${count(size - NAMED)} more` : "";
  const these = size === 1 ? "it is this one" : `it is among these ${count(size)}`;
  return [el("strong", `If a fact is missing, ${these} in ${tenths(coverage)}`), ": ", ...named, rest, note];
}

function tenths(share) {
  return `about ${Math.round(10 * share)} of 10 cases`;
}

function elsewhere(run, runs, question) {
  const other = runs.find(({ name, graph }) => name !== run.name && graph === run.graph);
  if (!other || !question.relation) return null;
  return link("compare", { run: run.name, with: other.name, ...question }, `Ask ${other.name} too`);
}

function more(onclick) {
  return el("p", el("button.plain", { id: "more", onclick }, "Show more answers"));
}
