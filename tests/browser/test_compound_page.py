"""Compound questions in a browser: chosen in rows, written, opened by a link, refused."""

import re
from urllib.parse import quote

import pytest

from modulekge.answers.compound.formula import And, Not, Or, Triple, Variable, Word
from modulekge.answers.compound.syntax import parse

pytestmark = pytest.mark.integration

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright").expect

NEIGHBOURS = "?c where France borders ?x and ?x uses_currency ?c"
AGAINST = f'{NEIGHBOURS} and not ?x member_of "European Union"'
NESTED = "?c where ?c borders France and not (?c borders ?x and ?x borders Austria)"


@pytest.fixture
def page(new_page, address):
    page = new_page()
    page.goto(f"{address}#/compound")
    page.get_by_role("heading", level=1, name="Ask a compound question").wait_for()
    return page


def asked(page, address, text, more=""):
    """Open the link of a question and return the rows of its answers."""
    page.goto(f"{address}#/compound?q={quote(text)}{more}")
    rows = page.locator(".answers.compound > li")
    rows.first.wait_for()
    return rows


def text_of(page):
    return page.get_by_label("The question as text")


def fill(page, link, part, text):
    """Type into a box of a row, and take the first suggestion that begins so."""
    box = page.get_by_role("combobox", name=f"Link {link}: {part}", exact=True)
    box.fill(text)
    page.get_by_role("option").filter(has_text=re.compile(f"^{re.escape(text)}")).first.click()


def relation(page, link, name):
    page.get_by_role("combobox", name=f"Link {link}: relation", exact=True).select_option(name)


def test_a_question_is_built_by_clicking_and_answered(page):
    page.get_by_role("navigation").get_by_role("link", name="Compound").wait_for()
    fill(page, 1, "start", "France")
    relation(page, 1, "borders")
    expect(text_of(page)).to_have_value("?x where France borders ?x")
    page.get_by_role("button", name="Add a link").click()
    expect(page.get_by_label("Link 2: relation")).to_be_focused()
    expect(page.get_by_label("Link 2: start")).to_have_value("?x")
    relation(page, 2, "uses_currency")
    page.get_by_label("Link 2: end").click()
    page.get_by_role("option", name="?y new variable").click()
    page.get_by_label("Link 2: end").click()  # what stands there does not narrow what is offered
    expect(page.locator("[role=option]")).to_have_text(["?xvariable", "?yvariable", "?znew variable"])
    page.keyboard.press("Escape")
    page.get_by_label("Asked for").select_option("y")
    expect(text_of(page)).to_have_value("?y where France borders ?x and ?x uses_currency ?y")
    page.get_by_role("button", name="Ask", exact=True).click()
    rows = page.locator(".answers.compound > li")
    expect(rows).to_have_count(10)
    expect(rows.first.locator(".answer a")).to_have_text("Euro")
    expect(rows.first.locator(".mark")).to_have_text("known")
    expect(rows.first.locator(".edge-text > title")).to_have_text(["borders, known", "uses currency, known"])
    expect(page.get_by_role("status").filter(has_text="answers")).to_contain_text("counts as impossible")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_focused()
    rows.first.locator("a.node").filter(has_text="France").click()
    page.get_by_role("heading", level=1, name="France", exact=True).wait_for()


def test_links_are_joined_and_taken_out(page):
    text_of(page).fill("?x where France borders ?x and Germany borders ?x and Italy borders ?x")
    joins = page.get_by_label("how it is joined")
    expect(joins).to_have_count(3)
    page.get_by_label("Link 2: how it is joined").select_option("or")
    expect(text_of(page)).to_have_value(
        "?x where (France borders ?x or Germany borders ?x) and Italy borders ?x"
    )
    page.get_by_label("Link 3: how it is joined").select_option("not")
    page.get_by_role("button", name="Remove link 1").click()
    expect(text_of(page)).to_have_value("?x where Germany borders ?x and not Italy borders ?x")
    page.get_by_role("button", name="Remove link 1").click()
    expect(text_of(page)).to_have_value("?x where not Italy borders ?x")
    expect(page.get_by_role("button", name="Remove link 1")).to_be_disabled()


