"""SMCalFlow: downloading and importing, from dialogues or single turns, give the same stored files."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.datasets.smcalflow import dataset as smcalflow
from fewparse.datasets.smcalflow.dataset import SMCALFLOW
from fewparse.datasets.smcalflow.files import read_dialogues, read_turns
from fewparse.domains.examples import read_examples
from fewparse.errors import CorruptData, DataError, DataUnavailable, UsageError
from fewparse.example import Example
from fewparse.grammar.readers.load import load_grammar
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.translator import Translator
from fewparse.testing.datasets import contents
from support.file_server import serving
from support.smcalflow_files import (
    DEV_LIST,
    DIALOGUES,
    RULES,
    TABLES,
    TEST_LIST,
    TRAIN_DIALOGUES,
    TRAIN_LIST,
    TurnRow,
    publish,
    to_dialogue_lines,
    to_id_list,
    to_turn_lines,
)

LUNCH, MOVE, NOON = '(Yield :output (Book #(String "lunch")))', "(Move (It) (Later))", "(At #(Number 12))"
TURNS = [
    TurnRow("aa-1", 0, "book lunch", LUNCH, answer="Booked."),
    TurnRow("aa-1", 1, "okay", "(", answer="Anything else?", skip=True),
    TurnRow("aa-1", 2, "move it", MOVE, "Anything else?"),
    TurnRow("bb-2", 0, "à midi ?", NOON),
    TurnRow("cc-3", 0, "lunch, please", LUNCH, answer="With  whom?"),
    TurnRow("cc-3", 1, "at noon ", NOON, "With  whom?"),
    TurnRow("dd-4", 0, "later", MOVE),
]
BY_ID = {turn.id: turn for turn in TURNS}
TRAIN = [BY_ID["dd-4,0"], BY_ID["aa-1,2"]]
TEST = [BY_ID["cc-3,1"], BY_ID["bb-2,0"]]
DEV = [BY_ID["cc-3,0"]]
FULL = [BY_ID["bb-2,0"], BY_ID["cc-3,0"], BY_ID["cc-3,1"]]
SPLITS = {"examples.jsonl": TRAIN, "test.jsonl": TEST, "dev_100.jsonl": DEV, "full.jsonl": FULL}
GRAMMAR = {name: f"# {name}\n".encode() for name in RULES} | {
    "start.scfg": b'start -> " " thing , " " thing\n',
    "types.csv": b"Lunch,Thing\n",
    "specialTypes.csv": b"",
    "templates.csv": b"Lunch,a lunch\n",
}
RELEASE = {
    DIALOGUES: gzip.compress(to_dialogue_lines(TURNS)),
    TEST_LIST: to_id_list(TEST),
    DEV_LIST: to_id_list(DEV),
}
LINES = {
    "train_300.jsonl": to_turn_lines(TRAIN),
    "dev_200.jsonl": to_turn_lines(TEST),
    "dev_100.jsonl": to_turn_lines(DEV),
    "dev_all.jsonl.gz": gzip.compress(to_turn_lines(TURNS)),
}


def folder_with(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(autouse=True)
def training_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the ids of the substitute of 300 training turns by those of two."""
    path = tmp_path / "training_ids.txt"
    path.write_bytes(to_id_list(TRAIN))
    monkeypatch.setattr(smcalflow, "SUBSTITUTE_IDS", path)


