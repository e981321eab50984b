"""The native library: a mismatch or a damaged file raises an error and never crashes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewparse.errors import CorruptModel, ModelError, ModelUnavailable, RuntimeMismatch
from fewparse.lm import llama
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.evaluator import log_softmax
from fewparse.lm.lifetime import Lifetime
from fewparse.lm.llama_model import Llama
from fewparse.lm.model import Token
from fewparse.lm.usage import Usage
from fewparse.lm.weights import pull
from support.prompts import plain_prompt
from support.tiny_model import write_tiny_model


def context_defaults(**changed: Any) -> llama.ContextParams:
    values = {"n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1}
    values |= {"flash_attn_type": -1, "type_k": 1, "type_v": 1}
    return llama.ContextParams(**(values | changed))


def test_the_defaults_of_the_installed_library_are_those_of_the_header() -> None:
    library = llama.library()
    llama.check_defaults(library.llama_model_default_params(), library.llama_context_default_params())
    llama.check_defaults(llama.ModelParams(split_mode=1), context_defaults())


@pytest.mark.parametrize(
    "changed", [{"n_ctx": 513}, {"n_seq_max": 0}, {"type_v": 8}, {"kv_unified": True}, {"n_samplers": 3}]
)
def test_a_changed_context_default_is_rejected(changed: dict[str, Any]) -> None:
    with pytest.raises(RuntimeMismatch, match="defaults"):
        llama.check_defaults(llama.ModelParams(split_mode=1), context_defaults(**changed))


@pytest.mark.parametrize("changed", [{"split_mode": 0}, {"main_gpu": 7}, {"no_alloc": True}])
def test_a_changed_model_default_is_rejected(changed: dict[str, Any]) -> None:
    with pytest.raises(RuntimeMismatch, match="defaults"):
        llama.check_defaults(llama.ModelParams(**({"split_mode": 1} | changed)), context_defaults())


def test_another_version_of_the_library_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama, "VERSION", "1.2.3")
    with pytest.raises(RuntimeMismatch, match=r"needs 1\.2\.3") as caught:
        llama.library.__wrapped__()
    assert caught.value.hint == "pip install xllamacpp==1.2.3"


def test_a_missing_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama, "RUNTIME", "no_such_package_at_all")
    with pytest.raises(RuntimeMismatch, match="not installed"):
        llama.library.__wrapped__()


def test_a_missing_function_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(llama.SIGNATURES, "llama_no_such_function", (None, []))
    with pytest.raises(RuntimeMismatch, match="llama_no_such_function"):
        llama.library.__wrapped__()


@pytest.mark.parametrize("content", [b"", b"GGU", b"<html>not a model</html>"])
def test_a_file_that_is_not_gguf_is_corrupt(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    with pytest.raises(CorruptModel, match="not a GGUF file"):
        EmbeddedModel(file)


@pytest.mark.parametrize("size", [4, 30, 100_000, 20_000_000])
def test_a_truncated_model_is_corrupt(tmp_path: Path, size: int) -> None:
    file = tmp_path / "model.gguf"
    with pull().open("rb") as whole:
        file.write_bytes(whole.read(size))
    with pytest.raises(CorruptModel, match="cannot be loaded"):
        EmbeddedModel(file)


def test_a_missing_model_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="No such file"):
        EmbeddedModel(tmp_path / "nowhere.gguf")


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    """A small model, loaded by the native library alone."""
    path = write_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny.gguf")
    opened = Llama(path, 1, Lifetime("tiny"))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("tokens", "positions", "sequences"),
    [
        ([], [], []),
        ([-1], [0], [0]),
        ([1024], [0], [0]),
        ([2**40], [0], [0]),
        ([1], [-1], [0]),
        ([1], [2**31], [0]),
        ([1], [0], [256]),
        ([1], [0], [-1]),
        ([1] * 5_000, list(range(5_000)), [0] * 5_000),
    ],
)
def test_a_batch_that_would_end_the_process_is_an_error(
    native: Llama, tokens: list[int], positions: list[int], sequences: list[int]
) -> None:
    with pytest.raises(ModelError):
        native.decode(tokens, positions, sequences, [True] * len(tokens))
    assert len(native.decode([1, 2], [0, 1], [0, 0], [False, True])) == 1
    native.drop(0)


@pytest.mark.parametrize(
    "text", ["", "a\0b", "\x01" * 1_000, "w" * 200_000, "1" * 200_000, " " * 200_000, "🍐!" * 50_000]
)
def test_any_text_can_be_tokenized(model: EmbeddedModel, native: Llama, text: str) -> None:
    whole = b"".join(token.bytes for token in model.tokenize(text))
    assert whole == bytes(b for b in text.encode() if b not in model.vocabulary.missing_bytes)
    assert native.tokenize(text, special=True, begin=True) is not None


def test_a_text_that_is_not_unicode_is_an_error(native: Llama) -> None:
    with pytest.raises(ModelError, match="not Unicode"):
        native.tokenize("a\ud800", special=False, begin=False)


@pytest.mark.parametrize("pre", ["default", "deepseek-llm", "falcon", "gpt-4o", "llama4", "tekken"])
def test_a_long_word_does_not_overflow_the_stack(tmp_path: Path, pre: str) -> None:
    """The regular expressions of these tokenizers recurse for every character."""
    path = write_tiny_model(tmp_path / "tiny.gguf", pre=pre)
    script = (
        "import sys; from pathlib import Path; from fewparse.lm.llama_model import Llama\n"
        "from fewparse.lm.lifetime import Lifetime; model = Llama(Path(sys.argv[1]), 1, Lifetime('tiny'))\n"
        "for text in ('a', '1', '!', ' ', 'A'): assert model.tokenize(text * 70_000, False, False)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_tokens_of_another_model_are_an_error(model: EmbeddedModel) -> None:
    for wrong in (-1, len(model.vocabulary), 2**40):
        prefix = (Token(b"a", wrong),)
        with pytest.raises(ModelError, match=f"the token {wrong}"):
            model.next_tokens(plain_prompt("a"), [prefix], 1, b"\n", Usage())
        with pytest.raises(ModelError, match=f"the token {wrong}"):
            model.score(plain_prompt("a"), [()], [prefix], Usage())


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_logits_that_are_not_finite_are_an_error(wrong: float) -> None:
    row = np.zeros(10, np.float32)
    for at in (0, 5, 9):
        damaged = row.copy()
        damaged[at] = wrong
        with pytest.raises(ModelError, match="not finite"):
            log_softmax(damaged)
    with pytest.raises(ModelError, match="not finite"):
        log_softmax(np.full(10, -np.inf, np.float32))


def test_a_logit_of_minus_infinity_is_a_token_that_never_follows() -> None:
    found = log_softmax(np.array([0.0, -np.inf, 0.0], np.float32))
    assert found == pytest.approx([-np.log(2), -np.inf, -np.log(2)])
    largest = np.finfo(np.float32).max
    assert log_softmax(np.array([largest, -largest], np.float32)).tolist() == [0.0, -np.inf]
