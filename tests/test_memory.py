"""Freed memory returns to the operating system; garbage collection is paused while it is asked for."""

import gc
import sys

import pytest

from fewparse.memory import Collection, MemoryTrimmer, resident_bytes

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


def test_garbage_is_collected_again_after_the_last_of_overlapping_pauses() -> None:
    collection = Collection()
    one, other = collection.paused(), collection.paused()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    still_paused = not gc.isenabled()
    other.__exit__(None, None, None)
    assert still_paused
    assert gc.isenabled()


def test_garbage_collection_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with Collection().paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
