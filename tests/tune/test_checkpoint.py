"""Checkpoints: written atomically, and loaded only if undamaged and of the same run."""

import errno
import os
from pathlib import Path

import pytest
import torch

from fewparse.errors import TuningError
from fewparse.tune.checkpoint import Checkpoint

STATE = {"correct_by_epoch": [3], "refitting": True, "trainer": {"epochs_done": 2, "weights": [torch.arange(6.0)]}}
FOREIGN = {
    "empty": b"",
    "text": b"hello, this is a note\n",
    "pickle": b"\x80\x02}q\x00.",
    "broken pickle": b"h\x05",
    "zip": b"PK\x03\x04" + bytes(100),
    "gguf": b"GGUF\x03\x00\x00\x00" + bytes(100),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "adapter.tuning"
    Checkpoint(path, "key").save(STATE)
    return path


def is_saved_state(state: object) -> bool:
    """Whether a state equals `STATE`; tensors cannot be compared with `==`."""
    return repr(state) == repr(STATE)


def test_the_last_saved_state_is_loaded(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "new" / "adapter.tuning", "key")
    assert checkpoint.load() is None
    checkpoint.save({"correct_by_epoch": []})
    assert checkpoint.load() == {"correct_by_epoch": []}
    checkpoint.save(STATE)
    assert is_saved_state(checkpoint.load())
    checkpoint.remove()
    assert checkpoint.load() is None
    checkpoint.remove()


def test_a_checkpoint_with_another_key_is_ignored(file: Path) -> None:
    assert Checkpoint(file, "another key").load() is None
    assert is_saved_state(Checkpoint(file, "key").load())


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_file_of_another_format_is_ignored(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert Checkpoint(file, "key").load() is None


def test_a_truncated_file_is_ignored(file: Path) -> None:
    content = file.read_bytes()
    for length in range(0, len(content), 13):
        file.write_bytes(content[:length])
        assert Checkpoint(file, "key").load() is None


def test_a_file_with_one_flipped_bit_is_ignored(file: Path) -> None:
    content = file.read_bytes()
    for at in range(0, len(content), 17):
        damaged = bytearray(content)
        damaged[at] ^= 4
        file.write_bytes(damaged)
        assert Checkpoint(file, "key").load() is None


def test_a_folder_at_the_path_is_ignored_and_cannot_be_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "adapter.tuning"
    folder.mkdir()
    checkpoint = Checkpoint(folder, "key")
    assert checkpoint.load() is None
    with pytest.raises(TuningError, match=r"adapter\.tuning cannot be written: it is a folder"):
        checkpoint.save(STATE)
    assert os.listdir(tmp_path) == ["adapter.tuning"]


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_save_leaves_the_last_state_and_no_temporary_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str, fault: BaseException
) -> None:
    def fail(*arguments: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises((TuningError, KeyboardInterrupt)):
            Checkpoint(file, "key").save({"correct_by_epoch": []})
    assert is_saved_state(Checkpoint(file, "key").load())
    assert list(file.parent.iterdir()) == [file]