@pytest.fixture(params=["release", "lines"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return folder_with(tmp_path / "source", RELEASE if request.param == "release" else LINES)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return folder_with(tmp_path / "source", RELEASE)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return folder_with(tmp_path / "source", LINES)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_the_data_is_stored_as_one_domain_with_four_files_notes_and_a_manifest(source: Path, data: Path) -> None:
    result = SMCALFLOW.import_from(source, data)
    (domain,) = result.stored
    assert result.stored == SMCALFLOW.stored(data)
    assert (domain.domain, domain.train, domain.test, domain.path) == ("smcalflow", 2, 2, data / "smcalflow")
    assert domain.others == (("dev_100", 1), ("full", 3))
    files = contents(data / "smcalflow")
    assert set(files) == {*SPLITS, "data_notes.txt", "manifest.json"}
    assert files["test.jsonl"].decode() == (
        '{"utterance": "at noon ", "program": "(At #(Number 12))", "context": "With  whom?"}\n'
        '{"utterance": "à midi ?", "program": "(At #(Number 12))"}\n'
    )


def test_the_stored_files_have_the_examples_of_the_splits(source: Path, data: Path) -> None:
    SMCALFLOW.import_from(source, data)
    for name, turns in SPLITS.items():
        assert read_examples(data / "smcalflow" / name) == tuple(
            Example(turn.utterance, turn.program, context=turn.context) for turn in turns
        )


def test_files_may_be_compressed_and_in_subfolders_with_other_files(tmp_path: Path) -> None:
    forms = {
        "compressed": RELEASE,
        "plain": {**RELEASE, DIALOGUES.removesuffix(".gz"): to_dialogue_lines(TURNS)},
        "lines": LINES,
        "other lines": {
            "dev_all.jsonl": to_turn_lines(TURNS),
            "train_300.jsonl.gz": gzip.compress(to_turn_lines(TRAIN)),
        },
    }
    del forms["plain"][DIALOGUES]
    forms["other lines"] |= {name: LINES[name] for name in ("dev_200.jsonl", "dev_100.jsonl")}
    for name, files in forms.items():
        below = folder_with(tmp_path / name / "data" / "deep", files)
        (below / "ids_train_1000_stratified.txt").write_text("not this one")
        SMCALFLOW.import_from(tmp_path / name, tmp_path / "imported" / name)
    first, *others = (contents(tmp_path / "imported" / name) for name in forms)
    assert others == [first] * 3


texts = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from('"\\ \n\t'))).filter(str.strip)
programs = st.recursive(
    st.sampled_from(["x", "1.5", ":key", '"a  (\\" b"']),
    lambda inner: st.tuples(st.sampled_from(["(", "#("]), st.lists(inner)).map(
        lambda form: f"{form[0]}{' '.join(form[1])})"
    ),
    max_leaves=10,
)


@st.composite
def dialogues(draw: st.DrawFn) -> list[TurnRow]:
    """Generate dialogues with skipped turns and gaps in the turn numbers."""
    turns: list[TurnRow] = []
    for name in draw(st.lists(st.text("abc-1", min_size=1), unique=True, max_size=4)):
        context = ""
        for index in sorted(draw(st.sets(st.integers(0, 12), max_size=5))):
            turn = TurnRow(name, index, draw(texts), draw(programs), context, draw(st.text()), draw(st.booleans()))
            turns.append(turn)
            context = turn.answer
    return turns


@given(dialogues())
@settings(max_examples=100)
def test_turns_written_in_either_format_are_read_back(turns: list[TurnRow]) -> None:
    used = [turn for turn in turns if not turn.skip]
    for read in (
        read_dialogues(to_dialogue_lines(turns).decode().split("\n"), Path("some")),
        read_turns(to_turn_lines(turns).decode().split("\n"), Path("some")),
    ):
        found = list(read)
        assert [turn.id for turn in found] == [turn.id for turn in used]
        assert [turn.example for turn in found] == [
            Example(turn.utterance, turn.program, context=turn.context) for turn in used
        ]


def test_programs_get_single_spaces_and_their_depth_is_not_limited() -> None:
    deep = "( f\n  " * 20_000 + '"a  b"' + " ) " * 20_000
    for form, read in ((to_dialogue_lines, read_dialogues), (to_turn_lines, read_turns)):
        (turn,) = read(form([TurnRow("a", 0, "u", deep)]).decode().split("\n"), Path("some"))
        assert turn.example.program == "(f " * 20_000 + '"a  b"' + ")" * 20_000


def test_turns_without_an_utterance_are_left_out_and_noted(source: Path, data: Path) -> None:
    turns = [*TURNS, TurnRow("ee-5", 0, " \n", NOON), TurnRow("ff-6", 0, "", NOON)]
    if (source / DIALOGUES).exists():
        (source / DIALOGUES).write_bytes(gzip.compress(to_dialogue_lines(turns)))
    else:
        (source / "dev_all.jsonl.gz").write_bytes(gzip.compress(to_turn_lines(turns)))
    result = SMCALFLOW.import_from(source, data)
    assert any(note.endswith("skipped 2 turns without an utterance") for note in result.notes)
    assert len(read_examples(data / "smcalflow" / "full.jsonl")) == len(FULL)


