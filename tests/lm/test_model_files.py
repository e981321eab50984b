"""Model files: damaged ones are errors before they reach this process, and a check is not repeated."""

import json
import math
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from fewparse.errors import CorruptModel, ModelError, ModelUnavailable
from fewparse.lm import checked_files, model_file, trial, weights
from fewparse.lm.adapter import read_adapter
from fewparse.lm.catalogue import SMOLLM2
from fewparse.lm.checked_files import RECORD, checked_sha256, has_passed, record_passed
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.gguf import file_sha256, read_gguf
from fewparse.lm.model_file import check_model
from fewparse.lm.usage import Usage
from support.adapters import close
from support.campaign import sizes
from support.mutations import mutations
from support.prompts import plain_prompt
from support.tiny_model import shapes, write_tiny_model

PROMPT = plain_prompt("Fruits: apple,")
STOP = b"\n"
BLOCK_COUNT, EPSILON = b"llama.block_count", b"llama.attention.layer_norm_rms_epsilon"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a small valid model."""
    return write_tiny_model(tmp_path_factory.mktemp("whole") / "tiny.gguf").read_bytes()


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of another valid model."""
    return write_tiny_model(tmp_path_factory.mktemp("other") / "tiny.gguf", seed=2).read_bytes()


@pytest.fixture
def file(tmp_path: Path, isolated_cache: Path) -> Path:
    """The path of a model to write, with an empty record of checked files."""
    return tmp_path / "some.gguf"


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The models that are tried in another process."""
    paths: list[Path] = []

    def spy(path: Path) -> None:
        paths.append(path)
        trial.try_model(path)

    monkeypatch.setattr(model_file, "try_model", spy)
    return paths


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are hashed."""
    paths: list[Path] = []

    def spy(path: Path) -> str:
        paths.append(path)
        return file_sha256(path)

    monkeypatch.setattr(checked_files, "file_sha256", spy)
    return paths


def number(code: str, value: float) -> bytes:
    """A value of the metadata, after its key: the type and the number."""
    return struct.pack("<I", {"I": 4, "f": 6, "Q": 10}[code]) + struct.pack(f"<{code}", value)


def with_value(content: bytes, key: bytes, value: bytes) -> bytes:
    """Replace a number of four bytes in the metadata."""
    at = content.index(key) + len(key)
    return content[:at] + value + content[at + 8 :]


def query(model: EmbeddedModel) -> float:
    return model.next_tokens(PROMPT, [()], 1, STOP, Usage())[0].end_logprob


def old(path: Path) -> Path:
    """Return a file that was changed a minute ago, so that its hash may be recorded."""
    time = path.stat().st_mtime - 60
    os.utime(path, (time, time))
    return path


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (BLOCK_COUNT, number("I", 0), "llama.block_count is 0"),
        (BLOCK_COUNT, number("I", 3), "it declares 3 blocks and has tensors of 2"),
        (BLOCK_COUNT, number("I", 2**32 - 1), "llama.block_count is 4294967295"),
        (EPSILON, number("f", math.nan), "layer_norm_rms_epsilon is not finite"),
        (EPSILON, number("f", math.inf), "layer_norm_rms_epsilon is not finite"),
        (EPSILON, number("f", 0.0), "not between 0 and 1"),
        (b"llama.context_length", number("I", 0), "llama.context_length is 0"),
        (b"llama.embedding_length", number("I", 2**31), "llama.embedding_length is 2147483648"),
        (b"llama.embedding_length", number("I", 65), "cannot be divided among 4 heads"),
        (b"llama.attention.head_count", number("I", 0), "0 attention heads cannot share"),
        (b"llama.attention.head_count_kv", number("I", 3), "4 attention heads cannot share 3"),
        (b"llama.feed_forward_length", number("I", 97), "ffn_gate.weight has the shape"),
        (b"llama.rope.freq_base", number("f", -1.0), "not positive"),
        (b"llama.rope.dimension_count", number("I", 17), "rope.dimension_count is 17"),
        (b"tokenizer.ggml.bos_token_id", number("I", 1024), "bos_token_id is 1024, and there are 1024 tokens"),
    ],
)
def test_a_value_out_of_range_is_named_before_the_file_is_loaded(
    file: Path, whole: bytes, tried: list[Path], key: bytes, value: bytes, reason: str
) -> None:
    file.write_bytes(with_value(whole, key, value))
    with pytest.raises(CorruptModel, match="cannot be loaded as a GGUF model") as caught:
        EmbeddedModel(file)
    assert reason in caught.value.message
    assert not tried


