"""The page as people use it: a browser, a server, two small runs of the embedded graph."""

import itertools
import re
from urllib.parse import quote

import pytest
from views import VIEWS

pytestmark = pytest.mark.integration

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright").expect

PIXELS = "canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data"


@pytest.fixture
def page(new_page, address):
    page = new_page()
    page.goto(address)
    return page


def heading(page, text):
    """Wait for the view with this heading."""
    found = page.get_by_role("heading", level=1, name=text, exact=isinstance(text, str))
    found.wait_for()
    return found


def stands(page, text):
    """Wait until the address holds a text."""
    expect(page).to_have_url(re.compile(re.escape(text)))


def scroll(page, down):
    """Scroll the page, and wait until it has heard of it."""
    heard = "new Promise((heard) => addEventListener('scroll', () => heard(), { once: true }))"
    page.evaluate(f"() => {{ const done = {heard}; scrollTo(0, {down}); return done; }}")


def scrolled(page, wanted):
    """Wait until the page is scrolled so far."""
    for _ in range(100):
        if page.evaluate("scrollY") == wanted:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"scrolled to {page.evaluate('scrollY')}, expected {wanted}")


def suggestions(page):
    return page.locator("[role=option]")


def choose(page, text, label="Search entities"):
    """Type into a search box, wait for suggestions, take the first."""
    page.get_by_role("heading", level=1).wait_for()  # the page is there and listens
    box = page.get_by_role("combobox", name=label, exact=True)
    box.fill(text)
    suggestions(page).first.wait_for()
    box.press("Enter")


def test_from_a_search_to_an_answer_and_why(page):
    heading(page, "Ask world")
    choose(page, "fran")
    heading(page, "France")
    facts = page.locator(".facts").filter(has_text=re.compile(r"^France borders"))
    assert facts.get_by_role("link", name="Spain").is_visible()
    facts.get_by_role("link", name="Predict more").click()
    heading(page, "France borders ?")
    rows = page.locator(".answers li")
    assert rows.count() == 10
    named, many = r"it is among these \d+ in", r"it takes \d+ of 1,257 candidates to hold a missing fact in"
    promise = rf"({named}|{many}) about 9 of 10 cases.*; measured on test: \d+"
    assert re.search(promise, page.locator(".set").inner_text())
    page.get_by_label("Fold known answers away").check()
    expect(page.locator(".mark.new")).to_have_count(10)
    stands(page, "&new=1")
    widths = rows.locator(".fill").evaluate_all("fills => fills.map(fill => parseFloat(fill.style.width))")
    assert widths == sorted(widths, reverse=True)
    name = rows.first.locator(".answer a").inner_text()
    rows.first.get_by_role("link", name=f"why? {name}").click()
    heading(page, f"Why France borders {name}?")
    assert "not in the graph" in page.locator(".tile").first.inner_text()
    expect(page.get_by_role("heading", name="Paths from one to the other")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name=name, exact=True).first.click()
    heading(page, name)


def test_the_only_suggestion_is_taken_as_its_box_is_left(page):
    heading(page, "Ask world")
    choose(page, "Spain", "Start")
    page.get_by_role("combobox", name="Relation", exact=True).fill("official")
    expect(page.get_by_role("option", name="official language")).to_be_visible()
    page.get_by_role("button", name="Ask", exact=True).click()
    heading(page, "Spain official language ?")


def test_the_start_page_asks_and_shows_what_was_found(page):
    heading(page, "Ask world")
    example = page.locator(".examples a").first
    expect(example).to_contain_text("held out (test)")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="Choose two")).to_be_visible()
    choose(page, "Spain", "End")
    page.get_by_role("combobox", name="Relation", exact=True).click()
    page.get_by_role("option", name="borders").click()
    page.get_by_role("button", name="Ask", exact=True).click()
    heading(page, "? borders Spain")
    page.get_by_role("heading", level=1).get_by_role("link", name="borders").click()
    heading(page, "borders")
    expect(page.locator(".tile")).to_have_count(4)  # facts, MRR, and calibration from either end
    expect(page.locator(".new-links li")).to_have_count(10)
    expect(page.locator(".patterns li").first).to_contain_text("borders")
    expect(page.locator(".pairs li")).to_have_count(20)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".pairs li")).to_have_count(70)
    page.go_back()
    heading(page, "? borders Spain")
    page.get_by_label("Fold known answers away").check()
    page.locator("details.known summary").click()
    expect(page.locator("details.known").get_by_role("link", name="France")).to_be_visible()