def test_files_that_differ_from_the_published_ones_are_noted(release: Path, tmp_path: Path, data: Path) -> None:
    dialogues, training, *unpublished, grammar = SMCALFLOW.import_from(release, data).notes
    assert [dialogues, *unpublished] == [
        f"{release / name} is not the published file; imported unchanged"
        for name in (DIALOGUES, TEST_LIST, DEV_LIST)
    ]
    assert training.startswith(
        f"not in {release}: train.dataflow_dialogues_ir.jsonl, ids_train_300_stratified.txt"
    )
    assert grammar.startswith(f"not in {release}: ")
    assert all(name in grammar for name in (*RULES, *TABLES))
    single = folder_with(tmp_path / "lines", LINES)
    notes = SMCALFLOW.import_from(single, data).notes[:-1]
    assert [note.partition(" has other turns than the official split")[0] for note in notes] == [
        str(single / name) for name in ("dev_200.jsonl", "dev_100.jsonl")
    ]


@pytest.mark.parametrize(
    ("files", "without", "left"),
    [
        (RELEASE, DEV_LIST, "full.jsonl"),
        (LINES, "dev_100.jsonl", "full.jsonl"),
        (LINES, "dev_all.jsonl.gz", "dev_100.jsonl"),
    ],
)
def test_a_missing_optional_file_is_noted_and_deleted_if_stored_before(
    files: dict[str, bytes], without: str, left: str, tmp_path: Path, data: Path
) -> None:
    SMCALFLOW.import_from(folder_with(tmp_path / "whole", files), data)
    source = folder_with(tmp_path / "part", {name: content for name, content in files.items() if name != without})
    result = SMCALFLOW.import_from(source, data)
    stored = {"examples.jsonl", "test.jsonl", "data_notes.txt", "manifest.json", left}
    assert set(contents(data / "smcalflow")) == stored
    lost = "full.jsonl" if left == "dev_100.jsonl" else "dev_100.jsonl"
    assert f"not in {source}: {without.removesuffix('.gz')}; {lost} is not made" in result.notes
    assert result.stored == SMCALFLOW.stored(data)


@pytest.mark.parametrize(
    ("files", "without", "message"),
    [
        (RELEASE, {DIALOGUES}, "there is no valid.dataflow_dialogues_ir.jsonl"),
        (RELEASE, {TEST_LIST}, "there is no ids_dev_200_uniform.txt"),
        (LINES, {"train_300.jsonl"}, "there is no train_300.jsonl"),
        (LINES, {"dev_200.jsonl"}, "there is no dev_200.jsonl"),
        (LINES, {"train_300.jsonl", "dev_200.jsonl"}, "there is no train_300.jsonl"),
    ],
)
def test_a_missing_required_file_is_an_error(
    files: dict[str, bytes], without: set[str], message: str, tmp_path: Path, data: Path
) -> None:
    source = folder_with(tmp_path / "s", {name: content for name, content in files.items() if name not in without})
    with pytest.raises(DataError, match=message) as caught:
        SMCALFLOW.import_from(source, data)
    assert "Expected either" in str(caught.value.hint)
    assert not data.exists()


def test_a_missing_folder_or_one_without_turns_is_an_error(tmp_path: Path, data: Path) -> None:
    with pytest.raises(DataUnavailable, match="has no turns of smcalflow") as caught:
        SMCALFLOW.import_from(folder_with(tmp_path / "rules", GRAMMAR), data)
    assert "train_300.jsonl with dev_200.jsonl" in str(caught.value.hint)
    with pytest.raises(UsageError, match="there is no folder"):
        SMCALFLOW.import_from(tmp_path / "nowhere", data)


@pytest.mark.parametrize(
    ("files", "more", "message"),
    [
        (RELEASE, {"dev_200.jsonl": LINES["dev_200.jsonl"]}, "the published dialogues are also in"),
        (RELEASE, {DIALOGUES.removesuffix(".gz"): b""}, "is also in"),
        (LINES, {"dev_all.jsonl": b""}, "is also in"),
        (LINES, {"train_300.jsonl.gz": b""}, "is also in"),
    ],
)
def test_a_file_or_format_found_twice_is_rejected(
    files: dict[str, bytes], more: dict[str, bytes], message: str, tmp_path: Path, data: Path
) -> None:
    with pytest.raises(DataError, match=message):
        SMCALFLOW.import_from(folder_with(tmp_path / "source", {**files, **more}), data)
    assert not data.exists()


