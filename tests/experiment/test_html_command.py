"""`fewparse report` writes the page of a real experiment, and the page shows its real traces."""

from pathlib import Path

import pytest

from experiment.conftest import OpenModel, lamp_table
from fewparse.experiment.plan import make_plan
from fewparse.experiment.results import Results
from fewparse.experiment.run import run_experiment
from support.browser import chromium, visit
from support.cli_runner import fewparse


@pytest.fixture
def results(lamp_folder: Path, tmp_path: Path, open_model: OpenModel) -> Results:
    table = lamp_table(lamp_folder, decoder=["greedy", "beam", "speculative"], width=3, trace=True)
    return run_experiment(make_plan(table), tmp_path / "results", open_model)


def test_the_page_shows_every_candidate_and_trace_of_a_real_experiment(results: Results) -> None:
    assert fewparse("report", str(results.folder)).code == 0
    page = results.folder / "report" / "index.html"
    with chromium() as browser, visit(browser, page.as_uri()) as opened:
        plots = list((page.parent / "plots").glob("*.svg"))
        assert opened.page.locator("#plots img").count() == len(plots)
        for cell in results.cell_results:
            for item, record in cell.finished():
                link = f"{page.as_uri()}#item={item.domain}/{item.index}&cell={cell.id}"
                opened.page.goto("about:blank")
                opened.page.goto(link)
                opened.page.get_by_text("Search trace").click()
                opened.page.locator(".trace").wait_for()
                shown = opened.page.locator(".candidates tbody tr").count()
                assert shown == min(10, len(record.outputs))
                rounds = [event for event in record.trace or () if event["event"] == "RoundStarted"]
                assert opened.texts(".rounds h5") == [f"Round {event['number']}" for event in rounds]
        assert opened.errors == []


def test_the_page_is_written_where_the_user_says_or_not_at_all(results: Results, tmp_path: Path) -> None:
    folder = str(results.folder)
    assert fewparse("report", folder, "--no-html").code == 0
    assert not (results.folder / "report").exists()
    ended = fewparse("report", folder, "--html", str(tmp_path / "page"))
    assert f"written: {tmp_path / 'page' / 'index.html'}" in ended.out
    assert not (results.folder / "report").exists()
    refused = fewparse("report", folder, "--html", folder)
    assert refused.code == 1
    assert "not the folder of a report" in refused.err
