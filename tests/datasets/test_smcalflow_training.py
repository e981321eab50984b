"""The training examples of SMCalFlow: the authors' turns if their files are there, else the substitute."""

import gzip
from pathlib import Path

import pytest

from fewparse.datasets.smcalflow import dataset as smcalflow
from fewparse.datasets.smcalflow.dataset import SMCALFLOW
from fewparse.datasets.smcalflow.files import read_dialogues
from fewparse.datasets.storage import ImportResult
from fewparse.domains.examples import read_examples
from fewparse.domains.load import load_domain
from fewparse.errors import DataError
from fewparse.testing.datasets import contents
from support.cli_runner import fewparse
from support.file_server import FileServer, Misbehaviour, serving
from support.smcalflow_files import (
    DEV_LIST,
    DIALOGUES,
    TEST_LIST,
    TRAIN_DIALOGUES,
    TRAIN_LIST,
    TurnRow,
    publish,
    to_dialogue_lines,
    to_id_list,
    to_turn_lines,
)

VALIDATION = [
    TurnRow(f"valid-{i}", j, f"utterance {i} {j}", f"(f {i} {j})", "bye" if j else "")
    for i in range(4)
    for j in range(2)
]
SUBSTITUTE = [VALIDATION[6], VALIDATION[1]]
TRAINING = [
    TurnRow("train-0", 0, "okay", "(not read", answer="Which one?", skip=True),
    TurnRow("train-0", 1, "the first", "(first)", "Which one?"),
    TurnRow("train-1", 0, "not listed", "(not read", answer="Sorry?"),
    TurnRow("train-1", 1, "the last", "(last)", "Sorry?"),
    TurnRow("train-2", 0, "not listed", "(not read"),
]
AUTHORS = [TRAINING[3], TRAINING[1]]
FILES = {
    DIALOGUES: gzip.compress(to_dialogue_lines(VALIDATION)),
    TEST_LIST: to_id_list(VALIDATION[2:4]),
    DEV_LIST: to_id_list(VALIDATION[4:5]),
    TRAIN_LIST: to_id_list(AUTHORS),
    TRAIN_DIALOGUES: gzip.compress(to_dialogue_lines(TRAINING)),
}
THE_AUTHORS = "training examples: the authors' 2"
THE_SUBSTITUTE = "training examples: substitute of 2 validation turns"


@pytest.fixture(autouse=True)
def mirror_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Publish the small files in place of the real ones; return them by their URL paths."""
    path = tmp_path / "substitute.txt"
    path.write_bytes(to_id_list(SUBSTITUTE))
    monkeypatch.setattr(smcalflow, "SUBSTITUTE_IDS", path)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return publish(FILES, monkeypatch)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def folder_with(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def download(server: FileServer, data: Path) -> ImportResult:
    return SMCALFLOW.download(data, base_url=f"{server.address}/mirror")


def without_training_dialogues(mirror_files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: content for path, content in mirror_files.items() if not path.endswith(TRAIN_DIALOGUES)}


def assert_stored(data: Path, train: list[TurnRow], full: list[TurnRow], note: str) -> None:
    for name, turns in (("examples.jsonl", train), ("full.jsonl", full)):
        examples = read_examples(data / "smcalflow" / name)
        assert [(e.utterance, e.program, e.context) for e in examples] == [
            (turn.utterance, turn.program, turn.context) for turn in turns
        ]
    (stored,) = SMCALFLOW.stored(data)
    assert stored.data_notes == load_domain("smcalflow", data).data_notes == (note,)


def assert_authors(data: Path) -> None:
    """The training examples are the authors', in the order of their list; all of validation is for evaluation."""
    assert_stored(data, AUTHORS, VALIDATION, THE_AUTHORS)


def assert_substitute(data: Path) -> None:
    """The training examples are from validation; their dialogues are not for evaluation."""
    assert_stored(data, SUBSTITUTE, VALIDATION[2:6], THE_SUBSTITUTE)


def test_a_download_has_the_authors_training_examples(mirror_files: dict[str, bytes], data: Path) -> None:
    with serving() as server:
        server.files = mirror_files
        assert download(server, data).notes == ()
        assert_authors(data)
        assert len(server.requests) == len(FILES)
        assert download(server, data).notes == ()
        assert len(server.requests) == len(FILES)