def broken(name: str, change: Callable[[str], str], line: int | None, message: str, label: str) -> object:
    return pytest.param(name, change, line, message, id=f"{name.split('.')[0]}: {label}")


def on_third_line(old: str, new: str) -> Callable[[str], str]:
    """Return a change within the dialogue of the third line, `cc-3`."""

    def change(content: str) -> str:
        lines = content.split("\n")
        assert old in lines[2]
        return "\n".join([*lines[:2], lines[2].replace(old, new, 1), *lines[3:]])

    return change


def added(text: str) -> Callable[[str], str]:
    return lambda content: content + text


ANSWER = '"original_text": "With  whom?"'


@pytest.mark.parametrize(
    ("name", "change", "line", "message"),
    [
        broken(DIALOGUES, lambda c: c[:-30], 4, "not valid JSON", "half a line"),
        broken(DIALOGUES, added("[1]"), 5, "expected an object", "no object"),
        broken(DIALOGUES, added("[" * 100_000), 5, "JSON", "too deep"),
        broken(DIALOGUES, on_third_line('"dialogue_id"', '"id"'), 3, "`dialogue_id` is missing", "no name"),
        broken(DIALOGUES, on_third_line('"turns"', '"parts"'), 3, "`turns` is missing or not a list", "no turns"),
        broken(DIALOGUES, added('{"dialogue_id": "x", "turns": 7}'), 5, "`turns` is", "a number"),
        broken(DIALOGUES, added('{"dialogue_id": "x", "turns": ["y"]}'), 5, "`turns.0.skip` is", "a text"),
        broken(DIALOGUES, on_third_line('"skip": false', '"skip": 0'), 3, "not true or false", "skip"),
        broken(
            DIALOGUES, on_third_line('"turn_index": 1', '"turn_index": true'), 3, "`turns.1.turn_index`", "true"
        ),
        broken(DIALOGUES, on_third_line('"lispress"', '"plan"'), 3, "`turns.0.lispress` is missing", "no program"),
        broken(DIALOGUES, on_third_line("user_utterance", "user"), 3, "`turns.0.user_utterance.orig", "no user"),
        broken(DIALOGUES, on_third_line(ANSWER, '"tokens": []'), 3, "`turns.0.agent_utterance.orig", "no answer"),
        broken(DIALOGUES, on_third_line("lunch, please", "\\ud800"), 3, "is missing or not text", "half a char"),
        broken(DIALOGUES, on_third_line("(At", "((At"), 3, r"cc-3,1:1:1: this \( is never", "bad program"),
        broken(DIALOGUES, on_third_line("(At #(Number 12))", " "), 3, "not an S-expression", "blank program"),
        broken(DIALOGUES, on_third_line('index": 1', 'index": 0'), 3, "turn cc-3,0 is also in line 3", "twice"),
        broken(DIALOGUES, lambda _: "\n", None, "the file has none of the expected turns", "empty"),
        broken(TEST_LIST, added("bb-2,1\n"), 3, "turn bb-2,1 is not among the usable turns", "no such turn"),
        broken(TEST_LIST, added("zz-9,0\n"), 3, "turn zz-9,0 is not among the usable turns", "no such dialogue"),
        broken(TEST_LIST, added("aa-1,1\n"), 3, "turn aa-1,1 is not among the usable turns", "skipped"),
        broken(TEST_LIST, added("\nbb-2\n"), 4, "expected a turn as `dialogue,number`", "no number"),
        broken(TEST_LIST, added("bb-2,0\n"), 3, "turn bb-2,0 is listed twice", "twice"),
        broken(TEST_LIST, lambda _: "\n", None, "the list has no turns", "empty"),
        broken(DEV_LIST, added("aa,0,1"), 2, "expected a turn", "two commas"),
    ],
)
def test_an_error_in_a_published_file_is_reported_with_its_line(
    release: Path, data: Path, name: str, change: Callable[[str], str], line: int | None, message: str
) -> None:
    content = RELEASE[name]
    compressed = name == DIALOGUES
    changed = change((gzip.decompress(content) if compressed else content).decode()).encode()
    assert_rejected(release, data, name, gzip.compress(changed) if compressed else changed, line, message)


