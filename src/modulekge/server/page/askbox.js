// A question as three boxes: entity, relation, entity, of which one is left open.

import { go } from "./address.js";
import { el } from "./dom.js";
import { searchBox } from "./search.js";

const PARTS = [
  ["head", "entities", "Start", "entity"],
  ["relation", "relations", "Relation", "relation"],
  ["tail", "entities", "End", "entity"],
];
const HINT = "Leave one open: it is what is asked. With all three, the answer says why it may be so.";

/** Return the boxes; `given` has the parts that are chosen already, as { name, label }. */
export function askBox({ run, fail, given = {} }) {
  const chosen = { ...given }, wrong = el("p.wrong", { role: "alert" });
  const boxes = PARTS.map(([part, kind, label, what]) => {
    const box = searchBox({
      run: () => run, fail, kind, label, placeholder: `${what}, or open`, eager: kind === "relations", settles: true,
      choose: (item) => (chosen[part] = item), kept: (item) => item.label,
    });
    const input = box.querySelector("input");
    input.id = `ask-${part}`;
    input.value = given[part]?.label ?? "";
    input.addEventListener("input", () => delete chosen[part]);
    return { part, box: el("div.titled", el("span", { "aria-hidden": "true" }, label), box), input };
  });

  /** What is typed and not chosen counts as it stands; the server knows labels, too. */
  const valueOf = ({ part, input }) => chosen[part]?.name ?? input.value.trim();

  function submit(event) {
    event.preventDefault();
    const question = Object.fromEntries(boxes.map((box) => [box.part, valueOf(box)]).filter(([, text]) => text));
    const count = Object.keys(question).length;
    if (count < 2) {
      wrong.textContent = "Choose two of the three; the one left open is asked.";
      return boxes.find((box) => !valueOf(box)).input.focus();
    }
    go(count === 3 ? "why" : "ask", { run: run.name, ...question });
  }

  return el("form.panel.askbox", { onsubmit: submit, "aria-label": "Question" },
    el("div.three", boxes.map(({ box }) => box), el("button.main", { id: "ask" }, "Ask")),
    el("p.quiet", HINT), wrong);
}