def test_an_import_from_a_folder_has_the_authors_training_examples(tmp_path: Path, data: Path) -> None:
    assert SMCALFLOW.import_from(folder_with(tmp_path / "source", FILES), data).notes == ()
    assert_authors(data)
    unpacked = {**FILES, TRAIN_DIALOGUES.removesuffix(".gz"): gzip.decompress(FILES[TRAIN_DIALOGUES])}
    del unpacked[TRAIN_DIALOGUES]
    SMCALFLOW.import_from(folder_with(tmp_path / "unpacked", unpacked), tmp_path / "other")
    assert contents(tmp_path / "other") == contents(data)


@pytest.mark.parametrize("missing", [{TRAIN_DIALOGUES}, {TRAIN_LIST}, {TRAIN_DIALOGUES, TRAIN_LIST}])
def test_without_their_files_the_substitute_is_used_and_noted(
    missing: set[str], mirror_files: dict[str, bytes], tmp_path: Path, data: Path
) -> None:
    with serving() as server:
        server.files = {p: content for p, content in mirror_files.items() if Path(p).name not in missing}
        *failures, note = download(server, data).notes
    assert_substitute(data)
    assert len(failures) == len(missing)
    assert all("cannot be downloaded: the server returned 404" in failure for failure in failures)
    assert note.endswith("; training examples are a substitute")
    source = folder_with(tmp_path / "source", {n: c for n, c in FILES.items() if n not in missing})
    notes = SMCALFLOW.import_from(source, tmp_path / "imported").notes
    assert_substitute(tmp_path / "imported")
    listed = ", ".join(n.removesuffix(".gz") for n in (TRAIN_DIALOGUES, TRAIN_LIST) if n in missing)
    assert notes == (f"not in {source}: {listed}; training examples are a substitute",)


def test_a_later_download_replaces_the_substitute(mirror_files: dict[str, bytes], data: Path) -> None:
    with serving() as server:
        server.files = without_training_dialogues(mirror_files)
        download(server, data)
        assert_substitute(data)
        server.files = mirror_files
        download(server, data)
    assert_authors(data)


def test_a_damaged_training_file_is_refused_and_the_substitute_used(
    mirror_files: dict[str, bytes], data: Path
) -> None:
    damaged = gzip.compress(to_dialogue_lines(TRAINING).replace(b"the last", b"the lost"))
    with serving() as server:
        server.files = {p: damaged if p.endswith(TRAIN_DIALOGUES) else c for p, c in mirror_files.items()}
        notes = download(server, data).notes
    assert "is not the published file: its git blob id is not" in notes[0]
    assert_substitute(data)
    assert not (data / "smcalflow" / "original" / TRAIN_DIALOGUES).exists()


def test_a_training_file_damaged_after_its_download_is_not_used(
    mirror_files: dict[str, bytes], data: Path
) -> None:
    with serving() as server:
        server.files = mirror_files
        download(server, data)
        (data / "smcalflow" / "original" / TRAIN_DIALOGUES).write_bytes(FILES[TRAIN_DIALOGUES][:-1])
        server.files = without_training_dialogues(mirror_files)
        download(server, data)
        assert_substitute(data)
        server.files = mirror_files
        download(server, data)
    assert_authors(data)


def test_an_interrupted_training_file_is_resumed_by_the_next_download(
    mirror_files: dict[str, bytes], data: Path
) -> None:
    with serving() as server:
        server.files = mirror_files
        others = [Misbehaviour()] * (len(FILES) - 1)
        server.next = [*others, Misbehaviour(drop_after=50), *[Misbehaviour(status=503)] * 3]
        assert "cannot be downloaded: the server returned 503" in download(server, data).notes[0]
        assert_substitute(data)
        server.requests.clear()
        download(server, data)
        assert server.ranges == ["bytes=50-"]
    assert_authors(data)


@pytest.mark.parametrize("turn", [TurnRow("train-9", 0, "", ""), TRAINING[0], VALIDATION[0]], ids=lambda t: t.id)
def test_a_listed_turn_that_is_not_in_the_training_file_is_an_error(
    turn: TurnRow, tmp_path: Path, data: Path
) -> None:
    source = folder_with(tmp_path / "source", {**FILES, TRAIN_LIST: to_id_list([*AUTHORS, turn])})
    message = f"turn {turn.id} is not among the usable turns of {source / TRAIN_DIALOGUES}"
    with pytest.raises(DataError, match=message) as caught:
        SMCALFLOW.import_from(source, data)
    assert (caught.value.path, caught.value.line) == (source / TRAIN_LIST, 3)
    assert not data.exists()