def table_entry(content: bytes, name: bytes) -> int:
    """Where the number of dimensions of a tensor is."""
    return content.index(struct.pack("<Q", len(name)) + name) + 8 + len(name)


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, struct.pack("<I", 5), "5 dimensions"),
        (4, struct.pack("<Q", 0), "has the shape (0, 1024)"),
        (4, struct.pack("<Q", 2**62), "has the shape"),
        (4, struct.pack("<Q", 2**20), "ends behind the end of the file"),
        (20, struct.pack("<I", 99), "unknown type 99"),
        (20, struct.pack("<I", 12), "of type Q4_K has the shape (64, 1024)"),
        (24, struct.pack("<Q", 1), "is not a multiple of 32"),
        (24, struct.pack("<Q", 2**40), "ends behind the end of the file"),
    ],
)
def test_a_tensor_that_cannot_be_there_is_named(
    file: Path, whole: bytes, tried: list[Path], at: int, value: bytes, reason: str
) -> None:
    start = table_entry(whole, b"token_embd.weight") + at
    file.write_bytes(whole[:start] + value + whole[start + len(value) :])
    with pytest.raises(CorruptModel) as caught:
        EmbeddedModel(file)
    assert reason in caught.value.message
    assert not tried


def test_tensors_may_not_overlap(file: Path, whole: bytes) -> None:
    start = table_entry(whole, b"output_norm.weight") + 16
    file.write_bytes(whole[:start] + struct.pack("<Q", 64) + whole[start + 8 :])
    with pytest.raises(CorruptModel, match="overlaps another one"):
        EmbeddedModel(file)


@pytest.mark.parametrize(
    ("old_name", "new_name", "reason"),
    [
        (b"blk.1.attn_q.weight", b"blk.0.attn_q.weight", "two tensors blk.0.attn_q.weight"),
        (b"general.architecture", b"general.architecturx", "names no architecture"),
        (b"tokenizer.ggml.tokens", b"tokenizer.ggml.tokenx", "no tokenizer"),
    ],
)
def test_a_wrong_name_is_reported(file: Path, whole: bytes, old_name: bytes, new_name: bytes, reason: str) -> None:
    file.write_bytes(whole.replace(old_name, new_name, 1))
    with pytest.raises(CorruptModel) as caught:
        EmbeddedModel(file)
    assert reason in caught.value.message


def test_the_reason_of_llama_cpp_is_reported(file: Path, whole: bytes, tried: list[Path]) -> None:
    file.write_bytes(whole.replace(b"smollm", b"smollx"))
    with pytest.raises(CorruptModel, match="unknown pre-tokenizer type: 'smollx'"):
        EmbeddedModel(file)
    assert tried == [file]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_weight_that_is_not_finite_is_found(file: Path, whole: bytes, value: float) -> None:
    file.write_bytes(whole)
    start = read_gguf(file).tensors["blk.1.ffn_up.weight"].offset
    file.write_bytes(whole[: start + 400] + struct.pack("<f", value) + whole[start + 404 :])
    with pytest.raises(CorruptModel, match="cannot be loaded as a GGUF model") as caught:
        EmbeddedModel(file)
    assert "blk.1.ffn_up.weight" in caught.value.message


def test_a_model_that_crashes_llama_cpp_is_an_error(
    file: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file, "model_problems", lambda _: [])
    file.write_bytes(with_value(whole, BLOCK_COUNT, number("I", 0)))
    with pytest.raises(CorruptModel, match=r"llama\.cpp crashes \(SIG"):
        EmbeddedModel(file)


def test_a_model_that_takes_too_long_is_an_error(
    file: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEWPARSE_MODEL_CHECK_SECONDS", "0.01")
    file.write_bytes(whole)
    with pytest.raises(ModelError, match=r"more than 0\.01 seconds") as caught:
        EmbeddedModel(file)
    assert "FEWPARSE_MODEL_CHECK_SECONDS" in str(caught.value.hint)


@pytest.mark.skipif(os.name == "nt", reason="the memory of a process cannot be limited")
def test_a_model_that_needs_too_much_memory_is_an_error(
    file: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEWPARSE_MODEL_CHECK_BYTES", "200000000")
    file.write_bytes(whole)
    with pytest.raises(CorruptModel, match="cannot be loaded"):
        EmbeddedModel(file)


def test_a_valid_model_is_tried_once_and_again_after_a_change(
    file: Path, whole: bytes, other: bytes, tried: list[Path]
) -> None:
    file.write_bytes(whole)
    for _ in range(2):
        model = EmbeddedModel(file)
        assert math.isfinite(query(model))
        model.close()
    assert len(tried) == 1
    file.write_bytes(other)
    check_model(file)
    assert len(tried) == 2


def test_a_file_is_hashed_again_only_after_a_change(file: Path, hashed: list[Path]) -> None:
    file.write_bytes(b"some content")
    for _ in range(3):
        assert checked_sha256(old(file) if not hashed else file) == file_sha256(file)
    assert len(hashed) == 1
    kept = file.stat()
    file.write_bytes(b"same length!")
    os.utime(file, ns=(kept.st_atime_ns, kept.st_mtime_ns))  # as an attacker would hide the change
    assert checked_sha256(file) == file_sha256(file)
    assert len(hashed) == 2


def test_the_hash_of_a_file_that_was_just_changed_is_not_recorded(file: Path, hashed: list[Path]) -> None:
    file.write_bytes(b"some content")
    checked_sha256(file)
    checked_sha256(file)
    assert len(hashed) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"null",
        b"[]",
        b'{"files": []}',
        b'{"files": {}, "passed": {"a": 1}}',
        b'{"files": {"PATH": [1, 2]}, "passed": {}}',
        b'{"files": {"PATH": [1, 2, 3, 4, 5, 6]}, "passed": {}}',
        b'{"files": {"PATH": null}, "passed": {}}',
        b'{"files": {"PATH": [1, 2, 3, 4, 5, "' + b"0" * 64 + b'"]}, "passed": []}',
    ],
)
def test_a_damaged_record_is_ignored_and_replaced(isolated_cache: Path, file: Path, content: bytes) -> None:
    file.write_bytes(b"some content")
    record = isolated_cache / RECORD
    record.write_bytes(content.replace(b"PATH", str(file).encode()))
    assert checked_sha256(old(file)) == file_sha256(file)
    assert not has_passed(["a"])
    assert str(file) in json.loads(record.read_bytes())["files"]