@pytest.mark.parametrize(
    ("name", "change", "line", "message"),
    [
        broken("train_300.jsonl", lambda c: c[:-30], 2, "not valid JSON", "half a line"),
        broken("train_300.jsonl", lambda _: "", None, "the file has none of the expected turns", "empty"),
        broken(
            "dev_200.jsonl", lambda c: c.replace("utterance", "u", 1), 1, "`utterance` is missing", "no utterance"
        ),
        broken("dev_200.jsonl", lambda c: c.replace("context", "c", 1), 1, "`context` is missing", "no context"),
        broken(
            "dev_200.jsonl", lambda c: c.replace(NOON, "a b", 1), 1, "a second one starts here", "two programs"
        ),
        broken("dev_200.jsonl", lambda c: c.replace('"turn_index": 0', '"turn_index": "0"'), 2, "whole", "text"),
        broken("dev_100.jsonl", lambda c: c * 2, 2, "turn cc-3,0 is also in line 1", "twice"),
        broken("dev_all.jsonl.gz", added("7\n"), 7, "expected an object", "no object"),
    ],
)
def test_an_error_in_single_turns_is_reported_with_its_line(
    lines: Path, data: Path, name: str, change: Callable[[str], str], line: int | None, message: str
) -> None:
    compressed = name.endswith(".gz")
    changed = change((gzip.decompress(LINES[name]) if compressed else LINES[name]).decode()).encode()
    assert_rejected(lines, data, name, gzip.compress(changed) if compressed else changed, line, message)


@pytest.mark.parametrize("content", [RELEASE[DIALOGUES][:-20], b"\x1f\x8b", b"plain text"])
def test_an_incomplete_gzip_file_is_rejected(release: Path, data: Path, content: bytes) -> None:
    assert_rejected(release, data, DIALOGUES, content, None, "not a complete gzip file")


def test_text_that_is_not_utf_8_is_rejected(source: Path, data: Path) -> None:
    name = TEST_LIST if (source / TEST_LIST).exists() else "dev_200.jsonl"
    assert_rejected(source, data, name, (source / name).read_bytes() + b"\xff", 3, "not UTF-8")


def test_a_missing_training_turn_is_reported_with_the_file_of_dialogues(release: Path, data: Path) -> None:
    (release / DIALOGUES).write_bytes(gzip.compress(to_dialogue_lines(TURNS[:-1])))
    with pytest.raises(DataError, match=f"turn dd-4,0 is not among the usable turns of {release / DIALOGUES}"):
        SMCALFLOW.import_from(release, data)
    assert not data.exists()


