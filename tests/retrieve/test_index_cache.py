"""Indexes of large pools on disk: the same results, and a file that cannot be used is made again."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from fewparse.lm.load import NamedModel
from fewparse.lm.usage import Usage
from fewparse.retrieve import index_cache
from fewparse.retrieve.bm25 import Bm25Retriever
from fewparse.retrieve.embedding import EmbeddingRetriever, Vectors, unit
from fewparse.retrieve.retriever import Pool, Retriever

MODEL = NamedModel("embedded")
POOL = [f"move meeting {i} to room {i % 7}" for i in range(40)]
QUERY = "a room for meeting 12, straße"


@pytest.fixture(autouse=True)
def small_pools_are_stored(isolated_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_cache, "MIN_UTTERANCES", 10)


@pytest.fixture(params=[Bm25Retriever, EmbeddingRetriever])
def kind(request: pytest.FixtureRequest) -> type[Bm25Retriever | EmbeddingRetriever]:
    found: type[Bm25Retriever | EmbeddingRetriever] = request.param
    return found


def rank(kind: type[Bm25Retriever | EmbeddingRetriever], texts: list[str] = POOL) -> list[int]:
    retriever: Retriever = kind(Pool(texts, MODEL))
    return retriever.rank(QUERY, Usage())


def stored() -> list[Path]:
    return sorted(index_cache.index_folder().glob("*.npz"))


def test_a_stored_index_ranks_like_a_new_one_and_is_not_computed_again(
    kind: type[Bm25Retriever | EmbeddingRetriever],
) -> None:
    first = rank(kind)
    computed = "fewparse.retrieve.bm25.indexed", "fewparse.retrieve.embedding.unit"
    assert len(stored()) == 1
    with mock.patch(computed[0]) as indexed, mock.patch(computed[1], side_effect=unit) as units:
        assert rank(kind) == first
    assert not indexed.called
    assert units.call_count <= 1  # that of the query


def test_pools_that_differ_have_indexes_of_their_own(kind: type[Bm25Retriever | EmbeddingRetriever]) -> None:
    rank(kind)
    assert rank(kind, POOL[::-1])[0] == len(POOL) - 1 - rank(kind)[0]
    assert len(stored()) == 2


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def replace_by_another(path: Path) -> None:
    np.savez(path, key=np.frombuffer(b"another", np.uint8), vectors=np.zeros((40, 256)))


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("spoil", [damage, cut, replace_by_another, empty])
def test_a_file_that_is_not_the_index_is_made_again_and_said(
    spoil: Callable[[Path], None], kind: type[Bm25Retriever | EmbeddingRetriever]
) -> None:
    first = rank(kind)
    spoil(stored()[0])
    with pytest.warns(UserWarning, match="cannot be used and is made again"):
        assert rank(kind) == first
    assert rank(kind) == first


def test_an_index_that_cannot_be_stored_is_a_warning(kind: type[Bm25Retriever | EmbeddingRetriever]) -> None:
    expected = rank(kind)
    stored()[0].unlink()
    full = OSError(28, "No space left on device")
    with mock.patch("numpy.savez", side_effect=full), pytest.warns(UserWarning, match="is not stored: No space"):
        assert rank(kind) == expected
    assert stored() == []


def test_of_two_processes_one_makes_the_index() -> None:
    program = (
        "import sys; from fewparse.retrieve import index_cache, bm25; index_cache.MIN_UTTERANCES = 10\n"
        "made = bm25.indexed\n"
        "def slow(texts):\n    import time; print('made', flush=True); time.sleep(0.3); return made(texts)\n"
        "bm25.indexed = slow\n"
        "from fewparse.retrieve.retriever import Pool\n"
        f"bm25.Bm25Retriever(Pool({POOL!r}, None))\n"
    )
    command = [sys.executable, "-c", program]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in running]
    assert [err for _, err in outputs] == [b"", b""]
    assert b"".join(out for out, _ in outputs) == b"made\n"


def test_the_oldest_files_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_cache, "MAX_FILES", 2)
    for i in range(4):
        rank(Bm25Retriever, [*POOL, f"another {i}"])
    assert len(stored()) == 2


def test_vectors_of_other_encoders_are_not_stored() -> None:
    class Constant:
        def encode(self, texts: Sequence[str]) -> Vectors:
            return np.ones((len(texts), 2), np.float32)

    assert EmbeddingRetriever(Pool(POOL, MODEL), Constant()).rank(QUERY, Usage()) == list(range(len(POOL)))
    assert stored() == []
