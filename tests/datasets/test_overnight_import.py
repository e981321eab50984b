"""Overnight: fetched or imported, from either form, always the same files."""

import gzip
import hashlib
import json
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.datasets.folder import data_folder
from fewparse.datasets.overnight import dataset as overnight
from fewparse.datasets.overnight.dataset import domains_of, get, import_from, kept
from fewparse.datasets.overnight.files import read_sempre
from fewparse.datasets.published import Published, Sources, mirror_variable, read_sources
from fewparse.errors import CorruptData, DataError, DataUnavailable, UsageError
from fewparse.example import Example
from support.dataset_laws import assert_fetched_once, tree
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


def as_lines(examples: list[Example]) -> bytes:
    keys = ("utterance", "canonical", "program")
    return "".join(json.dumps({key: getattr(e, key) for key in keys}) + "\n" for e in examples).encode()


def published_folder(folder: Path, *domains: str) -> Path:
    folder.mkdir()
    for domain in domains:
        for part, examples in (("train", TRAIN), ("test", TEST)):
            (folder / original_name(domain, part)).write_text(original_form(examples), encoding="utf-8")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return published_folder(tmp_path / "source", "calendar", "housing")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_the_normal_form_is_three_files_a_domain(source: Path, data: Path) -> None:
    outcome = import_from(source, data)
    assert [(k.domain, k.train, k.test) for k in outcome.kept] == [("calendar", 3, 2), ("housing", 3, 2)]
    assert outcome.kept == kept(data)
    files = tree(data / "overnight" / "calendar")
    assert set(files) == {"examples.jsonl", "test.jsonl", "language.jsonl"}
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


@pytest.mark.parametrize("packed", [False, True])
def test_json_lines_give_the_same_files_as_the_published_form(source: Path, tmp_path: Path, packed: bool) -> None:
    lines = tmp_path / "lines"
    lines.mkdir()
    for domain in ("calendar", "housing"):
        for part, examples in (("train", TRAIN), ("test", TEST)):
            content = as_lines(examples)
            name = f"{domain}.{part}.jsonl" + ".gz" * packed
            (lines / name).write_bytes(gzip.compress(content) if packed else content)
    import_from(lines, tmp_path / "from lines")
    import_from(source, tmp_path / "from published")
    assert tree(tmp_path / "from lines") == tree(tmp_path / "from published")


def test_files_may_be_in_subfolders_among_others(source: Path, tmp_path: Path, data: Path) -> None:
    below = tmp_path / "repository" / "data" / "overnight"
    for domain in ("calendar", "housing"):
        (below / domain).mkdir(parents=True)
        for part in ("train", "test"):
            name = original_name(domain, part)
            (source / name).rename(below / domain / name)
        (below / domain / f"{domain}.test.turk.examples").write_text("(not this one")
    assert [k.domain for k in import_from(tmp_path / "repository", data).kept] == ["calendar", "housing"]


def test_what_is_missing_and_what_is_not_as_published_is_noted(source: Path, data: Path) -> None:
    *unpublished, missing = import_from(source, data).notes
    assert [note.endswith("is not the published file; imported as it is") for note in unpublished] == [True] * 4
    assert missing == f"not in {source}: basketball, blocks, publications, recipes, restaurants, socialnetwork"


def test_an_import_replaces_its_domains_and_leaves_the_others(source: Path, tmp_path: Path, data: Path) -> None:
    import_from(source, data)
    before = tree(data / "overnight" / "housing")
    other = published_folder(tmp_path / "other", "calendar")
    (other / original_name("calendar", "test")).write_text(original_form(TEST[:1]))
    import_from(other, data)
    assert [(k.domain, k.test) for k in kept(data)] == [("calendar", 1), ("housing", 2)]
    assert tree(data / "overnight" / "housing") == before


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


def test_formulas_may_be_broken_anywhere_and_texts_may_have_escapes() -> None:
    (example,) = read_sempre(BROKEN, Path("some.examples"))
    assert example.utterance == 'two\nlines, "quoted", \\, tab\t'
    assert example.canonical == "word"
    assert example.program == (
        '(call filter (call .size (string "a  (b \\") c")) '
        "((lambda s (var s)) (call reverse (string edu.stanford.nlp.sempre.overnight.SimpleWorld.kept))))"
    )


def test_a_formula_may_be_as_deep_as_it_likes() -> None:
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
def test_what_is_written_in_the_published_form_is_read_back(examples: list[Example]) -> None:
    assert list(read_sempre(original_form(examples), Path("some.examples"))) == examples
    with TemporaryDirectory() as name:
        source, data = published_folder(Path(name) / "source", "blocks"), Path(name) / "data"
        (source / original_name("blocks", "train")).write_bytes(original_form(examples).encode())
        import_from(source, data)
        lines = (data / "overnight" / "blocks" / "examples.jsonl").read_bytes().decode().split("\n")[:-1]
        assert [Example(**json.loads(line)) for line in lines] == examples


