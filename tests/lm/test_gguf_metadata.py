"""What a GGUF file says of itself: read as it was written, or refused, whatever the bytes are."""

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import CorruptModel, ModelUnavailable
from fewparse.lm.gguf import MOST_ENTRIES, read_metadata
from support.adapters import close

Typed = tuple[str, Any]
MOST_MEMORY = 8 << 20

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = {
    "STRING": texts,
    "BOOL": st.booleans(),
    "FLOAT32": st.floats(width=32, allow_nan=False),
    "FLOAT64": st.floats(allow_nan=False),
    **{f"UINT{n}": st.integers(0, 2**n - 1) for n in (8, 16, 32, 64)},
    **{f"INT{n}": st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)},
}
kinds = st.sampled_from(sorted(values))
single = kinds.flatmap(lambda kind: st.tuples(st.just(kind), values[kind]))
several = kinds.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(values[kind], min_size=1)))
EVERYTHING: dict[str, Typed] = {
    "a text": ("STRING", "Zoë 🍐\n\0"),
    "no text": ("STRING", ""),
    "ключ": ("BOOL", True),
    "bytes": ("UINT8", [0, 255]),
    "small": ("INT8", -128),
    "short": ("UINT16", 65_535),
    "steps": ("INT16", [-32_768, 32_767]),
    "count": ("UINT32", 2**32 - 1),
    "depth": ("INT32", -(2**31)),
    "large": ("UINT64", 2**64 - 1),
    "debt": ("INT64", -(2**63)),
    "half": ("FLOAT32", 0.5),
    "third": ("FLOAT64", [1 / 3, float("-inf")]),
    "names": ("STRING", ["pear", "", "Äpfel"]),
    "truths": ("BOOL", [True, False]),
}


def write(path: Path, said: dict[str, Typed]) -> Path:
    writer = gguf.GGUFWriter(str(path), "llama")
    for key, (kind, value) in said.items():
        kind = gguf.GGUFValueType[kind]
        several = isinstance(value, list)
        writer.add_key_value(key, value, gguf.GGUFValueType.ARRAY if several else kind, kind if several else None)
    close(writer)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with every type of value."""
    return write(tmp_path_factory.mktemp("gguf") / "whole.gguf", EVERYTHING).read_bytes()


def begin(entries: int = 1, version: int = 3) -> bytes:
    """How a file with so many keys and no tensors begins."""
    return b"GGUF" + struct.pack("<IQQ", version, 0, entries)


def text(said: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(said) if length is None else length) + said


def listed(inner: int, count: int) -> bytes:
    """The key of a list and how the list begins."""
    return text(b"key") + struct.pack("<IIQ", 9, inner, count)


def read(path: Path, content: bytes) -> dict[str, Any]:
    path.write_bytes(content)
    return read_metadata(path)


def refused(path: Path, content: bytes) -> bool:
    """Whether such a file is refused; any other error than the two that are meant for it is a defect."""
    try:
        read(path, content)
    except (CorruptModel, ModelUnavailable):
        return True
    return False


@given(said=st.dictionaries(texts, single | several))
def test_all_is_read_as_it_was_written(said: dict[str, Typed], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write(tmp_path_factory.getbasetemp() / "any.gguf", said)
    written = {key: value for key, (_, value) in said.items()}
    assert read_metadata(path) == {"general.architecture": "llama"} | written


def test_every_type_of_value_is_read(tmp_path: Path, whole: bytes) -> None:
    found = read(tmp_path / "whole.gguf", whole)
    assert found.pop("general.architecture") == "llama"
    assert found == {key: value for key, (_, value) in EVERYTHING.items()}
    assert [type(found[key]) for key in ("ключ", "count", "half")] == [bool, int, float]


def test_what_follows_the_keys_is_not_looked_at(tmp_path: Path) -> None:
    assert read(tmp_path / "file.gguf", begin(entries=0) + b"\xff" * 100) == {}


def test_a_list_may_be_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "file.gguf", begin() + listed(inner=8, count=0)) == {"key": []}


def test_a_file_that_ends_anywhere_before_its_last_value_is_refused(tmp_path: Path, whole: bytes) -> None:
    file = tmp_path / "file.gguf"
    needed = next(size for size in range(len(whole), 0, -1) if refused(file, whole[: size - 1]))
    assert needed > len(whole) - 32  # what the writer adds to round the size
    assert all(refused(file, whole[:size]) for size in range(needed))


def test_one_flipped_bit_anywhere_is_read_or_refused_within_a_little_memory(tmp_path: Path, whole: bytes) -> None:
    file = tmp_path / "file.gguf"
    outcomes = set()
    tracemalloc.start()
    try:
        for at in range(len(whole)):
            for bit in range(8):
                damaged = bytearray(whole)
                damaged[at] ^= 1 << bit
                outcomes.add(refused(file, bytes(damaged)))
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()
    assert outcomes == {True, False}


@given(content=st.binary(max_size=200), headed=st.booleans())
def test_random_bytes_are_read_or_refused(
    content: bytes, headed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "random.gguf"
    was_refused = refused(file, begin()[:8] + content if headed else content)
    assert was_refused or headed


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it ends too early"),
        (b"<html>not a model</html>", "it does not begin as one"),
        (b"FUGG" + begin()[4:], "it does not begin as one"),
        (begin(version=1), "it is of version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "it is of version 50331648"),
        (begin(entries=2**63), f"it claims {2**63} entries"),
        (begin(entries=MOST_ENTRIES), "it ends too early"),
        (begin() + text(b"key", length=2**64 - 1), f"it claims {2**64 - 1} entries"),
        (begin() + text(b"\xff"), "a text is not UTF-8"),
        (begin() + text(b"key") + struct.pack("<I", 13), "a value is of the unknown type 13"),
        (begin() + listed(inner=13, count=1), "a value is of the unknown type 13"),
        (begin() + listed(inner=9, count=1), "a list is in a list"),
        (begin() + listed(inner=0, count=2**40), f"it claims {2**40} entries"),
        (begin() + listed(inner=8, count=MOST_ENTRIES), "it ends too early"),
    ],
)
def test_the_reason_of_a_refusal_is_told(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "file.gguf"
    with pytest.raises(CorruptModel) as caught:
        read(file, content)
    assert caught.value.message == f"{file} is not a GGUF file: {reason}"
    assert caught.value.hint


def test_a_missing_file_and_a_folder_are_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"nowhere\.gguf cannot be read: No such file"):
        read_metadata(tmp_path / "nowhere.gguf")
    with pytest.raises(ModelUnavailable, match=r"cannot be read: Is a directory"):
        read_metadata(tmp_path)
