"""The playground in a real browser, on a real server: no error, and no request beyond the server."""

import contextlib
import io
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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
AMBIGUOUS = "find a time tomorrow when Elena and I are both free"
ANY_TIME = "when are Elena and I free tomorrow"
AN_HOUR = "when are Elena and I free tomorrow for an hour"
PHONE = {"width": 360, "height": 740}
KEY = "a-key-of-twenty-characters"
SERIOUS = ("serious", "critical")
TIMEOUT = 30_000


@pytest.fixture(scope="module")
def served(gated: GatedModel, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the switches and the tuned calendar, whose feedback goes to a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        with running(gated, folder, "calendar", limits=replace(LIMITS, utterance_chars=100)) as started:
            yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@contextmanager
def page_of(browser: Any, served: Served, path: str = "", **options: Any) -> Iterator[Visit]:
    """Open the page; afterwards, it has reported no error, and requested nothing from another server."""
    with visit(browser, f"{served.url}/{path}", **options) as visited:
        visited.page.set_default_timeout(TIMEOUT)
        visited.page.locator("#samples button").first.wait_for()
        yield visited
        assert visited.errors == []
        assert all(url.startswith(f"{served.url}/") for url in visited.requests), visited.requests


@pytest.fixture
def opened(browser: Any, served: Served) -> Iterator[Visit]:
    with page_of(browser, served) as visited:
        yield visited


def utterance_field(opened: Visit) -> Any:
    return opened.page.get_by_role("textbox", name="Utterance")


def parse(opened: Visit, utterance: str = UTTERANCE) -> None:
    utterance_field(opened).fill(utterance)
    opened.page.keyboard.press("Enter")


def wait_for_parse(opened: Visit) -> None:
    opened.page.locator(".feedback button").first.wait_for()


def outcomes(domain: Path | str) -> list[tuple[str, str | None, str | None]]:
    log = FeedbackLog.of(load_domain(domain))
    return [(entry.utterance, entry.outcome, entry.program) for entry in log.entries()]


def violations(page: Any) -> list[str]:
    sync = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    found = sync.Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in SERIOUS]


def test_the_rounds_appear_before_the_program(opened: Visit, gated: GatedModel) -> None:
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


def test_a_search_can_be_stopped(opened: Visit, served: Served, gated: GatedModel) -> None:
    gated.gate.clear()
    try:
        parse(opened)
        opened.page.locator(".rounds h3").first.wait_for()
        opened.page.get_by_role("button", name="Stop").click()
        opened.page.get_by_text("Stopped.").wait_for()
    finally:
        gated.gate.set()
    served.wait_until_idle()
    assert opened.page.locator(".program").count() == 0


def test_a_parse_is_confirmed_and_the_feedback_is_in_the_log(opened: Visit, folder: Path) -> None:
    parse(opened)
    opened.page.get_by_role("button", name="Right").click()
    opened.page.locator(".thanks").wait_for()
    assert (UTTERANCE, "accepted", None) in outcomes(folder)


def test_an_uncertain_parse_is_a_question_and_its_answer_follows_the_choice(opened: Visit) -> None:
    page = opened.page
    page.get_by_label("Domain").select_option("calendar")
    page.get_by_text("738 examples").wait_for()
    parse(opened, AMBIGUOUS)
    page.get_by_text("Did you mean").wait_for()
    assert opened.texts(".question + .buttons button") == [ANY_TIME, AN_HOUR]
    assert opened.texts(".confidence .badge") == ["please confirm"]
    assert opened.texts(".reading") == [ANY_TIME]
    assert opened.texts(".answer li") == []
    assert violations(page) == []
    page.get_by_role("button", name=AN_HOUR).click()
    page.locator(".answer li").first.wait_for()
    hours = [time.removeprefix("Thu 2026-03-12 ") for time in opened.texts(".answer li")]
    assert hours == ["11:30am-1:00pm", "2:00pm-3:00pm", "5:00pm-6:00pm"]
    assert opened.texts(".reading") == [AN_HOUR]
    assert opened.texts(".program") == ["(free-times Elena me (on tomorrow) (for (hours 1)))"]
    assert outcomes("calendar") == [(AMBIGUOUS, "chosen", opened.texts(".program")[0])]