def test_a_record_that_cannot_be_written_or_read_is_no_error(isolated_cache: Path, file: Path) -> None:
    (isolated_cache / RECORD).mkdir()
    file.write_bytes(b"some content")
    assert checked_sha256(old(file)) == file_sha256(file)
    record_passed(["a"])
    assert not has_passed(["a"])


def test_the_record_is_limited(isolated_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_files, "MAX_ENTRIES", 3)
    for name in "abcde":
        record_passed([name])
    assert [has_passed([name]) for name in "abcde"] == [False, False, True, True, True]


def test_the_embedded_model_with_other_bytes_is_damaged_by_every_name(isolated_cache: Path, whole: bytes) -> None:
    path = weights.weights_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(whole)
    for load in (EmbeddedModel, check_model):
        with pytest.raises(CorruptModel, match="is damaged") as caught:
            load(path)
        assert "models pull --force" in str(caught.value.hint)


def test_a_copy_of_the_embedded_model_with_other_bytes_is_a_warning(file: Path, whole: bytes) -> None:
    file.write_bytes(whole)
    with file.open("r+b") as opened:
        opened.truncate(SMOLLM2.size)
    with pytest.warns(UserWarning, match="a copy of it would be damaged"):
        check_model(file)


def test_only_regular_files_are_read(tmp_path: Path, isolated_cache: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path / "pipe.gguf", Path("/dev/zero"), tmp_path):
        for read in (EmbeddedModel, read_adapter, checked_sha256, read_gguf):
            with pytest.raises(ModelUnavailable, match="cannot be read"):
                read(path)


def outcome(work: Callable[[], Any]) -> str:
    """Whether work succeeds or raises an expected error; another one is raised."""
    try:
        work()
    except ModelError:
        return "rejected"
    return "used"


@sizes("count", 40, 2_000)
def test_a_damaged_model_is_rejected_or_used_and_never_crashes(file: Path, whole: bytes, count: int) -> None:
    """The trial of files that pass the checks in Python is always in another process."""
    file.write_bytes(whole)
    metadata, tokens, table = (whole.index(name) for name in (b"llama.", b"tokenizer.ggml.tokens", b"token_embd"))
    data = min(tensor.offset for tensor in read_gguf(file).tensors.values())
    regions = [(0, tokens), (metadata, tokens), (tokens, table), (table, data), (table, data), (data, len(whole))]

    def use() -> None:
        model = EmbeddedModel(file)
        try:
            assert math.isfinite(query(model))
        finally:
            model.close()

    outcomes = []
    for content in mutations(whole, regions, count):
        file.write_bytes(content)
        outcomes.append(outcome(use))
    assert set(outcomes) == {"rejected", "used"}


@sizes("count", 300, 20_000)
def test_a_damaged_adapter_is_rejected_or_used_and_never_crashes(
    file: Path, whole: bytes, tmp_path: Path, count: int
) -> None:
    file.write_bytes(whole)
    model = EmbeddedModel(file)
    content = write_tiny_adapter(tmp_path / "adapter.gguf").read_bytes()
    table = content.index(b"blk.0")
    data = min(tensor.offset for tensor in read_gguf(tmp_path / "adapter.gguf").tensors.values())
    outcomes = []
    for damaged in mutations(content, [(0, table), (table, data), (table, data), (data, len(content))], count):
        (tmp_path / "damaged.gguf").write_bytes(damaged)
        outcomes.append(
            outcome(
                lambda: model.with_adapter(read_adapter(tmp_path / "damaged.gguf")).next_tokens(
                    PROMPT, [()], 1, STOP, Usage()
                )
            )
        )
    assert set(outcomes) == {"rejected", "used"}
    assert math.isfinite(query(model))
    model.close()


def write_tiny_adapter(path: Path, **tensors: Any) -> Path:
    """An adapter for the matrices of the small model, in single and half precision."""
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 2.0)
    for i, (name, shape) in enumerate((name, shape) for name, shape in shapes() if ".attn_" in name and shape[1:]):
        kind = (np.float16, np.float32)[i % 2]
        writer.add_tensor(f"{name}.weight.lora_a", random.normal(size=(2, shape[1])).astype(kind))
        writer.add_tensor(f"{name}.weight.lora_b", random.normal(0, 0.1, size=(shape[0], 2)).astype(kind))
    close(writer)
    return path
