"""Overnight: downloading and importing, from SEMPRE files or JSON lines, give the same stored files."""

import gzip
import json
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.datasets.checksum import Checksum
from fewparse.datasets.dataset import PublishedFile, Sources, mirror_variable
from fewparse.datasets.overnight.dataset import OVERNIGHT
from fewparse.datasets.overnight.files import read_sempre
from fewparse.datasets.storage import data_folder
from fewparse.errors import CorruptData, DataError, DataUnavailable, UsageError
from fewparse.example import Example
from fewparse.testing.datasets import contents
from support.file_server import (
    DOMAINS,
    REAL,
    needs_real_data,
    original_form,
    original_name,
    real_original,
    serving,
    with_prefix,
)

MEETINGS = "(call listValue (call getProperty (call singleton en.meeting) (string !type)))"
LENGTH = "(call listValue (call getProperty en.meeting.weekly (string length)))"
TRAIN = [
    Example("show me  all meetings ", MEETINGS, "meeting"),
    Example('what is "weekly" \\ long', LENGTH, "length of weekly"),
    Example("every meeting", MEETINGS, "meeting"),
]
TEST = [Example("how long is it", LENGTH, "length of weekly"), Example("où ?", "(call .size en.x)", "size")]


def json_lines(examples: list[Example]) -> bytes:
    keys = ("utterance", "canonical", "program")
    return "".join(json.dumps({key: getattr(e, key) for key in keys}) + "\n" for e in examples).encode()


def sempre_folder(folder: Path, *domains: str) -> Path:
    folder.mkdir()
    for domain in domains:
        for part, examples in (("train", TRAIN), ("test", TEST)):
            (folder / original_name(domain, part)).write_text(original_form(examples), encoding="utf-8")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return sempre_folder(tmp_path / "source", "calendar", "housing")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_each_domain_is_stored_as_three_files_and_a_manifest(source: Path, data: Path) -> None:
    result = OVERNIGHT.import_from(source, data)
    assert [(s.domain, s.train, s.test) for s in result.stored] == [
        ("overnight/calendar", 3, 2),
        ("overnight/housing", 3, 2),
    ]
    assert result.stored == OVERNIGHT.stored(data)
    files = contents(data / "overnight" / "calendar")
    assert set(files) == {"examples.jsonl", "test.jsonl", "language.jsonl", "manifest.json"}
    assert files["test.jsonl"].decode() == (
        f'{{"utterance": "how long is it", "canonical": "length of weekly", "program": "{LENGTH}"}}\n'
        '{"utterance": "où ?", "canonical": "size", "program": "(call .size en.x)"}\n'
    )
    assert [json.loads(line) for line in files["examples.jsonl"].splitlines()] == [
        {"utterance": e.utterance, "canonical": e.canonical, "program": e.program} for e in TRAIN
    ]
    assert files["language.jsonl"].decode() == (
        f'{{"canonical": "meeting", "program": "{MEETINGS}"}}\n'
        f'{{"canonical": "length of weekly", "program": "{LENGTH}"}}\n'
        '{"canonical": "size", "program": "(call .size en.x)"}\n'
    )
    assert {path.name for path in (data / "overnight").iterdir()} == {"calendar", "housing"}


@pytest.mark.parametrize("compressed", [False, True])
def test_json_lines_give_the_same_files_as_sempre_files(source: Path, tmp_path: Path, compressed: bool) -> None:
    lines = tmp_path / "lines"
    lines.mkdir()
    for domain in ("calendar", "housing"):
        for part, examples in (("train", TRAIN), ("test", TEST)):
            content = json_lines(examples)
            name = f"{domain}.{part}.jsonl" + ".gz" * compressed
            (lines / name).write_bytes(gzip.compress(content) if compressed else content)
    OVERNIGHT.import_from(lines, tmp_path / "from lines")
    OVERNIGHT.import_from(source, tmp_path / "from published")
    assert contents(tmp_path / "from lines") == contents(tmp_path / "from published")


def test_files_may_be_in_subfolders_with_other_files(source: Path, tmp_path: Path, data: Path) -> None:
    below = tmp_path / "repository" / "data" / "overnight"
    for domain in ("calendar", "housing"):
        (below / domain).mkdir(parents=True)
        for part in ("train", "test"):
            name = original_name(domain, part)
            (source / name).rename(below / domain / name)
        (below / domain / f"{domain}.test.turk.examples").write_text("(not this one")
    assert [s.domain for s in OVERNIGHT.import_from(tmp_path / "repository", data).stored] == [
        "overnight/calendar",
        "overnight/housing",
    ]