GOOD = original_form(TRAIN)
LINE = as_lines(TRAIN).decode()
SECOND = GOOD.index("(example", 1)


@pytest.mark.parametrize(
    ("content", "line", "complaint"),
    [
        pytest.param(GOOD[: SECOND + 90], 9, "the file ends within this example", id="truncated"),
        pytest.param(GOOD[: SECOND + 30], 9, "never closed", id="truncated in a text"),
        pytest.param(GOOD + "\n)", 26, "nothing is open", id="one bracket too many"),
        pytest.param(GOOD + "stray", 25, r"expected \(example", id="a word outside"),
        pytest.param(GOOD + "(sample (utterance u))", 25, r"expected \(example", id="another form"),
        pytest.param(GOOD + "()", 25, r"expected \(example", id="an empty form"),
        pytest.param(GOOD.replace("original", "origin", 1), 1, r"has no \(original", id="no canonical"),
        pytest.param(GOOD.replace('"every meeting"', '" "'), 17, r"has no \(utterance", id="blank utterance"),
        pytest.param(GOOD.replace('"every meeting"', ""), 17, r"has no \(utterance", id="no utterance"),
        pytest.param(GOOD.replace("targetFormula", "targetValue", 1), 1, "targetFormula", id="no program"),
        pytest.param(GOOD.encode() + b"\xff", 25, "not UTF-8", id="not UTF-8"),
        pytest.param("", None, "there is no example", id="empty"),
    ],
)
def test_a_published_file_with_a_mistake_is_refused_at_its_place(
    source: Path, data: Path, content: str | bytes, line: int | None, complaint: str
) -> None:
    refused(source, data, original_name("housing", "test"), content, line, complaint)


