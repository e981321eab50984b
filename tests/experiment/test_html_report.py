"""The page of a report in a real browser, opened from a file."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.evaluate.record_lines import Record
from fewparse.experiment.html import write_html
from fewparse.experiment.results import Results
from support.browser import Visit, chromium, visit
from support.experiment_results import make_cell, make_record, make_results

HOSTILE = '<img src=x onerror="alert(\'utterance\')"></script><script>alert(1)</script>\u202e & "quotes"'
HOSTILE_OUTPUT = '</script><script src="http://example.invalid/x.js"></script>'
TRACE: tuple[dict[str, Any], ...] = (
    {"event": "RoundStarted", "number": 1, "prefixes": [""]},
    {"event": "Sampled", "prefix": "", "pieces": ["(on", " lamp", ")", "))", "!"], "valid": 3, "outcome": "cut"},
    {"event": "BackedOff", "prefix": "(on", "free": True, "choices": [" radio", " lamp"]},
    {"event": "Branched", "prefix": "(on", "piece": " radio"},
    {"event": "RoundEnded", "number": 1, "kept": [{"text": "(on lamp)", "score": -0.5, "finished": True}]},
)
UTTERANCES = [HOSTILE, *(f"utterance {number}" for number in range(1, 120))]


def greedy_correct(at: int) -> bool:
    return at % 2 == 0


def beam_correct(at: int) -> bool:
    return at % 3 == 0


def with_trace(found: Record, output: str, trace: Sequence[dict[str, Any]] = TRACE) -> Record:
    return replace(found, outputs=(output,), programs=(output,), trace=tuple(trace))


@pytest.fixture(scope="module")
def results() -> Results:
    """Two domains and two decoders; one item failed and one is not finished."""

    def rooms(correct: Callable[[int], bool]) -> list[Record | bool | None]:
        return [with_trace(make_record(correct(at)), f"(found {at})") for at in range(len(UTTERANCES))]

    greedy, beam = rooms(greedy_correct), rooms(beam_correct)
    greedy[0] = with_trace(
        make_record(True), HOSTILE_OUTPUT, [{**TRACE[1], "pieces": [HOSTILE_OUTPUT, "<b>"], "valid": 1}]
    )
    beam[6] = Record.failed("the server <i>broke</i>")
    beam[8] = None
    garden = ["water the lawn", "close the gate"]
    made = make_results(
        make_cell(greedy, "rooms", UTTERANCES, decoder="greedy"),
        make_cell(beam, "rooms", UTTERANCES, decoder="beam"),
        make_cell([True, False], "garden", garden, decoder="greedy"),
        make_cell([False, True], "garden", garden, decoder="beam"),
        notes={"rooms": ["two items were <u>removed</u>"]},
    )
    return replace(made, manifest=replace(made.manifest, name="<em>lamps</em>"))


@pytest.fixture(scope="module")
def page(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_html(results, tmp_path_factory.mktemp("report") / "a report #1")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Visit]:
    """The page without a selection. No test may cause an error, or a request for a file outside of the folder."""
    with visit(browser, page.as_uri()) as visited:
        yield visited
        assert visited.errors == []
        assert all(url.startswith(page.parent.as_uri()) for url in visited.requests), visited.requests


def cell_id(results: Results, domain: str, decoder: str) -> str:
    found = [c for c in results.cell_results if (c.domain, c.options["decoder"]) == (domain, decoder)]
    return found[0].id


def shown_items(opened: Visit) -> list[str]:
    """Return the names of the items on all pages of the list."""
    names: list[str] = []
    while True:
        names += [row.get_attribute("data-item") for row in opened.page.locator("#items > li").all()]
        following = opened.page.get_by_role("button", name="Next")
        if not following.is_visible() or following.is_disabled():
            return names
        label = opened.page.locator("#pages span").inner_text()
        following.click()
        opened.page.wait_for_function("old => document.querySelector('#pages span').innerText !== old", arg=label)


def choose(opened: Visit, label: str, option: str) -> None:
    before = opened.page.evaluate("location.hash")
    opened.page.get_by_label(label, exact=True).select_option(label=option)
    opened.page.wait_for_function("old => location.hash !== old", arg=before)


def open_item(opened: Visit, name: str) -> None:
    opened.page.locator(f'li[data-item="{name}"] button.item').click()
    opened.page.locator(".detail").wait_for()


def names_where(results: Results, condition: Callable[[Record | None, Record | None], bool]) -> set[str]:
    """The items whose records of greedy and beam satisfy a condition."""
    found = set()
    for domain in ("rooms", "garden"):
        greedy, beam = (results.cell(cell_id(results, domain, decoder)) for decoder in ("greedy", "beam"))
        for item, a, b in zip(greedy.items, greedy.records, beam.records, strict=True):
            if condition(a, b):
                found.add(f"{domain}/{item.index}")
    return found


def test_it_opens_without_a_server_and_requests_only_its_own_files(opened: Visit, page: Path) -> None:
    assert opened.page.title() == "<em>lamps</em>"
    assert opened.texts("h1") == ["<em>lamps</em>"]
    names = sorted(url.removeprefix(page.parent.as_uri() + "/") for url in opened.requests)
    assert names == sorted(["index.html", "report.css", "data/overview.js", *scripts(page)])


def scripts(page: Path) -> list[str]:
    return [path.name for path in page.parent.glob("*.js")]


def test_the_policy_of_the_page_blocks_every_network_request(browser: Any, page: Path) -> None:
    attempts = """() => new Promise((resolve) => {
        const blocked = [];
        document.addEventListener("securitypolicyviolation", (event) => {
            blocked.push(event.effectiveDirective);
            if (blocked.length === 5) resolve(blocked.sort());
        });
        for (const [tag, name] of [["img", "src"], ["script", "src"], ["iframe", "src"], ["link", "href"]]) {
            const made = document.createElement(tag);
            if (tag === "link") made.rel = "stylesheet";
            made[name] = "http://127.0.0.1:9/";
            document.body.append(made);
        }
        fetch("http://127.0.0.1:9/").catch(() => null);
    })"""
    with visit(browser, page.as_uri()) as visited:
        blocked = visited.page.evaluate(attempts)
    assert blocked == ["connect-src", "frame-src", "img-src", "script-src-elem", "style-src-elem"]


def test_columns_sort_both_ways(opened: Visit, results: Results) -> None:
    opened.page.locator("#cells").get_by_role("button", name="accuracy").click()
    column = "#cells tbody td.number:has(.interval)"
    falling = [float(text.split()[0]) for text in opened.texts(column)]
    opened.page.locator("#cells").get_by_role("button", name="accuracy").click()
    rising = [float(text.split()[0]) for text in opened.texts(column)]
    assert len(falling) == len(results.cell_results)
    assert falling == sorted(falling, reverse=True)
    assert rising == sorted(rising)
    assert opened.page.locator("#cells th[aria-sort=ascending]").inner_text().startswith("accuracy")


def test_averages_over_domains_and_notes_on_the_data_are_shown(opened: Visit) -> None:
    opened.page.locator("summary", has_text="Averages over domains").click()
    assert "0.50" in opened.page.locator("#tables details[open]").inner_text()
    assert "two items were <u>removed</u>" in opened.page.locator("#provenance").inner_text()


def is_right(found: Record | None) -> bool:
    return found is not None and any(found.correct[:1])


def is_wrong(found: Record | None) -> bool:
    return found is not None and not any(found.correct[:1])


@pytest.mark.parametrize(
    ("option", "condition"),
    [
        ("all items", lambda a, b: True),
        ("right", lambda a, b: is_right(b)),
        ("wrong", lambda a, b: is_wrong(b)),
        ("failed", lambda a, b: b is not None and b.failure is not None),
        ("not finished", lambda a, b: b is None),
        ("right here, wrong in the other cell", lambda a, b: is_right(b) and is_wrong(a)),
        ("wrong here, right in the other cell", lambda a, b: is_wrong(b) and is_right(a)),
        (
            "right in one of the two cells only",
            lambda a, b: (is_right(a) and is_wrong(b)) or (is_wrong(a) and is_right(b)),
        ),
    ],
)
def test_a_filter_shows_exactly_its_items_of_all_domains(
    opened: Visit, results: Results, option: str, condition: Callable[[Record | None, Record | None], bool]
) -> None:
    choose(opened, "Cell", "beam")
    if option != "all items":
        choose(opened, "Show", option)
    if "cell" in option:
        choose(opened, "Other cell", "greedy")
    shown = shown_items(opened)
    assert len(shown) == len(set(shown))
    assert set(shown) == names_where(results, condition)


def test_search_and_domain_restrict_the_items(opened: Visit) -> None:
    opened.page.get_by_label("Search in utterances and gold programs").fill("LAWN water")
    opened.page.wait_for_function("() => document.querySelectorAll('#items > li').length === 1")
    assert shown_items(opened) == ["garden/0"]
    opened.page.get_by_label("Search in utterances and gold programs").fill("")
    opened.page.wait_for_function("() => document.querySelectorAll('#items > li').length > 1")
    choose(opened, "Domain", "garden")
    assert shown_items(opened) == ["garden/0", "garden/1"]


def test_a_long_list_is_shown_page_by_page(opened: Visit) -> None:
    assert opened.page.locator("#items > li").count() == 50
    assert opened.page.locator("#count").inner_text() == "122 of 122 items"
    assert "page 1 of 3" in opened.page.locator("#pages").inner_text()


def test_a_link_opens_one_item_with_a_cell(browser: Any, page: Path, results: Results) -> None:
    cell = cell_id(results, "rooms", "beam")
    with visit(browser, f"{page.as_uri()}#item=rooms/117&cell={cell}") as visited:
        visited.page.locator(".detail").wait_for()
        assert visited.page.locator("button.item[aria-expanded=true] .utterance").inner_text() == "utterance 117"
        assert "rooms, beam" in visited.page.locator(".detail-heading").inner_text()
        assert "(found 117)" in visited.page.locator(".candidates").inner_text()
        assert visited.errors == []


def test_the_back_button_restores_the_last_selection(opened: Visit, results: Results) -> None:
    open_item(opened, "rooms/4")
    assert opened.page.evaluate("location.hash") == "#item=rooms/4"
    opened.page.get_by_role("button", name="rooms, beam").click()
    opened.page.locator(".detail-heading", has_text="beam").wait_for()
    assert opened.page.evaluate("location.hash") == f"#item=rooms/4&cell={cell_id(results, 'rooms', 'beam')}"
    opened.page.go_back()
    opened.page.locator(".detail-heading", has_text="greedy").wait_for()
    opened.page.go_back()
    opened.page.wait_for_function("() => document.querySelector('.detail') === null")


def test_the_own_link_of_an_item_is_the_documented_one(opened: Visit, results: Results) -> None:
    open_item(opened, "rooms/7")
    link = opened.page.get_by_role("link", name="Link to this item and cell").get_attribute("href")
    assert link == f"#item=rooms/7&cell={cell_id(results, 'rooms', 'greedy')}"


def test_hostile_texts_are_shown_as_text(opened: Visit) -> None:
    row = opened.page.locator("#items > li").first
    assert row.locator(".utterance").inner_text() == HOSTILE.replace("\u202e", "\\u202e")
    row.locator("button.item").click()
    opened.page.get_by_text("Search trace").click()
    opened.page.locator(".trace").wait_for()
    assert opened.page.locator(".candidates .program").inner_text() == HOSTILE_OUTPUT
    assert HOSTILE_OUTPUT in opened.page.locator(".sample .valid").inner_text()
    assert opened.page.locator("main img, main script, main b, main em:has-text('lamps')").count() == 0


def test_a_failure_is_shown_with_its_reason(opened: Visit) -> None:
    choose(opened, "Cell", "beam")
    open_item(opened, "rooms/6")
    assert opened.page.locator(".detail .error").inner_text() == "Failed: the server <i>broke</i>"


def test_a_trace_is_loaded_when_it_is_opened(opened: Visit) -> None:
    open_item(opened, "rooms/2")
    assert not any("traces-" in url for url in opened.requests)
    opened.page.get_by_text("Search trace").click()
    opened.page.locator(".trace").wait_for()
    assert any("traces-" in url for url in opened.requests)
    assert opened.texts(".rounds h5") == ["Round 1"]
    kinds = opened.texts(".events .kind")
    assert kinds == ["sample, cut", "back-off", "branch", "kept, finished"]
    assert opened.texts(".sample .valid") == ["(on lamp)"]
    assert opened.texts(".sample .invalid") == ["))"]
    assert opened.texts(".sample .discarded") == ["!"]
    assert re.search(r"-0\.500\s*\(on lamp\)", opened.page.locator(".events .kept").inner_text())


def test_the_keyboard_opens_an_item(opened: Visit) -> None:
    opened.page.locator("button.item").nth(2).focus()
    opened.page.keyboard.press("Enter")
    opened.page.locator(".detail").wait_for()
    assert opened.page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_width_of_a_phone(browser: Any, page: Path, scheme: str) -> None:
    with visit(
        browser, f"{page.as_uri()}#item=rooms/0", viewport={"width": 360, "height": 800}, color_scheme=scheme
    ) as visited:
        visited.page.locator(".detail").wait_for()
        assert visited.page.evaluate("document.documentElement.scrollWidth") <= 360
        background = visited.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_every_control_has_a_name_and_every_table_has_heads(opened: Visit) -> None:
    open_item(opened, "rooms/2")
    unnamed = """() => [...document.querySelectorAll("select, input")].filter((e) => e.labels.length === 0).length
        + [...document.querySelectorAll("button, a, summary")].filter((e) => e.textContent.trim() === "").length
        + [...document.querySelectorAll("table")].filter((e) => !e.querySelector("thead th[scope=col]")).length
        + document.querySelectorAll("[onclick], [style]:not([class^=interval])").length"""
    assert opened.page.evaluate(unnamed) == 0
