"""Every view by the rules of axe-core, in light and in dark colours."""

from pathlib import Path

import pytest
from views import VIEWS

pytestmark = pytest.mark.integration

expect = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright").expect
axe = pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install axe-playwright-python")

RULES = "axe.run(document, { rules: { 'label-content-name-mismatch': { enabled: true } } })"
COLOURS = "axe.run(document, { runOnly: ['color-contrast'] })"


def broken(page, rules):
    """Return what breaks a rule, with the elements that do."""
    found = page.evaluate(rules)["violations"]
    return {each["id"]: [node["html"] for node in each["nodes"][:3]] for each in found}


def test_every_view_keeps_the_rules_in_either_theme(new_page, address):
    page = new_page(expected="404", reduced_motion="reduce")
    page.goto(address)
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text("utf-8"))
    wrong = {}
    for name, view in {**VIEWS, "unknown": "#/entity?name=Frnace"}.items():
        page.evaluate("document.getElementById('main').replaceChildren()")
        page.goto(address + view)
        page.get_by_role("heading", level=1).first.wait_for()
        expect(page.locator(".loading")).to_have_count(0)
        for theme, rules in (("light", RULES), ("dark", COLOURS)):
            page.evaluate("theme => (document.documentElement.dataset.theme = theme)", theme)
            wrong |= {(name, theme): found} if (found := broken(page, rules)) else {}
    assert wrong == {}
