"""The playground in a real browser, on a real server: no error, and no request beyond the server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse import FeedbackLog, load_domain
from support.browser import Visit, chromium, visit
from support.serving import LIMITS, GatedModel, Served, running

UTTERANCE = "lamp on in the hall"
PROGRAM = "(on lamp hall)"
HOSTILE = '<img src=x onerror="alert(1)"> lamp on in the hall'
PHONE = {"width": 360, "height": 740}
KEY = "a-key-of-twenty-characters"
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def served(gated: GatedModel, folder: Path) -> Iterator[Served]:
    with running(gated, folder, limits=replace(LIMITS, utterance_chars=100)) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def expect_clean(opened: Visit, served: Served) -> None:
    assert opened.errors == []
    assert all(url.startswith(served.url) for url in opened.requests), opened.requests


@pytest.fixture
def opened(browser: Any, served: Served) -> Iterator[Visit]:
    with visit(browser, served.url) as visited:
        visited.page.set_default_timeout(30_000)
        visited.page.locator("#samples button").first.wait_for()
        yield visited
        expect_clean(visited, served)


def parse(opened: Visit, utterance: str = UTTERANCE) -> None:
    opened.page.get_by_role("textbox", name="Utterance").fill(utterance)
    opened.page.keyboard.press("Enter")


def outcomes(folder: Path) -> list[tuple[str, str | None, str | None]]:
    log = FeedbackLog.of(load_domain(folder))
    return [(entry.utterance, entry.outcome, entry.program) for entry in log.entries()]


def test_the_rounds_appear_before_the_program_and_its_reading(opened: Visit, gated: GatedModel) -> None:
    gated.gate.clear()
    try:
        parse(opened)
        opened.page.locator(".rounds h3").first.wait_for()
        assert opened.texts(".rounds h3")[0].startswith("Round 1")
        assert opened.texts(".retrieved code") == ["(on lamp hall)", "(off lamp hall)"]
        assert opened.page.locator(".program").count() == 0
    finally:
        gated.gate.set()
    opened.page.locator(".program").wait_for()
    assert opened.texts(".program") == [PROGRAM]
    assert opened.texts(".tree .node") == ["on"]
    assert "requests" in opened.texts(".facts")[0]


def test_a_parse_is_confirmed_and_the_feedback_is_in_the_log(opened: Visit, folder: Path) -> None:
    parse(opened)
    opened.page.get_by_role("button", name="Right").click()
    opened.page.locator(".thanks").wait_for()
    assert (UTTERANCE, "accepted", None) in outcomes(folder)


def test_a_parse_is_corrected_with_completions_by_keyboard_alone(opened: Visit, folder: Path) -> None:
    page = opened.page
    page.get_by_role("textbox", name="Utterance").focus()
    page.keyboard.type("radio off in the attic")
    page.keyboard.press("Enter")
    correct = page.get_by_role("button", name="Correct it")
    correct.wait_for()
    for _ in range(40):
        if correct.evaluate("node => node === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    field = page.get_by_role("combobox", name="Correction")
    field.wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type("(off radio x")
    page.get_by_text("✗ after").wait_for()
    assert page.get_by_role("button", name="Send the correction").is_disabled()
    page.keyboard.press("Control+A")
    page.keyboard.type("(off radio at")
    page.locator("#completions li").first.wait_for()
    page.wait_for_function("document.querySelectorAll('#completions li').length === 1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_text("well-formed").wait_for()
    page.keyboard.press("Enter")
    page.locator(".thanks").wait_for()
    assert outcomes(folder)[-1] == ("radio off in the attic", "corrected", "(off radio attic)")


def test_wrong_input_shows_what_to_do(opened: Visit) -> None:
    opened.page.get_by_label("Width").fill("")
    parse(opened, "x" * 150)
    opened.page.get_by_role("alert").wait_for()
    assert "150 characters" in opened.texts("#problem")[0]
    opened.errors.clear()  # Chromium reports the status 413 in the console


def test_hostile_text_stays_text_and_a_link_opens_its_parse(browser: Any, opened: Visit, served: Served) -> None:
    parse(opened, HOSTILE)
    opened.page.locator(".feedback button, .problem").first.wait_for()
    assert opened.page.locator("img[src=x]").count() == 0
    link = opened.page.url
    with visit(browser, link) as again:
        again.page.locator(".feedback button, .problem").first.wait_for()
        assert again.page.get_by_role("textbox", name="Utterance").input_value() == HOSTILE
        expect_clean(again, served)


def test_a_grammar_is_checked_while_it_is_written(opened: Visit) -> None:
    page = opened.page
    page.get_by_role("tab", name="Grammar").click()
    page.get_by_text("passed").wait_for()
    assert len(opened.texts("#sentences li")) == 12
    page.get_by_role("textbox", name="Examples").fill("lights on => (on lump)")
    page.locator("#findings .error").first.wait_for()
    assert "(on lump)" in opened.texts("#findings")[0]


def violations(page: Any) -> list[str]:
    sync = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    found = sync.Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in SERIOUS]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_on_a_phone_in_light_and_dark(browser: Any, served: Served, scheme: str) -> None:
    with visit(browser, served.url, viewport=PHONE, color_scheme=scheme) as opened:
        opened.page.set_default_timeout(30_000)
        opened.page.locator("#samples button").first.wait_for()
        parse(opened)
        opened.page.get_by_role("button", name="Correct it").click()
        opened.page.locator("#completions li").first.wait_for()
        assert opened.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        assert violations(opened.page) == []
        opened.page.get_by_role("tab", name="Grammar").click()
        opened.page.locator("#sentences li").first.wait_for()
        assert opened.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        assert violations(opened.page) == []


def test_the_page_asks_for_the_key(browser: Any, gated: GatedModel, folder: Path) -> None:
    with running(gated, folder, api_keys=[KEY]) as guarded, visit(browser, guarded.url) as opened:
        opened.page.get_by_label("Key").fill(KEY)
        opened.page.get_by_role("button", name="Continue").click()
        opened.page.locator("#samples button").first.wait_for()
