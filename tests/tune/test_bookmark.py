"""How far a tuning has come: kept whole or not at all, and only for the same work."""

import errno
import os
from pathlib import Path

import pytest
import torch

from fewparse.errors import TuningError
from fewparse.tune.checkpoint import Bookmark

STATE = {"trials": [(3, 0.5)], "refitting": True, "course": {"done": 2, "pupil": [torch.arange(6.0)]}}
FOREIGN = {
    "empty": b"",
    "text": b"hello, this is a note of mine\n",
    "pickle": b"\x80\x02}q\x00.",
    "broken pickle": b"h\x05",
    "zip": b"PK\x03\x04" + bytes(100),
    "gguf": b"GGUF\x03\x00\x00\x00" + bytes(100),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "adapter.tuning"
    Bookmark(path, "mine").save(STATE)
    return path


def same(kept: object) -> bool:
    """Whether that is the state; tensors have no equality of their own."""
    return repr(kept) == repr(STATE)


def test_what_was_saved_last_is_loaded(tmp_path: Path) -> None:
    bookmark = Bookmark(tmp_path / "new" / "adapter.tuning", "mine")
    assert bookmark.load() is None
    bookmark.save({"trials": []})
    assert bookmark.load() == {"trials": []}
    bookmark.save(STATE)
    assert same(bookmark.load())
    bookmark.remove()
    assert bookmark.load() is None
    bookmark.remove()


def test_a_bookmark_of_other_work_does_not_count(file: Path) -> None:
    assert Bookmark(file, "yours").load() is None
    assert same(Bookmark(file, "mine").load())


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_another_kind_does_not_count(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert Bookmark(file, "mine").load() is None


def test_a_file_that_breaks_off_anywhere_does_not_count(file: Path) -> None:
    whole = file.read_bytes()
    for length in range(0, len(whole), 13):
        file.write_bytes(whole[:length])
        assert Bookmark(file, "mine").load() is None


def test_a_file_with_a_single_wrong_bit_does_not_count(file: Path) -> None:
    whole = file.read_bytes()
    for at in range(0, len(whole), 17):
        damaged = bytearray(whole)
        damaged[at] ^= 4
        file.write_bytes(damaged)
        assert Bookmark(file, "mine").load() is None


def test_a_folder_in_its_place_does_not_count_and_cannot_be_overwritten(tmp_path: Path) -> None:
    place = tmp_path / "adapter.tuning"
    place.mkdir()
    bookmark = Bookmark(place, "mine")
    assert bookmark.load() is None
    with pytest.raises(TuningError, match=r"adapter\.tuning cannot be written: Is a directory"):
        bookmark.save(STATE)
    assert os.listdir(tmp_path) == ["adapter.tuning"]


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_last_state_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str, fault: BaseException
) -> None:
    def fail(*arguments: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises((TuningError, KeyboardInterrupt)):
            Bookmark(file, "mine").save({"trials": []})
    assert same(Bookmark(file, "mine").load())
    assert list(file.parent.iterdir()) == [file]
