"""Freed memory returns to the operating system."""

import sys

import pytest

from fewparse.memory import MemoryTrimmer, resident_bytes

BLOCKS, BLOCK_BYTES = 2_000, 100_000


def test_freed_memory_is_returned_once_the_process_has_grown() -> None:
    if sys.platform != "linux":
        pytest.skip("only glibc keeps the memory, and only Linux reports its size")
    trimmer = MemoryTrimmer()
    trimmer.trim()
    before = resident_bytes()
    assert before is not None
    blocks = [bytearray(BLOCK_BYTES) for _ in range(BLOCKS)]
    kept = blocks[::100]  # between the freed ones, so that the C library cannot return these by itself
    del blocks
    trimmer.trim()
    after = resident_bytes()
    assert after is not None
    assert len(kept) == BLOCKS // 100
    assert after - before < BLOCKS * BLOCK_BYTES / 4


def test_nothing_is_done_where_the_size_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewparse.memory.resident_bytes", lambda: None)
    monkeypatch.setattr("fewparse.memory.malloc_trim", lambda: pytest.fail("not called"))
    MemoryTrimmer().trim()
