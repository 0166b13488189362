"""Judging links in a browser, by keys and by clicks; many questions at once; files."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright").expect


def test_links_are_judged_by_keys_and_what_was_said_is_there_again(new_page, address, runs):
    page = new_page()
    page.goto(f"{address}#/review?relation=borders")
    page.get_by_role("heading", level=1, name="Review new links").wait_for()
    page.get_by_label("Your name").fill("ann")
    rows = page.locator(".queue li")
    rows.first.wait_for()
    page.locator("#queue").focus()
    pressed = lambda row, verdict: row.locator(f"[data-verdict={verdict}][aria-pressed=true]")  # noqa: E731
    page.keyboard.press("r")
    expect(pressed(rows.nth(0), "reject")).to_have_count(1)
    expect(rows.nth(1)).to_have_class(re.compile("marked"))
    page.keyboard.press("a")
    expect(pressed(rows.nth(1), "accept")).to_have_count(1)
    page.keyboard.press("a")
    expect(pressed(rows.nth(2), "accept")).to_have_count(1)
    page.keyboard.press("k")
    page.keyboard.press("u")
    expect(rows.locator("[aria-pressed=true]")).to_have_count(2)
    reason = rows.nth(0).get_by_role("textbox")
    reason.fill("no common border")
    with page.expect_response(re.compile("judgements")):
        reason.press("Enter")
    expect(page.get_by_role("main")).to_contain_text("1 accepted, 1 rejected")  # counted as one goes
    page.reload()
    expect(rows.nth(0).get_by_role("textbox")).to_have_value("no common border")
    expect(rows.locator("[aria-pressed=true]")).to_have_count(2)
    expect(page.get_by_role("main")).to_contain_text("1 accepted, 1 rejected")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV", exact=True).click()
    assert "no common border" in Path(saved.value.path()).read_text("utf-8")
    assert "no common border" in (runs[0] / "judgements.jsonl").read_text("utf-8")


def test_pasted_questions_are_answered_each_for_itself_and_saved(new_page, address):
    page = new_page()
    page.goto(f"{address}#/bulk")
    page.get_by_label("One question a line").fill(
        "France\tborders\t?\n?, borders, Spain\nFrnce,borders,?\nFrance"
    )
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_text("2 questions answered, 2 not.")).to_be_visible()
    expect(page.locator(".bulk tbody tr")).to_have_count(3 + 3 + 2)
    expect(page.locator(".bulk .wrong").first).to_contain_text("did you mean 'France'")
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    lines = Path(saved.value.path()).read_text("utf-8").splitlines()
    page.get_by_label("or a file").set_input_files(
        files=[{"name": "q.tsv", "mimeType": "text/plain", "buffer": b"Spain\tborders\t?\n"}]
    )
    expect(page.get_by_text("1 question answered, 0 not.")).to_be_visible()
    assert lines[0] == "question,rank,answer,probability,score,error"
    assert len(lines) == 9


def test_answers_are_judged_copied_and_asked_for_elsewhere(new_page, address):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"{address}#/ask?head=Spain&relation=borders&new=1")
    accept = page.locator(".judging").first.get_by_role("button", name=re.compile("^Accept"))
    accept.click()
    expect(accept).to_have_attribute("aria-pressed", "true")
    accept.click()
    expect(accept).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.get_by_text("As curl or Python").click()
    expect(page.get_by_label("Python")).to_contain_text('modulekge.predict("DistMult", head="Spain"')
    expect(page.get_by_label("curl")).to_contain_text(f"curl {address}api/v1/runs/DistMult/predict")
