"""The folder of a report: it is replaced as a whole, and never replaces anything else."""

import errno
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch

import pytest

from fewparse.errors import ResultsError
from fewparse.experiment import html
from fewparse.experiment.html import MARKER, STATIC, write_html
from fewparse.experiment.results import Results
from fewparse.locks import file_lock
from fewparse.replacement import sibling, write_synced
from support.experiment_results import make_cell, make_results


def make(items: int = 3) -> Results:
    return make_results(make_cell([True] * items), make_cell([False] * items, decoder="beam"))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_file_of_data_is_a_script_that_adds_one_json_value(tmp_path: Path) -> None:
    write_html(make(), tmp_path / "report")
    files = sorted((tmp_path / "report" / "data").iterdir())
    assert [file.name for file in files] == ["items-0.js", "overview.js"]
    for file in files:
        start, _, value = file.read_text().partition(" = ")
        assert start == f'fewparseData["{file.stem}"]'
        json.loads(value.removesuffix(";\n"))


def test_large_results_are_divided_into_several_files(tmp_path: Path) -> None:
    with patch.object(html, "CHUNK_CHARACTERS", 1000):
        write_html(make(items=20), tmp_path / "report")
    overview = (tmp_path / "report/data/overview.js").read_text().partition(" = ")[2].removesuffix(";\n")
    places = [(item["chunk"], item["position"]) for item in json.loads(overview)["items"]]
    assert len(places) == len(set(places)) == 20
    assert len({chunk for chunk, _ in places}) > 3
    for chunk, position in places:
        text = (tmp_path / f"report/data/items-{chunk}.js").read_text().partition(" = ")[2].removesuffix(";\n")
        assert len(json.loads(text)[position]) == 2


def test_a_second_report_replaces_the_first_and_leaves_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    with patch.object(html, "CHUNK_CHARACTERS", 1000):
        write_html(make(items=20), folder)
    (folder / "notes.txt").write_text("mine")
    write_html(make(items=3), folder)
    assert sorted((folder / "data").iterdir()) == [folder / "data/items-0.js", folder / "data/overview.js"]
    assert (folder / "notes.txt").read_text() == "mine"
    assert "notes.txt" not in json.loads((folder / MARKER).read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == [".report.lock", "report"]


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    assert write_html(make(), tmp_path) == tmp_path / "index.html"
    assert (tmp_path / "index.html").is_file()


@pytest.mark.parametrize("marker", [None, "{", '{"a": 1}', "[1]"])
def test_a_folder_that_is_not_a_report_is_not_touched(tmp_path: Path, marker: str | None) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    if marker is not None:
        (tmp_path / MARKER).write_text(marker)
    before = content(tmp_path)
    with pytest.raises(ResultsError, match="report") as caught:
        write_html(make(), tmp_path)
    assert "--html" in str(caught.value)
    assert content(tmp_path) == before


def test_a_file_in_the_place_of_the_folder_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("mine")
    with pytest.raises(ResultsError, match="not the folder of a report"):
        write_html(make(), tmp_path / "report")
    with pytest.raises(ResultsError, match="cannot be written"):
        write_html(make(), tmp_path / "report" / "inside")
    assert (tmp_path / "report").read_text() == "mine"


@pytest.mark.parametrize("writes", [0, 3, 8])
def test_a_full_disk_leaves_the_old_report_and_no_rest(tmp_path: Path, writes: int) -> None:
    folder = tmp_path / "report"
    write_html(make(), folder)
    before = content(folder)
    done = []

    def write(path: Path, data: bytes) -> None:
        done.append(path)
        if len(done) > writes:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_synced(path, data)

    with patch.object(html, "write_synced", write), pytest.raises(ResultsError, match="No space left") as caught:
        write_html(make(items=5), folder)
    assert "disk space" in str(caught.value)
    assert content(folder) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".report.lock", "report"]


KILLED = """
import os, sys
from pathlib import Path
from fewparse import replacement
from fewparse.experiment import html
from support.experiment_results import make_cell, make_results
where, folder = sys.argv[1:]
module, name = (replacement, "put_in_place") if where == "exchange" else (html, "write_data")
setattr(module, name, lambda *args: os._exit(9))
html.write_html(make_results(make_cell([True] * 9)), Path(folder))
"""


@pytest.mark.parametrize("where", ["data", "exchange"])
def test_a_killed_process_leaves_the_old_report_and_the_next_one_cleans_up(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "report"
    write_html(make(), folder)
    before = content(folder)
    tests = str(Path(__file__).parents[1])
    killed = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {tests!r})\n{KILLED}", where, str(folder)]
    )
    assert killed.returncode == 9
    assert content(folder) == before
    write_html(make(items=5), folder)
    assert content(folder) != before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".report.lock", "report"]


def test_two_processes_do_not_write_one_report(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    with file_lock(sibling(folder, "lock")), pytest.raises(ResultsError, match="another process writes"):
        write_html(make(), folder)


class Attributes(HTMLParser):
    """Collects the elements of a page and its texts within scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] in ("script", "style"):
            self.inline += data.strip()


def test_the_page_has_no_inline_code_and_names_only_files_of_the_report(tmp_path: Path) -> None:
    index = write_html(make(), tmp_path / "report")
    parser = Attributes()
    parser.feed(index.read_text())
    named = [given.get("src") or given.get("href") for _, given in parser.elements]
    assert all((index.parent / name).is_file() for name in named if name)
    assert sum(tag == "script" for tag, _ in parser.elements) == len([name for name in named if name]) - 1
    assert parser.inline == ""
    attributes = {name for _, given in parser.elements for name in given}
    assert not [name for name in attributes if name.startswith(("on", "style"))]


def test_the_scripts_never_turn_text_into_markup_or_code() -> None:
    scripts = "".join(file.read_text() for file in STATIC.iterdir() if file.name.endswith(".js"))
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert forbidden not in scripts