def test_missing_domains_and_unpublished_files_are_noted(source: Path, data: Path) -> None:
    *unpublished, missing = OVERNIGHT.import_from(source, data).notes
    assert [note.endswith("is not the published file; imported unchanged") for note in unpublished] == [True] * 4
    assert missing == f"not in {source}: basketball, blocks, publications, recipes, restaurants, socialnetwork"


def test_an_import_replaces_its_domains_and_keeps_the_others(source: Path, tmp_path: Path, data: Path) -> None:
    OVERNIGHT.import_from(source, data)
    before = contents(data / "overnight" / "housing")
    other = sempre_folder(tmp_path / "other", "calendar")
    (other / original_name("calendar", "test")).write_text(original_form(TEST[:1]))
    OVERNIGHT.import_from(other, data)
    assert [(s.domain, s.test) for s in OVERNIGHT.stored(data)] == [
        ("overnight/calendar", 1),
        ("overnight/housing", 2),
    ]
    assert contents(data / "overnight" / "housing") == before


BROKEN = """
# a comment
(example (id 7) (utterance "two\nlines, \\"quoted\\", \\\\, tab\\t")
  (original
     word)
  (targetFormula
    (call edu.stanford.nlp.sempre.overnight.SimpleWorld.filter
       ( call   .size
       (string "a  (b \\") c") )

       ((lambda s (var s)) (call edu.stanford.nlp.sempre.overnight.SimpleWorld.reverse (string
         edu.stanford.nlp.sempre.overnight.SimpleWorld.kept))))))
"""


def test_formulas_may_have_line_breaks_anywhere_and_strings_may_have_escapes() -> None:
    (example,) = read_sempre(BROKEN, Path("some.examples"))
    assert example.utterance == 'two\nlines, "quoted", \\, tab\t'
    assert example.canonical == "word"
    assert example.program == (
        '(call filter (call .size (string "a  (b \\") c")) '
        "((lambda s (var s)) (call reverse (string edu.stanford.nlp.sempre.overnight.SimpleWorld.kept))))"
    )


def test_the_depth_of_a_formula_is_not_limited() -> None:
    deep = "(call f " * 20_000 + "x" + ")" * 20_000
    (example,) = read_sempre(original_form([Example("u", deep, "c")]), Path("some.examples"))
    assert example.program == deep


texts = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from('"\\()#\n\t '))).filter(str.strip)
words = st.text("abc.!<=_1", min_size=1)
programs = st.recursive(
    words,
    lambda inner: st.lists(inner, min_size=1).map(lambda parts: f"(call {' '.join(['f', *parts])})"),
    max_leaves=20,
)


@given(st.lists(st.builds(Example, utterance=texts, canonical=texts, program=programs), min_size=1))
@settings(max_examples=50)
def test_examples_written_in_sempre_format_are_read_back(examples: list[Example]) -> None:
    assert list(read_sempre(original_form(examples), Path("some.examples"))) == examples
    with TemporaryDirectory() as name:
        source, data = sempre_folder(Path(name) / "source", "blocks"), Path(name) / "data"
        (source / original_name("blocks", "train")).write_bytes(original_form(examples).encode())
        OVERNIGHT.import_from(source, data)
        lines = (data / "overnight" / "blocks" / "examples.jsonl").read_bytes().decode().split("\n")[:-1]
        assert [Example(**json.loads(line)) for line in lines] == examples


