// The small language of compound questions, as text and as a list of links.
//
// A question is { asked, links }: the variable that is asked for, and links { join, head, relation, tail }. A
// link joins those before it by "and", by "not" (and not), or by "or": an alternative of the link before it.
// A term is { variable } or { name }; null where nothing was chosen yet.

const TOKENS = /(\s+)|(\?[\p{L}\p{N}_]+)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([()])|([^\s()"'?][^\s()]*)/uy;
const KINDS = ["space", "variable", "quoted", "sign", "word"];
const KEYWORDS = ["where", "and", "or", "not"];
const OPEN = "…"; // stands for a term that was not chosen yet
const PLAIN = /^[^\s()"'?…][^\s()\x1c-\x1f\x85]*$/;
const LETTERS = [..."xyzabcdefghijklmnopqrstuvw"];

/** Return the words of a text with their places, or as many as can be read. */
export function tokens(text) {
  const found = [];
  TOKENS.lastIndex = 0;
  while (TOKENS.lastIndex < text.length) {
    const start = TOKENS.lastIndex, match = TOKENS.exec(text);
    if (!match) break;
    const kind = KINDS[match.slice(1).findIndex((part) => part !== undefined)];
    if (kind !== "space") found.push({ kind: keyword(kind, match[0]), text: match[0], start, end: TOKENS.lastIndex });
  }
  return found;
}

function keyword(kind, text) {
  return kind === "word" && KEYWORDS.includes(text.toLowerCase()) ? "keyword" : kind;
}

/** Return a question as text. */
export function textOf({ asked, links }) {
  const groups = [];
  for (const link of links) {
    if (link.join === "or" && groups.length) groups.at(-1).links.push(link);
    else groups.push({ not: link.join === "not", links: [link] });
  }
  const parts = groups.map(({ not, links: some }) => {
    const inner = some.map(({ head, relation, tail }) => [head, relation, tail].map(written).join(" ")).join(" or ");
    const bare = some.length === 1 || (groups.length === 1 && !not);
    return `${not ? "not " : ""}${bare ? inner : `(${inner})`}`;
  });
  return `?${asked} where ${parts.join(" and ")}`;
}

/** Return a term as it stands in a question: what would be read as something else goes in quotes. */
function written(term) {
  if (!term) return OPEN;
  if (term.variable !== undefined) return `?${term.variable}`;
  const plain = PLAIN.test(term.name) && !KEYWORDS.includes(term.name.toLowerCase());
  return plain ? term.name : `"${term.name.replace(/["\\]/g, "\\$&")}"`;
}

/** Return the question that a text is, or null where a list of links cannot say it, or it is not whole. */
export function questionOf(text) {
  const words = tokens(text), last = words.at(-1);
  if (!last || text.slice(last.end).trim()) return null;
  try {
    return new Flat(words).question();
  } catch (error) {
    if (error instanceof Uneven) return null;
    throw error;
  }
}

class Uneven extends Error {}

/** Reads a list of links joined by "and", each with "not" before it or with alternatives, in brackets. */
class Flat {
  constructor(words) {
    this.words = words;
    this.place = 0;
  }

  question() {
    const asked = this.term(), links = [];
    if (asked?.variable === undefined || !this.takes("where")) throw new Uneven();
    do links.push(...this.group()); while (this.takes("and"));
    if (this.now?.text.toLowerCase() === "or" && links.length === 1 && links[0].join === "and") {
      while (this.takes("or")) links.push(this.link("or"));
    }
    if (this.now) throw new Uneven();
    return { asked: asked.variable, links };
  }

  get now() {
    return this.words[this.place];
  }

  takes(word) {
    const found = ["keyword", "sign"].includes(this.now?.kind) && this.now.text.toLowerCase() === word;
    if (found) this.place += 1;
    return found;
  }

  group() {
    const join = this.takes("not") ? "not" : "and";
    if (!this.takes("(")) return [this.link(join)];
    const links = [this.link(join)];
    while (this.takes("or")) links.push(this.link("or"));
    if (!this.takes(")")) throw new Uneven();
    return links;
  }

  link(join) {
    const head = this.term(), relation = this.term(), tail = this.term();
    if (relation?.variable !== undefined) throw new Uneven();
    return { join, head, relation, tail };
  }

  term() {
    const { kind, text } = this.now ?? {};
    this.place += 1;
    if (kind === "variable") return { variable: text.slice(1) };
    if (kind === "word") return text === OPEN ? null : { name: text };
    if (kind === "quoted") return { name: text.slice(1, -1).replace(/\\(.)/gs, "$1") };
    throw new Uneven();
  }
}

/** Return the variables of links, each once. */
export function variablesOf(links) {
  const terms = links.flatMap(({ head, tail }) => [head, tail]);
  return [...new Set(terms.map((term) => term?.variable).filter((name) => name !== undefined))];
}

/** Return a variable that no link has. */
export function freshVariable(links) {
  const taken = variablesOf(links);
  return LETTERS.find((letter) => !taken.includes(letter)) ?? `v${taken.length}`;
}

/** Return what is before a word that an error points at, the word, and what is behind it. */
export function pointedAt(text, character) {
  const at = [...text].slice(0, character - 1).join("").length; // the server counts whole characters
  const word = tokens(text).find(({ start, end }) => start <= at && at < end);
  const end = word?.end ?? Math.min(text.length, at + 1);
  return [text.slice(0, at), text.slice(at, end), text.slice(end)];
}