def test_what_is_open_is_asked_for(page):
    ask = page.get_by_role("button", name="Ask", exact=True)
    ask.click()
    expect(page.get_by_role("alert").filter(has_text="Choose links")).to_be_visible()
    fill(page, 1, "start", "France")
    ask.click()
    expect(page.locator("#wrong")).to_have_text("Link 1 has no relation yet.")
    expect(page.get_by_label("Link 1: relation")).to_be_focused()


def test_rows_give_way_to_a_text_that_they_cannot_show(page, address):
    asked(page, address, NESTED)
    expect(page.get_by_label("Link 1: start")).to_be_hidden()
    expect(page.get_by_text("Rows cannot show this")).to_be_visible()
    text_of(page).fill(AGAINST)
    expect(page.get_by_label("Link 3: end")).to_have_value("European Union")
    expect(page.get_by_text("Rows cannot show this")).to_be_hidden()
    text_of(page).fill(NESTED)
    assert page.locator(".rows").evaluate("rows => rows.inert")


def test_a_link_opens_a_question_and_back_and_forward_work(page, address):
    rows = asked(page, address, NEIGHBOURS, "&new=1&t_norm=godel")
    expect(page.get_by_label("Link 2: relation")).to_have_value("uses_currency")
    expect(page.get_by_label("New answers only")).to_be_checked()
    expect(page.get_by_label("Join by")).to_have_value("godel")
    expect(rows.locator(".mark.new")).to_have_count(rows.count())
    page.get_by_label("Join by").focus()
    page.get_by_label("Join by").select_option("product")
    expect(page).not_to_have_url(re.compile("t_norm"))
    expect(page.get_by_label("Join by")).to_be_focused()
    text_of(page).fill("?x where France borders ?x")
    text_of(page).press("Enter")
    expect(page.locator(".link")).to_have_count(1)
    page.go_back()
    expect(text_of(page)).to_have_value(NEIGHBOURS)
    page.go_back()
    expect(page.get_by_label("Join by")).to_have_value("godel")
    page.go_forward()
    page.go_forward()
    expect(text_of(page)).to_have_value("?x where France borders ?x")
    rows.first.wait_for()


def test_a_witness_shows_predicted_links_with_their_probability_and_what_speaks_against(page, address):
    rows = asked(page, address, AGAINST, "&new=1")
    sure = rows.first.locator(".edge-text:not(.negated) .probability").first
    expect(sure).to_have_text(re.compile(r"\d.%$"))
    edge = rows.first.locator("path.edge.predicted:not(.negated)").first
    assert edge.evaluate("e => getComputedStyle(e).strokeDasharray") != "none"
    rows = asked(page, address, AGAINST)
    expect(rows.first.locator("a.node").filter(has_text="European Union")).to_be_visible()
    expect(rows.first.locator(".edge-text.negated .probability")).to_have_text(re.compile(r"\d.%$"))
    expect(rows.first.locator("path.edge:not(.predicted)")).not_to_have_count(0)


@pytest.mark.parametrize(
    ("text", "word", "said"),
    [
        ("?c where Frnce borders ?c", "Frnce", "did you mean 'France'"),
        ("?c where 'Frnce x' borders ?c", "'Frnce x'", "unknown entity"),
        ("?c where France borders ?c xor ?c borders Spain", "xor", "expected 'and', 'or' or the end"),
        ("?𝒄 where Frnce borders ?𝒄", "Frnce", "unknown entity"),
        ("?c where France borders", "", "expected an entity or a variable"),
        ("?c where France borders 'Spain", "'", "a quote that does not end"),
    ],
)
def test_an_error_points_at_the_word(new_page, address, text, word, said):
    page = new_page(expected="40[04]")
    page.goto(f"{address}#/compound?q={quote(text)}")
    wrong = page.locator("#wrong")
    expect(wrong).to_contain_text(said)
    assert wrong.locator("mark").inner_text().strip() == word
    expect(text_of(page)).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".answers")).to_have_count(0)
    text_of(page).fill("?c where France borders ?c")
    expect(wrong).to_be_empty()
    text_of(page).press("Enter")
    page.locator(".answers.compound > li").first.wait_for()