def tab_to(page: Any, target: Any) -> None:
    """Move the focus to an element by keyboard."""
    for _ in range(60):
        if target.evaluate("node => node === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("the element cannot be reached by keyboard")


def test_a_parse_is_corrected_with_completions_by_keyboard_alone(opened: Visit, folder: Path) -> None:
    page = opened.page
    tab_to(page, utterance_field(opened))
    page.keyboard.type("radio off in the attic")
    page.keyboard.press("Enter")
    correct = page.get_by_role("button", name="Correct it")
    correct.wait_for()
    tab_to(page, correct)
    page.keyboard.press("Enter")
    page.get_by_role("combobox", name="Correction").wait_for()
    page.keyboard.press("Control+A")
    page.keyboard.type("(off radio x")
    page.get_by_text("✗ after").wait_for()
    assert page.get_by_role("button", name="Send the correction").is_disabled()
    page.keyboard.press("Control+A")
    page.keyboard.type("(off radio at")
    page.get_by_role("option", name="tic)").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_text("well-formed").wait_for()
    page.keyboard.press("Enter")
    page.locator(".thanks").wait_for()
    assert opened.texts(".program") == ["(off radio attic)"]
    assert outcomes(folder)[-1] == ("radio off in the attic", "corrected", "(off radio attic)")


def test_wrong_input_shows_what_to_do(opened: Visit) -> None:
    opened.page.get_by_label("Width").fill("")
    parse(opened, "x" * 150)
    opened.page.get_by_role("alert").wait_for()
    assert "150 characters" in opened.texts("#problem")[0]
    assert violations(opened.page) == []
    assert "413" in opened.errors.pop(), "Chromium reports the status of the response in the console"


def test_hostile_text_stays_text_and_a_link_opens_its_parse(browser: Any, opened: Visit, served: Served) -> None:
    parse(opened, HOSTILE)
    wait_for_parse(opened)
    assert opened.page.locator("img[src=x]").count() == 0
    with page_of(browser, served, opened.page.url.removeprefix(f"{served.url}/")) as again:
        wait_for_parse(again)
        assert utterance_field(again).input_value() == HOSTILE
    with page_of(browser, served, "#parse?domain=nothing&utterance=x") as elsewhere:
        elsewhere.page.get_by_role("alert").wait_for()
        assert "It has switches, calendar." in elsewhere.texts("#problem")[0]


def copied(opened: Visit, button: str) -> str:
    opened.page.get_by_role("button", name=button, exact=True).click()
    opened.page.get_by_text("Copied").wait_for()
    return str(opened.page.evaluate("navigator.clipboard.readText()"))


def test_the_commands_that_are_copied_give_the_same_parse(browser: Any, served: Served) -> None:
    with page_of(browser, served, permissions=["clipboard-read", "clipboard-write"]) as opened:
        parse(opened, "lamp off in the 'hall'")
        wait_for_parse(opened)
        (program,) = opened.texts(".program")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(copied(opened, "Python"), {})
        assert printed.getvalue() == f"{program}\n"
        command = shlex.split(copied(opened, "curl"))
        if shutil.which(command[0]):
            assert program.encode() in subprocess.run(command, capture_output=True, check=True).stdout


def test_a_grammar_is_checked_while_it_is_written(opened: Visit) -> None:
    page = opened.page
    page.get_by_role("tab", name="Grammar").click()
    page.get_by_text("passed").wait_for()
    assert len(opened.texts("#sentences li")) == 12
    page.get_by_role("textbox", name="Examples").fill("lights on => (on lump)")
    page.locator("#findings .error").first.wait_for()
    assert "(on lump)" in opened.texts("#findings")[0]


def luminance(page: Any) -> int:
    """Return the brightness of the page's background, from 0 to 765."""
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in color.removeprefix("rgb(").removesuffix(")").split(","))


def fits(page: Any) -> bool:
    """Return whether the page is not wider than the window, and no control is wider than its card."""
    inside = "c => c.scrollWidth <= c.clientWidth"
    return bool(
        page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        and all(card.evaluate(inside) for card in page.locator(".card:visible").all())
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_on_a_phone_in_light_and_dark(browser: Any, served: Served, scheme: str) -> None:
    with page_of(browser, served, viewport=PHONE, color_scheme=scheme) as opened:
        page = opened.page
        parse(opened)
        page.get_by_role("button", name="Correct it").click()
        page.get_by_role("combobox", name="Correction").fill("(on ")
        page.locator("#completions li").first.wait_for()
        assert fits(page)
        assert violations(page) == []
        page.get_by_role("tab", name="Grammar").click()
        page.locator("#sentences li").first.wait_for()
        assert fits(page)
        assert violations(page) == []
        first = luminance(page)
        page.get_by_role("button", name="Light or dark").click()
        second = luminance(page)
        assert (first > 600, second > 600) == (scheme == "light", scheme == "dark")


def test_the_page_asks_for_the_key(browser: Any, gated: GatedModel, folder: Path) -> None:
    with running(gated, folder, api_keys=[KEY]) as guarded, visit(browser, guarded.url) as opened:
        field = opened.page.get_by_role("textbox", name="Key")
        field.fill("another-key-of-that-length")
        opened.page.get_by_role("button", name="Continue").click()
        opened.page.get_by_text("does not know this key").wait_for()
        field.fill(KEY)
        opened.page.get_by_role("button", name="Continue").click()
        opened.page.locator("#samples button").first.wait_for()
        assert all("401" in error for error in opened.errors), "Chromium reports the status in the console"
