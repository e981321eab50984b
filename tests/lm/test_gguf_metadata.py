"""The metadata of GGUF files: read as written, or rejected, whatever the bytes are."""

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import CorruptModel, ModelUnavailable
from fewparse.lm.gguf import MAX_ENTRIES, read_metadata
from support.adapters import close

Typed = tuple[str, Any]
MAX_MEMORY = 8 << 20

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


def write(path: Path, metadata: dict[str, Typed]) -> Path:
    writer = gguf.GGUFWriter(str(path), "llama")
    for key, (kind, value) in metadata.items():
        kind = gguf.GGUFValueType[kind]
        several = isinstance(value, list)
        writer.add_key_value(key, value, gguf.GGUFValueType.ARRAY if several else kind, kind if several else None)
    close(writer)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with every type of value."""
    return write(tmp_path_factory.mktemp("gguf") / "whole.gguf", EVERYTHING).read_bytes()


def header(entries: int = 1, version: int = 3) -> bytes:
    """The start of a file with this many keys and no tensors."""
    return b"GGUF" + struct.pack("<IQQ", version, 0, entries)


def string(data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(data) if length is None else length) + data


def array(inner: int, count: int) -> bytes:
    """A key and the start of an array."""
    return string(b"key") + struct.pack("<IIQ", 9, inner, count)


def read(path: Path, content: bytes) -> dict[str, Any]:
    path.write_bytes(content)
    return read_metadata(path)


def is_rejected(path: Path, content: bytes) -> bool:
    """Whether a file with this content is rejected; other errors than the two expected ones are raised."""
    try:
        read(path, content)
    except (CorruptModel, ModelUnavailable):
        return True
    return False


@given(metadata=st.dictionaries(texts, single | several))
def test_metadata_is_read_as_written(metadata: dict[str, Typed], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write(tmp_path_factory.getbasetemp() / "any.gguf", metadata)
    written = {key: value for key, (_, value) in metadata.items()}
    assert read_metadata(path) == {"general.architecture": "llama"} | written


def test_every_type_of_value_is_read(tmp_path: Path, whole: bytes) -> None:
    found = read(tmp_path / "whole.gguf", whole)
    assert found.pop("general.architecture") == "llama"
    assert found == {key: value for key, (_, value) in EVERYTHING.items()}
    assert [type(found[key]) for key in ("ключ", "count", "half")] == [bool, int, float]


def test_the_rest_of_the_file_is_not_read(tmp_path: Path) -> None:
    assert read(tmp_path / "file.gguf", header(entries=0) + b"\xff" * 100) == {}


def test_an_array_may_be_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "file.gguf", header() + array(inner=8, count=0)) == {"key": []}


def test_a_file_truncated_before_its_last_value_is_rejected(tmp_path: Path, whole: bytes) -> None:
    file = tmp_path / "file.gguf"
    needed = next(size for size in range(len(whole), 0, -1) if is_rejected(file, whole[: size - 1]))
    assert needed > len(whole) - 32  # the padding of the writer
    assert all(is_rejected(file, whole[:size]) for size in range(needed))


def test_a_file_with_a_flipped_bit_is_read_or_rejected_with_little_memory(tmp_path: Path, whole: bytes) -> None:
    file = tmp_path / "file.gguf"
    outcomes = set()
    tracemalloc.start()
    try:
        for at in range(len(whole)):
            for bit in range(8):
                damaged = bytearray(whole)
                damaged[at] ^= 1 << bit
                outcomes.add(is_rejected(file, bytes(damaged)))
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
    finally:
        tracemalloc.stop()
    assert outcomes == {True, False}


@given(content=st.binary(max_size=200), headed=st.booleans())
def test_random_bytes_are_read_or_rejected(
    content: bytes, headed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "random.gguf"
    rejected = is_rejected(file, header()[:8] + content if headed else content)
    assert rejected or headed


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is truncated"),
        (b"<html>not a model</html>", "it does not start with GGUF"),
        (b"FUGG" + header()[4:], "it does not start with GGUF"),
        (header(version=1), "version 1 is not supported"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "version 50331648 is not supported"),
        (header(entries=2**63), f"it declares {2**63} entries"),
        (header(entries=MAX_ENTRIES), "it is truncated"),
        (header() + string(b"key", length=2**64 - 1), f"it declares {2**64 - 1} entries"),
        (header() + string(b"\xff"), "a string is not UTF-8"),
        (header() + string(b"key") + struct.pack("<I", 13), "a value has the unknown type 13"),
        (header() + array(inner=13, count=1), "a value has the unknown type 13"),
        (header() + array(inner=9, count=1), "an array contains an array"),
        (header() + array(inner=0, count=2**40), f"it declares {2**40} entries"),
        (header() + array(inner=8, count=MAX_ENTRIES), "it is truncated"),
    ],
)
def test_the_error_gives_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
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
