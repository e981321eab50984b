"""The files of a tuning run are the old ones or the new ones, whatever operation fails."""

import os
from pathlib import Path

import pytest

pytest.importorskip("torch")

from fewparse.tune.checkpoint import Checkpoint, replacing
from support.faults import FAULTS, Fault, with_each_fault


@pytest.mark.parametrize("fault", FAULTS)
def test_a_checkpoint_is_the_old_one_or_the_new_one(fault: Fault, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "adapter.tuning", "key")

    def check(done: bool) -> None:
        state = checkpoint.load()
        assert state in (({"epoch": 2},) if done else ({"epoch": 1}, {"epoch": 2}))
        checkpoint.save({"epoch": 3})
        assert checkpoint.load() == {"epoch": 3}

    with_each_fault(fault, lambda: checkpoint.save({"epoch": 1}), lambda: checkpoint.save({"epoch": 2}), check)


@pytest.mark.parametrize("fault", FAULTS)
def test_an_adapter_is_the_old_one_or_the_new_one(fault: Fault, tmp_path: Path) -> None:
    path = tmp_path / "adapter.gguf"

    def write(content: bytes) -> None:
        with replacing(path) as temporary, temporary.open("wb") as file:
            for start in range(0, len(content), 3):
                file.write(content[start : start + 3])
                file.flush()

    def check(done: bool) -> None:
        assert path.read_bytes() in ((b"new adapter",) if done else (b"old", b"new adapter"))
        write(b"next")
        assert path.read_bytes() == b"next"

    with_each_fault(fault, lambda: write(b"old"), lambda: write(b"new adapter"), check)


def test_a_checkpoint_that_is_a_pipe_is_ignored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert Checkpoint(tmp_path / "pipe", "key").load() is None