@pytest.mark.parametrize(
    ("content", "line", "complaint"),
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
        pytest.param("\n\n", None, "there is no example", id="empty"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_json_lines_with_a_mistake_are_refused_at_their_place(
    source: Path, data: Path, content: str | bytes, line: int | None, complaint: str, packed: bool
) -> None:
    (source / original_name("housing", "test")).unlink()
    raw = content.encode() if isinstance(content, str) else content
    name = "housing.test.jsonl" + ".gz" * packed
    refused(source, data, name, gzip.compress(raw) if packed else raw, line, complaint)


@pytest.mark.parametrize("content", [gzip.compress(LINE.encode())[:-20], b"", b"\x1f\x8b", b"plain text"])
def test_a_gzip_file_that_is_not_whole_is_refused(source: Path, data: Path, content: bytes) -> None:
    (source / original_name("housing", "test")).unlink()
    complaint = "there is no example" if content == b"" else "not a whole gzip file"
    refused(source, data, "housing.test.jsonl.gz", content, None, complaint)


def test_a_gzip_file_with_flipped_bits_is_refused(source: Path, data: Path) -> None:
    (source / original_name("housing", "test")).unlink()
    content = bytearray(gzip.compress(LINE.encode()))
    content[len(content) // 2] ^= 0xFF
    refused(source, data, "housing.test.jsonl.gz", bytes(content), None, "not a whole gzip file")


def refused(source: Path, data: Path, name: str, content: str | bytes, line: int | None, complaint: str) -> None:
    """One bad file among good ones: told with its place and a next step, and nothing is written."""
    good = published_folder(source.parent / "good", "calendar")
    (good / original_name("calendar", "test")).write_text(original_form(TEST[:1]))
    import_from(good, data)
    before = tree(data)
    (source / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=complaint) as caught:
        import_from(source, data)
    assert (caught.value.path, caught.value.line) == (source / name, line)
    assert caught.value.hint
    assert tree(data) == before


@pytest.mark.parametrize("part", ["train", "test"])
def test_half_a_domain_is_refused(source: Path, data: Path, part: str) -> None:
    (source / original_name("housing", part)).unlink()
    with pytest.raises(DataError, match=f"housing has no {part} file"):
        import_from(source, data)
    assert not data.exists()


def test_a_part_that_is_there_twice_is_refused(source: Path, data: Path) -> None:
    (source / "calendar.train.jsonl").write_bytes(as_lines(TRAIN))
    with pytest.raises(DataError, match=r"train part of calendar is also in .*paraphrases\.train\.examples"):
        import_from(source, data)
    assert not data.exists()


def test_a_folder_without_the_files_or_no_folder_is_told(tmp_path: Path, data: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "weather.paraphrases.train.examples").write_text(GOOD)
    with pytest.raises(DataUnavailable, match="holds no file of overnight") as caught:
        import_from(tmp_path / "empty", data)
    assert "basketball.paraphrases.train.examples" in str(caught.value.hint)
    with pytest.raises(UsageError, match="there is no folder"):
        import_from(tmp_path / "nowhere", data)


def test_a_data_folder_that_cannot_be_written_is_told(source: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(DataUnavailable, match="cannot be kept in"):
        import_from(source, tmp_path / "taken")


def test_a_domain_that_lacks_a_file_is_not_there(source: Path, data: Path) -> None:
    assert kept(data) == ()
    import_from(source, data)
    (data / "overnight" / "housing" / "language.jsonl").unlink()
    assert [k.domain for k in kept(data)] == ["calendar"]


def test_the_data_folder_is_the_one_chosen_or_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEWPARSE_DATA", raising=False)
    assert data_folder().name == "fewparse"
    monkeypatch.setenv("FEWPARSE_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder(tmp_path / "chosen") == tmp_path / "chosen"


def test_the_table_of_sources_has_two_files_a_domain() -> None:
    sources = read_sources(overnight.NAME)
    assert sources.address == (
        "https://raw.githubusercontent.com/ysu1989/CrossSemparse/7275a1cab2cd23442c356148978084f60d12e2ab"
    )
    assert domains_of(sources) == tuple(DOMAINS)
    expected = {original_name(domain, part) for domain in DOMAINS for part in ("train", "test")}
    assert {file.path.name for file in sources.files} == expected
    assert all(len(file.sha256) == 64 and file.size > 100_000 for file in sources.files)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """A dataset of one domain in place of the real table; the files by their address."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv(mirror_variable(overnight.NAME), raising=False)
    files = {}
    table = []
    for part, examples in (("train", TRAIN), ("test", TEST)):
        path = PurePosixPath("data") / "recipes" / original_name("recipes", part)
        content = original_form(examples).encode()
        files[f"/mirror/{path}"] = content
        table.append(Published(path, len(content), hashlib.sha256(content).hexdigest()))
    monkeypatch.setattr(overnight, "read_sources", lambda _: Sources("http://127.0.0.1:9", tuple(table)))
    return files


def test_what_is_fetched_is_what_is_imported(tiny: dict[str, bytes], tmp_path: Path) -> None:
    told: list[Any] = []
    with serving() as server:
        server.files = tiny
        outcome = get(tmp_path / "fetched", lambda *done: told.append(done), f"{server.address}/mirror/")
    assert [(k.domain, k.train, k.test) for k in outcome.kept] == [("recipes", 3, 2)]
    assert outcome.notes == ()
    assert told[-1] == (sum(map(len, tiny.values())),) * 2
    import_from(published_folder(tmp_path / "source", "recipes"), tmp_path / "imported")
    assert tree(tmp_path / "fetched/overnight/recipes") == tree(tmp_path / "imported/overnight/recipes")


def test_what_was_fetched_needs_no_network_again_unless_forced(
    tiny: dict[str, bytes], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_fetched_once(get, "FEWPARSE_OVERNIGHT_URL", tiny, data, monkeypatch)


def test_a_mirror_with_another_file_changes_nothing(tiny: dict[str, bytes], data: Path) -> None:
    with serving() as server:
        server.files = {path: content.replace(b"meeting", b"greeting") for path, content in tiny.items()}
        with pytest.raises(CorruptData):
            get(data, base_url=f"{server.address}/mirror")
    assert kept(data) == ()


@needs_real_data
def test_the_real_data_is_the_same_fetched_or_imported_and_has_the_published_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with serving() as server:
        server.files = {
            f"/{file.path}": real_original(*file.path.name.replace("paraphrases.", "").split(".")[:2])
            for file in read_sources(overnight.NAME).files
        }
        fetched = get(tmp_path / "fetched", base_url=server.address)
    imported = import_from(REAL, tmp_path / "imported")
    assert fetched.notes == imported.notes == ()
    for outcome in (fetched, imported):
        assert {k.domain: (k.train, k.test) for k in outcome.kept} == DOMAINS
    languages = []
    for domain in DOMAINS:
        files = tree(tmp_path / "fetched" / "overnight" / domain)
        assert files == tree(tmp_path / "imported" / "overnight" / domain)
        languages.append(files["language.jsonl"].count(b"\n"))
    assert languages == [252, 469, 196, 231, 149, 124, 339, 624]


@needs_real_data
def test_other_line_breaks_in_a_published_file_make_no_difference_but_a_note(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for part in ("train", "test"):
        (source / original_name("restaurants", part)).write_bytes(real_original("restaurants", part))
    import_from(source, tmp_path / "as published")
    broken = source / original_name("restaurants", "train")
    call = with_prefix("(call getProperty")
    broken.write_text(broken.read_text().replace(f" {call} ", f"\n      {call}\n  "))
    assert import_from(source, tmp_path / "broken").notes[0].startswith(f"{broken} is not the published file")
    assert tree(tmp_path / "broken") == tree(tmp_path / "as published")