def assert_rejected(source: Path, data: Path, name: str, content: bytes, line: int | None, message: str) -> None:
    """Import a bad file among good ones: the error has its path, line and a hint, and nothing is written."""
    SMCALFLOW.import_from(source, data)
    (data / "smcalflow" / "test.jsonl").write_text("of an earlier import\n")
    before = contents(data)
    (source / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        SMCALFLOW.import_from(source, data)
    assert (caught.value.path, caught.value.line) == (source / name, line)
    assert caught.value.hint
    assert contents(data) == before


def test_the_grammar_is_stored_unchanged_in_one_folder_and_can_be_opened(source: Path, data: Path) -> None:
    for name, content in GRAMMAR.items():
        folder = source / ("data" if name in TABLES else "grammar")
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    notes = SMCALFLOW.import_from(source, data).notes
    assert contents(data / "smcalflow" / "grammar") == GRAMMAR
    unpublished = {Path(note.partition(" is not the published file")[0]).name for note in notes}
    assert unpublished >= set(GRAMMAR)
    grammar = load_grammar(data / "smcalflow" / "grammar")
    assert isinstance(grammar, SynchronousGrammar)
    assert Translator(grammar).to_program(" a lunch").best == "  (Lunch)"


def test_a_part_of_the_grammar_is_stored_and_the_rest_is_noted(source: Path, data: Path) -> None:
    (source / "types.csv").write_bytes(GRAMMAR["types.csv"])
    note = SMCALFLOW.import_from(source, data).notes[-1]
    assert set(contents(data / "smcalflow" / "grammar")) == {"types.csv"}
    assert note == (
        f"not in {source}: specialTypes.csv, templates.csv, {', '.join(RULES)} (of the authors' grammar)"
    )


def test_of_several_grammar_files_with_one_name_the_published_one_is_stored(
    tiny: dict[str, bytes], source: Path, data: Path
) -> None:
    for place, content in (("a", b"another"), ("b", GRAMMAR["start.scfg"]), ("c", b"a third")):
        folder_with(source / place, {"start.scfg": content})
    SMCALFLOW.import_from(source, data)
    assert contents(data / "smcalflow" / "grammar") == {"start.scfg": GRAMMAR["start.scfg"]}
    (source / "b" / "start.scfg").unlink()
    with pytest.raises(DataError, match=r"start\.scfg is also in"):
        SMCALFLOW.import_from(source, data)


def test_an_unwritable_data_folder_is_an_error(source: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(DataUnavailable, match="cannot be stored in"):
        SMCALFLOW.import_from(source, tmp_path / "taken")


def test_a_domain_without_examples_is_damaged(source: Path, data: Path) -> None:
    assert SMCALFLOW.stored(data) == ()
    SMCALFLOW.import_from(source, data)
    (data / "smcalflow" / "examples.jsonl").unlink()
    assert [domain.damage for domain in SMCALFLOW.stored(data)] == ["examples.jsonl is missing"]


def test_the_sources_have_dialogues_three_id_lists_and_the_grammar() -> None:
    sources = SMCALFLOW.sources
    assert sources.base_url == (
        "https://raw.githubusercontent.com/microsoft/semantic_parsing_with_constrained_lm/"
        "b22f5186ee6e66dfaf3808cd3e5f850f1e015469"
    )
    assert set(sources.checksums) == {DIALOGUES, TEST_LIST, DEV_LIST, TRAIN_DIALOGUES, TRAIN_LIST, *TABLES, *RULES}
    assert len(sources.files) == 14
    assert {file.path.name for file in sources.files if file.optional} == {TRAIN_DIALOGUES, TRAIN_LIST}
    for file in sources.files:
        blob = file.path.name == TRAIN_DIALOGUES
        assert file.checksum is not None
        assert (file.checksum.kind, len(file.checksum.value)) == (("git blob id", 40) if blob else ("SHA-256", 64))
        assert (file.size is None) == blob


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    rules = {
        name: content for name, content in GRAMMAR.items() if content
    }  # the file server treats an empty file as missing
    return publish({**RELEASE, **rules}, monkeypatch)


def test_a_download_stores_the_same_files_as_an_import(
    tiny: dict[str, bytes], source: Path, tmp_path: Path
) -> None:
    reported: list[tuple[int, int | None]] = []
    with serving() as server:
        server.files = tiny
        result = SMCALFLOW.download(
            tmp_path / "fetched", lambda done, total: reported.append((done, total)), f"{server.address}/mirror/"
        )
    assert [note.rpartition("; ")[2] for note in result.notes] == ["training examples are a substitute"]
    assert reported[-1] == (sum(map(len, tiny.values())),) * 2
    SMCALFLOW.import_from(source, tmp_path / "imported")
    fetched = contents(tmp_path / "fetched" / "smcalflow")
    imported = contents(tmp_path / "imported" / "smcalflow")
    assert {name: fetched[name] for name in SPLITS} == {name: imported[name] for name in SPLITS}
    for name, content in GRAMMAR.items():
        assert fetched.get(f"grammar/{name}", b"") == content


def test_a_mirror_with_a_different_file_changes_nothing(tiny: dict[str, bytes], data: Path) -> None:
    with serving() as server:
        server.files = {path: content.replace(b"cc-3,1", b"cc-3,0") for path, content in tiny.items()}
        with pytest.raises(CorruptData, match="SHA-256"):
            SMCALFLOW.download(data, base_url=f"{server.address}/mirror")
    assert SMCALFLOW.stored(data) == ()