def test_back_and_forward_restore_views(page):
    choose(page, "France")
    heading(page, "France")
    scroll(page, 300)
    page.get_by_role("link", name="Spain").first.click()
    heading(page, "Spain")
    assert page.evaluate("scrollY") == 0
    choose(page, "France")
    heading(page, "France")
    scrolled(page, 0)  # visited before, but not by going back
    page.go_back()
    page.go_back()
    heading(page, "France")
    scrolled(page, 300)
    page.go_forward()
    heading(page, "Spain")


HOLD = """() => { // answers about Spain wait until the history has moved, of which the page has not heard yet
  const real = fetch;
  window.fetch = async (url, options) => {
    const got = await real(url, options);
    if (!window.holding || !url.includes("Spain")) return got;
    const text = await got.text();
    await new Promise((give) => addEventListener("popstate", give, { once: true }));
    return { ok: got.ok, status: got.status, text: async () => text };
  };
}"""


def test_a_view_that_comes_late_takes_no_other_views_place_in_the_history(page):
    page.evaluate(HOLD)
    choose(page, "France")
    heading(page, "France")
    scroll(page, 300)
    page.get_by_role("link", name="Spain").first.click()
    heading(page, "Spain")
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") < 300  # shorter than France
    choose(page, "Japan")
    heading(page, "Japan")
    page.evaluate("holding = true")
    with page.expect_response(re.compile("entity.*Spain")):
        page.go_back()
    page.wait_for_timeout(300)
    heading(page, "Japan")  # Spain is held
    page.go_back()
    heading(page, "France")
    scrolled(page, 300)


@pytest.mark.parametrize("view", VIEWS)
def test_every_address_can_be_shared_and_fits_a_phone(view, new_page, address):
    page = new_page(viewport={"width": 360, "height": 740}, has_touch=True)
    page.goto(address + VIEWS[view])
    page.get_by_role("heading", level=1).wait_for()
    expect(page.locator(".loading")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.locator("#banner").is_hidden()


def test_an_older_keystroke_never_overwrites_a_newer_one(page):
    heading(page, "Ask world")
    held = []
    page.route(re.compile(r"search=f(&|$)"), lambda route: held.append(route))
    box = page.get_by_role("combobox", name="Search entities")
    with page.expect_request(re.compile(r"search=f(&|$)")):
        box.fill("f")
    while not held:
        page.wait_for_timeout(20)
    box.fill("Japan")
    suggestions(page).filter(has_text="Japan").first.wait_for()
    held[0].continue_()
    page.wait_for_timeout(300)
    assert suggestions(page).first.inner_text().startswith("Japan")


def test_by_keyboard_alone(page):
    heading(page, "Ask world")
    page.keyboard.press("/")
    page.keyboard.type("united")
    options = suggestions(page)
    expect(page.locator("mark").first).to_have_text("United")  # the suggestions are those of the last letter
    page.keyboard.press("ArrowDown")
    assert options.nth(1).get_attribute("aria-selected") == "true"
    second = options.nth(1).locator("span").first.inner_text()
    page.keyboard.press("Escape")
    page.get_by_role("listbox").wait_for(state="hidden")
    page.keyboard.press("ArrowDown")
    options.first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    heading(page, second)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Predict more":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    heading(page, re.compile(r"\?"))
    page.get_by_label("Fold known answers away").focus()
    page.keyboard.press("Space")
    stands(page, "&new=1")
    expect(page.locator(".mark.new")).to_have_count(10)
    expect(page.get_by_label("Fold known answers away")).to_be_focused()


def test_a_neighbourhood_has_known_and_predicted_links(page):
    choose(page, "France")
    page.get_by_role("link", name="Neighbourhood").click()
    heading(page, "Around France")
    drawing = page.locator("figure.neighbourhood")
    drawing.locator("path.edge").first.wait_for(state="attached")
    assert drawing.locator("path.edge:not(.predicted)").count() == 23  # each border once
    assert drawing.locator("path.edge.predicted").count() == 8
    dashes = drawing.locator("path.edge.predicted").first.evaluate("e => getComputedStyle(e).strokeDasharray")
    assert dashes != "none"
    drawing.get_by_role("link", name="Italy, known").first.click()
    expect(drawing.locator("tspan.relation").first).to_be_visible()
    expect(page.get_by_label("Two hops")).to_be_checked()
    drawing.get_by_role("link", name="Italy, known").first.click()
    expect(drawing.locator("tspan.relation")).to_have_count(0)
    page.get_by_label("Two hops").check()
    expect(drawing.locator("tspan.relation").nth(20)).to_be_visible()
    page.get_by_label("Two hops").uncheck()
    expect(drawing.locator("tspan.relation")).to_have_count(0)
    page.locator("#only").select_option("borders")
    expect(page.locator("figure.neighbourhood path.edge:not(.predicted)")).to_have_count(8)
    expect(page.locator("text.relation").filter(has_not_text="borders")).to_have_count(0)


def test_the_map_names_and_opens_what_one_points_at(page):
    page.goto(page.url.split("#")[0] + "#/map?name=France")
    heading(page, "Entity map")
    tip = page.locator(".tip")
    tip.wait_for()
    assert tip.inner_text() == "France"
    canvas = page.locator("canvas")
    box = canvas.bounding_box()
    page.get_by_role("button", name="Zoom in").click()
    page.mouse.move(box["x"] + box["width"] / 2 + 2, box["y"] + box["height"] / 2)
    assert tip.inner_text() == "France"
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 60, steps=5)
    page.mouse.up()
    stands(page, "#/map?name=France")  # dragging is not clicking
    page.mouse.click(box["x"] + 60, box["y"] + 60)
    heading(page, "France")