GOOD = original_form(TRAIN)
LINE = json_lines(TRAIN).decode()
SECOND = GOOD.index("(example", 1)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        pytest.param(GOOD[: SECOND + 90], 9, "the file ends within this example", id="truncated"),
        pytest.param(GOOD[: SECOND + 30], 9, "not closed", id="truncated in a text"),
        pytest.param(GOOD + "\n)", 26, "unmatched", id="one bracket too many"),
        pytest.param(GOOD + "stray", 25, r"expected \(example", id="a word outside"),
        pytest.param(GOOD + "(sample (utterance u))", 25, r"expected \(example", id="another form"),
        pytest.param(GOOD + "()", 25, r"expected \(example", id="an empty form"),
        pytest.param(GOOD.replace("original", "origin", 1), 1, r"has no \(original", id="no canonical"),
        pytest.param(GOOD.replace('"every meeting"', '" "'), 17, r"has no \(utterance", id="blank utterance"),
        pytest.param(GOOD.replace('"every meeting"', ""), 17, r"has no \(utterance", id="no utterance"),
        pytest.param(GOOD.replace("targetFormula", "targetValue", 1), 1, "targetFormula", id="no program"),
        pytest.param(GOOD.encode() + b"\xff", 25, "not UTF-8", id="not UTF-8"),
        pytest.param("", None, "the file has no examples", id="empty"),
    ],
)
def test_an_error_in_a_sempre_file_is_reported_with_its_line(
    source: Path, data: Path, content: str | bytes, line: int | None, message: str
) -> None:
    assert_rejected(source, data, original_name("housing", "test"), content, line, message)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        pytest.param(LINE[:-30], 3, "not valid JSON", id="truncated"),
        pytest.param(LINE + "[" * 100_000, 4, "JSON", id="too deep"),
        pytest.param(LINE + "1" * 5000, 4, "JSON", id="a number too long"),
        pytest.param(LINE + "\n[1]", 5, "expected an object", id="no object"),
        pytest.param(LINE.replace("canonical", "canon"), 1, "`canonical` is missing", id="no canonical"),
        pytest.param(LINE.replace('"every meeting"', '""'), 3, "`utterance` is missing", id="empty utterance"),
        pytest.param(LINE.replace('"every meeting"', "7"), 3, "`utterance` is", id="a number"),
        pytest.param(LINE.replace('"every meeting"', '"\\ud800"'), 3, "`utterance` is", id="half a character"),
        pytest.param(LINE.encode() + b"\xff", 4, "not UTF-8", id="not UTF-8"),
        pytest.param("\n\n", None, "the file has no examples", id="empty"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_an_error_in_json_lines_is_reported_with_its_line(
    source: Path, data: Path, content: str | bytes, line: int | None, message: str, compressed: bool
) -> None:
    (source / original_name("housing", "test")).unlink()
    raw = content.encode() if isinstance(content, str) else content
    name = "housing.test.jsonl" + ".gz" * compressed
    assert_rejected(source, data, name, gzip.compress(raw) if compressed else raw, line, message)


@pytest.mark.parametrize("content", [gzip.compress(LINE.encode())[:-20], b"", b"\x1f\x8b", b"plain text"])
def test_an_incomplete_gzip_file_is_rejected(source: Path, data: Path, content: bytes) -> None:
    (source / original_name("housing", "test")).unlink()
    message = "the file has no examples" if content == b"" else "not a complete gzip file"
    assert_rejected(source, data, "housing.test.jsonl.gz", content, None, message)


def test_a_corrupt_gzip_file_is_rejected(source: Path, data: Path) -> None:
    (source / original_name("housing", "test")).unlink()
    content = bytearray(gzip.compress(LINE.encode()))
    content[len(content) // 2] ^= 0xFF
    assert_rejected(source, data, "housing.test.jsonl.gz", bytes(content), None, "not a complete gzip file")


def assert_rejected(
    source: Path, data: Path, name: str, content: str | bytes, line: int | None, message: str
) -> None:
    """Import a bad file among good ones: the error has its path, line and a hint, and nothing is written."""
    good = sempre_folder(source.parent / "good", "calendar")
    (good / original_name("calendar", "test")).write_text(original_form(TEST[:1]))
    OVERNIGHT.import_from(good, data)
    before = contents(data)
    (source / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=message) as caught:
        OVERNIGHT.import_from(source, data)
    assert (caught.value.path, caught.value.line) == (source / name, line)
    assert caught.value.hint
    assert contents(data) == before


@pytest.mark.parametrize("part", ["train", "test"])
def test_a_domain_with_only_one_split_is_rejected(source: Path, data: Path, part: str) -> None:
    (source / original_name("housing", part)).unlink()
    with pytest.raises(DataError, match=f"housing has no {part} file"):
        OVERNIGHT.import_from(source, data)
    assert not data.exists()


def test_a_split_in_two_files_is_rejected(source: Path, data: Path) -> None:
    (source / "calendar.train.jsonl").write_bytes(json_lines(TRAIN))
    with pytest.raises(DataError, match=r"train split of calendar is also in .*paraphrases\.train\.examples"):
        OVERNIGHT.import_from(source, data)
    assert not data.exists()


def test_a_missing_folder_or_one_without_files_is_an_error(tmp_path: Path, data: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "weather.paraphrases.train.examples").write_text(GOOD)
    with pytest.raises(DataUnavailable, match="has no files of overnight") as caught:
        OVERNIGHT.import_from(tmp_path / "empty", data)
    assert "basketball.paraphrases.train.examples" in str(caught.value.hint)
    with pytest.raises(UsageError, match="there is no folder"):
        OVERNIGHT.import_from(tmp_path / "nowhere", data)


def test_an_unwritable_data_folder_is_an_error(source: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(DataUnavailable, match="cannot be stored in"):
        OVERNIGHT.import_from(source, tmp_path / "taken")


def test_a_domain_without_a_required_file_is_damaged(source: Path, data: Path) -> None:
    assert OVERNIGHT.stored(data) == ()
    OVERNIGHT.import_from(source, data)
    (data / "overnight" / "housing" / "language.jsonl").unlink()
    assert [(s.domain, s.damage) for s in OVERNIGHT.stored(data)] == [
        ("overnight/calendar", None),
        ("overnight/housing", "language.jsonl is missing"),
    ]


def test_the_data_folder_is_chosen_by_argument_or_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEWPARSE_DATA", raising=False)
    assert data_folder().name == "fewparse"
    monkeypatch.setenv("FEWPARSE_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder(tmp_path / "chosen") == tmp_path / "chosen"


def test_the_sources_have_two_files_per_domain() -> None:
    sources = OVERNIGHT.sources
    assert sources.base_url == (
        "https://raw.githubusercontent.com/ysu1989/CrossSemparse/7275a1cab2cd23442c356148978084f60d12e2ab"
    )
    assert OVERNIGHT.domains == tuple(f"overnight/{domain}" for domain in DOMAINS)
    expected = {original_name(domain, part) for domain in DOMAINS for part in ("train", "test")}
    assert {file.path.name for file in sources.files} == expected
    for file in sources.files:
        assert file.checksum is not None
        assert (file.checksum.kind, len(file.checksum.value), file.optional) == ("SHA-256", 64, False)
        assert file.size is not None
        assert file.size > 100_000


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """A dataset of one domain in place of the real one; returns its files by their URL paths."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv(mirror_variable("overnight"), raising=False)
    files = {}
    table = []
    for part, examples in (("train", TRAIN), ("test", TEST)):
        path = PurePosixPath("data") / "recipes" / original_name("recipes", part)
        content = original_form(examples).encode()
        files[f"/mirror/{path}"] = content
        table.append(PublishedFile(path, len(content), Checksum.of(content)))
    monkeypatch.setattr(OVERNIGHT, "sources", Sources("http://127.0.0.1:9", tuple(table)))
    monkeypatch.setattr(OVERNIGHT, "domains", ("overnight/recipes",))
    return files


def test_a_download_stores_the_same_files_as_an_import(tiny: dict[str, bytes], tmp_path: Path) -> None:
    reported: list[Any] = []
    with serving() as server:
        server.files = tiny
        result = OVERNIGHT.download(
            tmp_path / "fetched", lambda *done: reported.append(done), f"{server.address}/mirror/"
        )
    assert [(s.domain, s.train, s.test) for s in result.stored] == [("overnight/recipes", 3, 2)]
    assert result.notes == ()
    assert reported[-1] == (sum(map(len, tiny.values())),) * 2
    OVERNIGHT.import_from(sempre_folder(tmp_path / "source", "recipes"), tmp_path / "imported")
    assert contents(tmp_path / "fetched/overnight/recipes") == contents(tmp_path / "imported/overnight/recipes")


def test_a_mirror_with_a_different_file_changes_nothing(tiny: dict[str, bytes], data: Path) -> None:
    with serving() as server:
        server.files = {path: content.replace(b"meeting", b"greeting") for path, content in tiny.items()}
        with pytest.raises(CorruptData):
            OVERNIGHT.download(data, base_url=f"{server.address}/mirror")
    assert OVERNIGHT.stored(data) == ()


@needs_real_data
def test_the_real_data_has_the_published_counts_when_downloaded_or_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as server:
        server.files = {
            f"/{file.path}": real_original(*file.path.name.replace("paraphrases.", "").split(".")[:2])
            for file in OVERNIGHT.sources.files
        }
        fetched = OVERNIGHT.download(tmp_path / "fetched", base_url=server.address)
    imported = OVERNIGHT.import_from(REAL, tmp_path / "imported")
    assert fetched.notes == imported.notes == ()
    for result in (fetched, imported):
        assert {s.domain.removeprefix("overnight/"): (s.train, s.test) for s in result.stored} == DOMAINS
    languages = []
    for domain in DOMAINS:
        files = contents(tmp_path / "fetched" / "overnight" / domain)
        assert files == contents(tmp_path / "imported" / "overnight" / domain)
        languages.append(files["language.jsonl"].count(b"\n"))
    assert languages == [252, 469, 196, 231, 149, 124, 339, 624]


@needs_real_data
def test_other_line_breaks_in_a_published_file_only_cause_a_note(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for part in ("train", "test"):
        (source / original_name("restaurants", part)).write_bytes(real_original("restaurants", part))
    OVERNIGHT.import_from(source, tmp_path / "as published")
    broken = source / original_name("restaurants", "train")
    call = with_prefix("(call getProperty")
    broken.write_text(broken.read_text().replace(f" {call} ", f"\n      {call}\n  "))
    assert (
        OVERNIGHT.import_from(source, tmp_path / "broken")
        .notes[0]
        .startswith(f"{broken} is not the published file")
    )
    assert contents(tmp_path / "broken") == contents(tmp_path / "as published")
