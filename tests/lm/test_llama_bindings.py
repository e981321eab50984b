"""The native library: a mismatch or a damaged file raises an error and never crashes."""

from pathlib import Path
from typing import Any

import pytest

from fewparse.errors import CorruptModel, ModelUnavailable, RuntimeMismatch
from fewparse.lm import llama
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.weights import pull


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