def test_the_map_of_a_graph_with_few_relations_is_drawn(new_page, hostile):
    page = new_page()
    page.goto(hostile + "#/map?name=plain")
    expect(page.locator(".tip")).to_be_visible()  # it is the last that is drawn
    assert page.locator("canvas").evaluate(f"canvas => new Set({PIXELS}).size") > 10


def test_the_map_is_searched_and_has_a_list(page):
    page.goto(page.url.split("#")[0] + "#/map")
    heading(page, "Entity map")
    choose(page, "Spain", "Find on the map")
    expect(page.locator(".tip")).to_have_text("Spain")
    assert page.locator(".groups").bounding_box()["y"] < page.locator("canvas").bounding_box()["y"]
    page.get_by_text("The same as a list").click()
    page.locator("details").get_by_role("link", name="Spain", exact=True).click()
    heading(page, "Spain")


def test_the_map_by_keyboard(page):
    page.goto(page.url.split("#")[0] + "#/map?name=France")
    page.locator(".tip").wait_for()
    canvas = page.locator("canvas")
    canvas.focus()
    drawn = [canvas.evaluate("canvas => canvas.toDataURL()")]
    for key in ("+", "ArrowRight", "-"):
        page.keyboard.press(key)
        page.wait_for_timeout(100)  # it is drawn with the next frame
        drawn.append(canvas.evaluate("canvas => canvas.toDataURL()"))
    assert all(before != after for before, after in itertools.pairwise(drawn))
    page.goto(page.url.split("#")[0] + "#/map?name=Spain")
    page.locator(".tip").get_by_text("Spain").wait_for()
    page.locator("canvas").focus()
    page.keyboard.press("Enter")
    heading(page, "Spain")


def test_two_runs_side_by_side(page):
    page.get_by_role("link", name="Compare").click()
    heading(page, "Compare runs")
    assert page.locator("table.metrics td.better").count() == 5
    assert page.locator(".curve.s0").count() == page.locator(".curve.s1").count() == 2
    choose(page, "France", "Entity to ask both about")
    page.locator(".answers").nth(1).wait_for()
    page.get_by_label("Relation").select_option("borders")
    page.get_by_role("heading", name="France borders ?").wait_for()
    page.locator(".answers").nth(1).wait_for()
    assert page.locator(".answers li").count() == 20
    chosen = page.get_by_label("Run", exact=True)
    chosen.focus()
    chosen.select_option("ComplEx")
    stands(page, "run=ComplEx&with=DistMult")
    expect(page.locator(".pair")).to_contain_text("ComplEx with")
    expect(chosen).to_be_focused()


def test_a_run_shows_what_was_measured(page):
    page.get_by_role("link", name="Run", exact=True).click()
    heading(page, "DistMult")
    assert page.locator("table.relations tbody tr").count() == 12
    assert page.locator(".square circle.s0").count() > 0
    page.get_by_text("The model and the facts agree").wait_for()