LINES = to_dialogue_lines(TRAINING)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(FILES[TRAIN_DIALOGUES][:-9], "not a complete gzip file", id="incomplete"),
        pytest.param(gzip.compress(LINES[:-9]), "not valid JSON", id="half a line"),
        pytest.param(gzip.compress(b"\xff"), "not UTF-8 text", id="not UTF-8"),
        pytest.param(gzip.compress(LINES.replace(b"(last)", b"(last")), "not an S-expression", id="bad program"),
        pytest.param(gzip.compress(b""), "the file has none of the expected turns", id="empty"),
    ],
)
def test_a_damaged_training_file_in_a_folder_is_an_error(
    content: bytes, message: str, tmp_path: Path, data: Path
) -> None:
    source = folder_with(tmp_path / "source", {**FILES, TRAIN_DIALOGUES: content})
    with pytest.raises(DataError, match=message) as caught:
        SMCALFLOW.import_from(source, data)
    assert caught.value.path == source / TRAIN_DIALOGUES
    assert not data.exists()


def test_the_size_of_the_unpacked_training_file_is_limited(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = folder_with(tmp_path / "source", FILES)
    limit = max(len(to_dialogue_lines(VALIDATION)), len(LINES))
    monkeypatch.setenv("FEWPARSE_MAX_FILE_BYTES", str(limit))
    SMCALFLOW.import_from(source, data)
    large = LINES + to_dialogue_lines([TurnRow("train-3", 0, "x" * limit, "(f)")])
    (source / TRAIN_DIALOGUES).write_bytes(gzip.compress(large))
    with pytest.raises(DataError, match=f"unpacked larger than {limit:,} bytes") as caught:
        SMCALFLOW.import_from(source, data)
    assert "FEWPARSE_MAX_FILE_BYTES" in str(caught.value.hint)


def test_training_dialogues_beside_single_turns_are_rejected(tmp_path: Path, data: Path) -> None:
    files = {"train_300.jsonl": to_turn_lines(SUBSTITUTE), TRAIN_DIALOGUES: FILES[TRAIN_DIALOGUES]}
    with pytest.raises(DataError, match="the published dialogues are also in"):
        SMCALFLOW.import_from(folder_with(tmp_path / "source", files), data)


@pytest.mark.parametrize(
    ("train", "full", "note"),
    [
        (AUTHORS, VALIDATION, THE_AUTHORS),
        (SUBSTITUTE, VALIDATION[2:6], THE_SUBSTITUTE),
        (SUBSTITUTE[::-1], VALIDATION[2:6], "training examples: neither the authors' nor the substitute"),
    ],
    ids=["authors", "substitute", "others"],
)
def test_single_turns_are_recognised_by_their_ids(
    train: list[TurnRow], full: list[TurnRow], note: str, tmp_path: Path, data: Path
) -> None:
    rows = {"train_300.jsonl": train, "dev_200.jsonl": VALIDATION[2:4], "dev_all.jsonl": VALIDATION}
    lines = {name: to_turn_lines(turns) for name, turns in rows.items()}
    SMCALFLOW.import_from(folder_with(tmp_path / "source", lines), data)
    assert_stored(data, train, full, note)


def test_of_other_dialogues_nothing_but_the_name_is_read() -> None:
    lines = [*LINES.decode().split("\n"), '{"dialogue_id": "train-9", "turns": "any"}']
    found = list(read_dialogues(lines, Path("some"), {turn.id for turn in AUTHORS}))
    assert [turn.id for turn in found] == ["train-0,1", "train-1,1"]


def test_the_commands_show_which_training_examples_are_used(tmp_path: Path, data: Path) -> None:
    SMCALFLOW.import_from(folder_with(tmp_path / "source", FILES), data)
    listed = fewparse("data", "list", "--data", str(data)).out
    assert f"smcalflow: 2 train, 2 test, 1 dev_100, 8 full, in {data / 'smcalflow'}; {THE_AUTHORS}\n" in listed
    checked = fewparse("check", "smcalflow", "--data", str(data), "--model", "none").out
    assert f"note: data: {THE_AUTHORS}\n" in checked
    options = ("--target", "program", "--constraint", "induced", "--no-copy", "--decoder", "greedy")
    evaluated = fewparse("eval", "smcalflow", "--data", str(data), *options)
    assert f"; {THE_AUTHORS}; " in " ".join(evaluated.out.split()), evaluated.err
