"""Storing a dataset is all or nothing, whatever operation fails; damage is found and shown."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from fewparse import load_domain, replacement
from fewparse.datasets import storage
from fewparse.datasets.overnight.dataset import OVERNIGHT
from fewparse.datasets.smcalflow.dataset import SMCALFLOW
from fewparse.errors import DataUnavailable
from fewparse.example import Example
from support.cli_runner import fewparse
from support.faults import FAULTS, Fault, with_each_fault
from support.file_server import original_form, original_name
from support.smcalflow_files import TurnRow, to_turn_lines

RECIPES = "overnight/recipes"


def write_overnight(folder: Path, word: str, *domains: str) -> Path:
    """Write small domains of Overnight as SEMPRE files; the word is in all utterances."""
    folder.mkdir(parents=True)
    for domain in domains or ("recipes", "calendar"):
        for part, count in (("train", 3), ("test", 1)):
            examples = [Example(f"{word} {i}", "(call f x)", "canonical") for i in range(count)]
            (folder / original_name(domain, part)).write_text(original_form(examples))
    return folder


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write_overnight(tmp_path / "old", "old")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return write_overnight(tmp_path / "new", "new")


def words(data: Path) -> set[str]:
    """The words of the utterances in all stored files."""
    stored = OVERNIGHT.stored(data)
    assert [(domain.damage, domain.train, domain.test) for domain in stored] == [(None, 3, 1)] * len(stored)
    loaded = [load_domain(domain.domain, data) for domain in stored]
    examples = (e for domain in loaded for e in (*domain.examples, *domain.test_examples))
    return {example.utterance.split()[0] for example in examples}


def no_exchange(first: Path, second: Path) -> bool:
    """The system call that exchanges two folders, on a system without it."""
    return False


@pytest.mark.parametrize("atomic_exchange", [True, False], ids=["exchange", "two renames"])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_import_that_fails_anywhere_leaves_the_old_dataset_or_the_new_one(
    fault: Fault, atomic_exchange: bool, old: Path, new: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    adapter = data / RECIPES / "adapter-program.gguf"

    def prepare() -> None:
        shutil.rmtree(data, ignore_errors=True)
        OVERNIGHT.import_from(old, data)
        adapter.write_text("tuned")

    def check(done: bool) -> None:
        found = words(data)
        assert found in (({"new"},) if done else ({"old"}, {"new"}))
        assert adapter.read_text() == "tuned", "other files stay"
        OVERNIGHT.import_from(new, data)
        assert words(data) == {"new"}
        assert {path.name for path in data.iterdir()} == {"overnight", ".overnight.lock"}, "nothing is left over"

    with patch.object(replacement, "exchange", replacement.exchange if atomic_exchange else no_exchange):
        operations = with_each_fault(fault, prepare, lambda: OVERNIGHT.import_from(new, data), check)
    assert operations > 20


@pytest.mark.parametrize("fault", FAULTS)
def test_a_first_import_that_fails_anywhere_stores_everything_or_nothing(
    fault: Fault, new: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"

    def check(done: bool) -> None:
        assert words(data) in (({"new"},) if done else (set(), {"new"}))
        OVERNIGHT.import_from(new, data)
        assert words(data) == {"new"}

    with_each_fault(
        fault,
        lambda: shutil.rmtree(data, ignore_errors=True),
        lambda: OVERNIGHT.import_from(new, data),
        check,
    )


def test_the_exchange_of_folders_is_one_system_call_where_there_is_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    exchanged = replacement.exchange(tmp_path / "a", tmp_path / "b")
    assert exchanged == (tmp_path / "a" / "b").exists()
    assert exchanged or not sys.platform.startswith("linux")


def test_other_files_are_kept_without_hard_links_and_behind_symbolic_links(
    old: Path, new: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "disk").mkdir()
    (data / "overnight").symlink_to(tmp_path / "disk" / "overnight")
    OVERNIGHT.import_from(old, data)
    (data / "overnight" / "note").write_text("mine")
    (data / "overnight" / "link").symlink_to(tmp_path)
    with patch.object(os, "link", side_effect=OSError(errno.EPERM, "no links")):
        OVERNIGHT.import_from(new, data)
    assert words(data) == {"new"}
    assert (data / "overnight").is_symlink()
    assert (data / "overnight" / "note").read_text() == "mine"
    assert (data / "overnight" / "link").is_symlink()


def test_a_second_import_of_some_domains_leaves_the_others(old: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    OVERNIGHT.import_from(old, data)
    OVERNIGHT.import_from(write_overnight(tmp_path / "some", "new", "recipes"), data)
    assert words(data) == {"old", "new"}
    assert {e.utterance.split()[0] for e in load_domain(RECIPES, data).examples} == {"new"}


def unlinked(path: Path) -> Path:
    path.unlink()
    return path


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (unlinked, "test.jsonl is missing"),
    "cut off": (lambda path: os.truncate(path, 20), "test.jsonl has 20 bytes"),
    "changed": (lambda path: path.write_text(path.read_text().replace("old", "odd")), "test.jsonl was changed"),
    "a folder": (lambda path: os.mkdir(unlinked(path)), "test.jsonl "),
    "a pipe": (lambda path: os.mkfifo(unlinked(path)), "test.jsonl has 0 bytes"),
    "a link to itself": (lambda path: os.symlink(path, unlinked(path)), "test.jsonl cannot be read: "),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_listed_and_an_error_when_the_domain_is_loaded(
    damage: Callable[[Path], object], message: str, old: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    OVERNIGHT.import_from(old, data)
    damage(data / RECIPES / "test.jsonl")
    listed = fewparse("data", "list", "--data", str(data))
    assert listed.code == 0
    assert f"{RECIPES}: damaged: {message}" in listed.out
    assert "overnight/calendar: 3 train, 1 test" in listed.out
    with pytest.raises(DataUnavailable, match=f"{RECIPES} in .* is damaged: {message}") as raised:
        load_domain(RECIPES, data)
    assert "Store it again: fewparse data get overnight" in str(raised.value)
    assert load_domain("overnight/calendar", data).examples
    OVERNIGHT.import_from(old, data)
    assert words(data) == {"old"}, "the next import repairs it"


MANIFESTS = (
    *("", "[]", "{}", '{"files": []}', '{"files": {"test.jsonl": 1}}', '{"files": {"a": {}}}', "\xff", "[" * 5000),
    '{"files": {"\\u0000": {"size": 1, "sha256": "", "lines": 0}}}',
    '{"files": {"x": ' + "9" * 5000 + "}}",
)


@pytest.mark.parametrize("text", MANIFESTS, ids=lambda text: text[:20])
def test_a_damaged_manifest_is_damage(text: str, old: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    OVERNIGHT.import_from(old, data)
    (data / RECIPES / "manifest.json").write_bytes(text.encode("latin-1"))
    assert f"{RECIPES}: damaged: " in fewparse("data", "list", "--data", str(data)).out
    with pytest.raises(DataUnavailable, match="is damaged"):
        load_domain(RECIPES, data)
    OVERNIGHT.import_from(old, data)
    assert words(data) == {"old"}


def test_a_dataset_stored_by_an_earlier_version_loads_and_is_listed_as_not_verified(
    old: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    OVERNIGHT.import_from(old, data)
    for domain in ("recipes", "calendar"):
        (data / "overnight" / domain / "manifest.json").unlink()
    assert words(data) == {"old"}
    listed = fewparse("data", "list", "--data", str(data)).out
    assert listed.count("3 train, 1 test, ") == listed.count("not verified, stored by an earlier version") == 2


def test_the_manifest_keeps_files_of_earlier_imports(tmp_path: Path) -> None:
    source, data = tmp_path / "source", tmp_path / "data"
    source.mkdir()
    turns = [TurnRow(f"dialogue-{i}", 0, f"utterance {i}", f"(f {i})") for i in range(3)]
    for name, chosen in (("train_300", turns[:1]), ("dev_200", turns[1:2])):
        (source / f"{name}.jsonl").write_bytes(to_turn_lines(chosen))
    (source / "types.csv").write_text("a")
    SMCALFLOW.import_from(source, data)
    (source / "types.csv").unlink()
    SMCALFLOW.import_from(source, data)
    assert SMCALFLOW.stored(data)[0].damage is None
    (data / "smcalflow" / "grammar" / "types.csv").write_text("b")
    assert SMCALFLOW.stored(data)[0].damage == "grammar/types.csv was changed"


HOLDER = """
import sys
from pathlib import Path
from fewparse.datasets.storage import dataset_lock
with dataset_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_imports_of_one_dataset_wait_for_each_other_and_a_killed_one_holds_nothing(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setattr(storage, "LOCK_SECONDS", 0.2)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(data / "overnight")], stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(DataUnavailable, match=f"another process stores data in .*process {process.pid}"):
            OVERNIGHT.import_from(old, data)
        process.kill()
    OVERNIGHT.import_from(old, data)
    assert words(data) == {"old"}