def test_dark_follows_the_system_and_a_choice_is_kept(new_page, address):
    page = new_page(color_scheme="dark")
    page.goto(address)
    heading(page, "Ask world")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Light colours").click()
    light = page.evaluate(background)
    assert sum(map(int, re.findall(r"\d+", dark))) < 150 < 600 < sum(map(int, re.findall(r"\d+", light)))
    page.reload()
    heading(page, "Ask world")
    assert page.evaluate(background) == light


def test_show_more_pages_through_facts(page):
    page.goto(page.url.split("#")[0] + "#/entity?name=" + quote("United Nations"))
    heading(page, "United Nations")
    group = page.locator(".facts").first
    assert group.locator("li").count() == 20
    group.get_by_role("button", name="Show more").click()
    expect(group.locator("li")).to_have_count(70)


def test_predicted_links_are_of_fitting_types_unless_told(page, address):
    def asks(types):
        return page.expect_response(lambda got: "/neighbours?" in got.url and f"types={types}" in got.url)

    with asks("constrained"):
        page.goto(f"{address}{VIEWS['around']}")
    switch = page.get_by_label("Predict entities of any type")
    expect(switch).not_to_be_checked()
    with asks("any"):
        switch.check()
    stands(page, "types=any")
    expect(switch).to_be_checked()
    expect(page.locator("path.edge.predicted").nth(1)).to_be_visible()


def test_markup_in_names_is_text(new_page, hostile, markup):
    page = new_page()
    for view in ("#/", "#/around?name=plain", "#/map?name=plain", "#/run", "#/entity?name=plain"):
        page.goto(hostile + view)
        expect(page.get_by_role("heading", level=1)).not_to_be_empty()
    heading(page, markup)
    expect(page.locator(".entity-head .lead")).to_have_text(markup)
    assert page.locator("main img, main script, main b, main i").count() == 0
    page.get_by_role("link", name="Predict more").first.click()
    heading(page, re.compile("knows <i>"))
    choose(page, "plain")
    heading(page, markup)
    assert page.title() == f"{markup} · modulekge"


def test_a_description_is_written_in_its_own_direction_and_need_not_be(new_page, hostile):
    page = new_page()
    page.goto(hostile + "#/entity?name=e0")
    said = page.locator(".entity-head .lead")
    expect(said).to_contain_text("لغة")
    assert said.evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert page.get_by_role("heading", level=1).evaluate("e => getComputedStyle(e).direction") == "ltr"
    page.goto(hostile + "#/entity?name=e1")
    heading(page, "e1")
    expect(said).to_have_count(0)


def test_a_long_description_leaves_what_can_be_asked_in_sight(new_page, hostile):
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(hostile + "#/entity?name=" + "long" * 40)
    said = page.locator(".entity-head .lead")
    expect(said).to_contain_text("endless")
    assert said.bounding_box()["height"] < 400 < said.evaluate("e => e.scrollHeight")


def test_an_entity_that_training_did_not_see_is_said_to_be_guessed_about(new_page, hostile):
    page = new_page()
    said = page.locator(".notice", has_text="late is in no training fact: what the model answers is a guess.")
    promised = page.locator(".set").or_(page.get_by_text("Weighing…"))  # as it is, or is about to be
    for name, times in (("late", 1), ("e1", 0)):
        page.goto(f"{hostile}#/entity?name={name}")
        heading(page, name)
        expect(said).to_have_count(times)
        page.goto(f"{hostile}#/ask?head={name}&relation=" + quote("knows <i>"))
        heading(page, f"{name} knows <i> ?")
        expect(said).to_have_count(times)
        expect(promised).to_have_count(1 - times)
    page.goto(f"{hostile}#/ask?head=late&tail=e1")
    heading(page, "late ? e1")
    expect(said).to_have_count(1)
    for name, times in (("late", 1), ("e2", 0)):
        page.goto(f"{hostile}#/why?head={name}&tail=e1&relation=" + quote("knows <i>"))
        heading(page, f"Why {name} knows <i> e1?")
        expect(said).to_have_count(times)