def test_examples_are_answered(page):
    examples = page.locator(".beginnings a")
    expect(examples).to_have_count(3)
    for i in range(3):
        text = examples.nth(i).inner_text()
        examples.nth(i).click()
        expect(text_of(page)).to_have_value(text)
        page.locator(".answers.compound > li").first.wait_for()
        page.get_by_role("link", name="Start afresh").click()


def test_while_it_works_it_says_so_and_a_busy_server_can_be_asked_again(new_page, address):
    page = new_page(expected="503")
    held = []
    page.route("**/ask", lambda route: held.append(route))
    page.goto(f"{address}#/compound?q={quote(NEIGHBOURS)}")
    expect(page.get_by_text("Working out the answers…")).to_be_visible()
    held.pop().fulfill(status=503, json={"error": "too much is asked at once", "field": None})
    expect(page.locator(".notice", has_text="too much is asked")).to_be_visible()
    page.unroute("**/ask")
    page.get_by_role("button", name="Retry").click()
    page.locator(".answers.compound > li").first.wait_for()


def test_by_keyboard_alone(page):
    page.get_by_label("Link 1: start").focus()
    page.keyboard.type("France")
    expect(page.locator("[role=option] mark").first).to_have_text("France")  # those of the last letter
    page.keyboard.press("Enter")
    expect(page.get_by_role("listbox")).to_be_hidden()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Link 1: relation")).to_be_focused()
    page.keyboard.type("borders")
    page.get_by_label("The question as text").focus()
    page.keyboard.press("Enter")
    page.locator(".answers.compound > li").first.wait_for()
    expect(text_of(page)).to_have_value("?x where France borders ?x")


def test_every_control_has_a_name(page, address):
    asked(page, address, AGAINST)
    controls = page.locator("main").locator("input, select, textarea, button")
    for control in controls.all():
        assert control.evaluate(
            "e => e.ariaLabel || [...e.labels ?? []].map(l => l.innerText).join() || e.innerText"
        )


def test_markup_in_names_is_text(new_page, hostile, markup):
    page = new_page()
    asked(page, hostile, "?x where plain 'knows <i>' ?x and not ?x 'knows <i>' e1")
    expect(page.get_by_label("Link 1: start")).to_have_value(markup)
    expect(page.locator(".witness")).not_to_have_count(0)
    asked(page, hostile, "?x where ?x 'knows <i>' ?y", "&k=20")
    page.locator(".answers.compound a", has_text=markup).first.wait_for()
    page.get_by_label("Link 1: start").click()
    page.locator("[role=option]").first.wait_for()
    page.get_by_role("link", name="Start afresh").click()
    page.locator(".beginnings").wait_for()
    assert page.locator("main img, main script, main b, main i").count() == 0
    assert "taken" not in page.title()


ODD = [
    "and",
    "a b",
    "?x",
    "(x)",
    'say "no"',
    "don't",
    "back\\slash",
    "…",
    "é‿à",
    "x,y;",
    "'",
    "\u2003wide",
    "𝒙",
]
WRITE = """async (names) => {
  const { textOf, questionOf } = await import("/static/question.js");
  const link = (join, name) => ({ join, head: { name }, relation: { name }, tail: { variable: "x" } });
  const joins = ["and", "not", "or"];
  const asked = { asked: "x", links: names.map((name, i) => link(joins[i % 3], name)) };
  const single = { ...asked, links: asked.links.slice(0, 1) };
  return [textOf(asked), textOf(questionOf(textOf(asked))), textOf(single)];
}"""


def test_odd_names_are_read_by_the_server_as_they_were_chosen(page):
    first, again, single = page.evaluate(WRITE, ODD)
    assert again == first

    def links(formula):
        if isinstance(formula, Triple):
            yield formula
        else:
            for part in [formula.part] if isinstance(formula, Not) else formula.parts:
                yield from links(part)

    where = parse(first).where
    assert isinstance(where, And)
    assert any(isinstance(part, Not) and isinstance(part.part, Or) for part in where.parts)
    found = list(links(where))
    assert [link.head.text for link in found if isinstance(link.head, Word)] == ODD
    assert [link.relation.text for link in found] == ODD
    assert all(isinstance(link.tail, Variable) for link in found)
    assert isinstance(parse(single).where, Triple)