@pytest.mark.parametrize(
    "view",
    [
        "#/",
        *(f"#/{view}?name=" + "long" * 40 for view in ("entity", "around")),
        "#/run",
        "#/compound",
        "#/compound?q=" + quote("?x where e1 'knows <i>' ?x or ?x 'knows <i>' " + "long" * 40),
    ],
)
def test_long_names_fit_a_phone(view, new_page, hostile):
    page = new_page(viewport={"width": 360, "height": 740})
    page.goto(hostile + view)
    page.get_by_role("heading", level=1).wait_for()
    expect(page.locator(".loading")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_one_run_says_how_to_compare(new_page, hostile):
    page = new_page()
    page.goto(hostile + "#/compare")
    heading(page, "Compare runs")
    expect(page.get_by_role("main")).to_contain_text("modulekge serve")


def test_an_address_that_names_nothing_says_what_may_be_meant(new_page, address):
    page = new_page(expected="404")
    page.goto(address + "#/entity?name=France")
    heading(page, "France")
    page.get_by_label("Run", exact=True).select_option("DistMult-2")  # of another graph
    heading(page, "“France” is not in DistMult-2")
    page.goto(address + "#/why?head=France&relation=bordrs&tail=Spain")
    heading(page, "“bordrs” is not in DistMult")
    page.get_by_role("link", name="borders", exact=True).click()
    heading(page, "Why France borders Spain?")
    page.goto(address + "#/nowhere")
    expect(page.get_by_role("main")).to_contain_text("no view “nowhere”")
    page.goto(address + "#/?run=nothing")
    expect(page.get_by_role("main")).to_contain_text("no run “nothing”")


def test_runs_of_different_graphs_have_no_winner(page, address):
    page.goto(address + "#/compare?run=DistMult&with=DistMult-2")
    expect(page.locator(".notice")).to_contain_text("different graphs do not compare")
    expect(page.locator("td.better")).to_have_count(0)
    page.goto(address + "#/ask?run=DistMult&head=France&relation=borders")
    page.get_by_role("link", name="Ask ComplEx too").click()  # of the same graph
    expect(page.locator(".answers").nth(1)).to_be_in_viewport()


def test_why_says_how_probable_a_fact_is_from_either_end(page, address):
    page.goto(address + "#/why?head=France&relation=borders&tail=Austria")
    heading(page, "Why France borders Austria?")
    tiles = page.locator(".tile strong")
    expect(tiles).to_have_text([re.compile(r"\d.%"), re.compile(r"#\d"), re.compile(r"#\d")])
    expect(page.get_by_role("main")).to_contain_text("probability of a missing fact")
    share = page.locator(".bars li").first
    width = share.locator(".fill").evaluate("fill => parseFloat(fill.style.width)")
    assert abs(width - int(re.match(r"\d+", share.locator("span").last.inner_text())[0])) < 1


def test_more_answers_leave_the_history_as_it_is(page, address):
    page.goto(address + "#/entity?name=France")
    page.get_by_role("link", name="Predict more").first.click()
    page.get_by_role("button", name="Show more answers").click()
    expect(page.locator(".answers li")).to_have_count(20)
    page.go_back()
    heading(page, "France")


def test_a_map_is_never_left_and_a_finger_scrolls_past_it(new_page, address):
    page = new_page(viewport={"width": 390, "height": 740}, has_touch=True)
    page.goto(address + "#/map")
    heading(page, "Entity map")
    canvas = page.locator("canvas")
    assert canvas.evaluate("e => getComputedStyle(e).touchAction") == "pan-y"
    canvas.focus()
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    assert canvas.evaluate(f"canvas => new Set({PIXELS}).size") > 10  # more than an empty plane


def test_a_token_is_asked_for_once_and_a_server_that_stops_is_noticed(new_page, runs, serve):
    page = new_page(expected="401|ERR_CONNECTION|ERR_EMPTY_RESPONSE")
    secret = {"MODULEKGE_TOKEN": "a-token-for-the-tests"}
    banner = page.locator("#banner")
    with serve(runs[0], **secret) as (process, address):
        page.goto(address + "#/entity?name=France")
        heading(page, "This server asks for a token")
        assert page.evaluate("document.getElementById('search').inert")
        page.get_by_label("Token").fill("not-this-one")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert").filter(has_text="not the token")).to_be_visible()
        page.get_by_label("Token").fill(secret["MODULEKGE_TOKEN"])
        page.keyboard.press("Enter")
        heading(page, "France")
        page.reload()
        heading(page, "France")
        assert page.evaluate("localStorage.length") == 0
        process.terminate()
        process.wait()
    page.get_by_role("link", name="Spain").first.click()
    expect(banner).to_contain_text("The server does not answer")
    expect(page.get_by_role("heading", level=1)).to_have_text("France")  # what was shown stays
    with serve(runs[0], port=address.rstrip("/").rpartition(":")[2], **secret):
        banner.get_by_role("button", name="Retry").click()
        heading(page, "Spain")
        expect(banner).to_be_hidden()
