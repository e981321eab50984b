"""Hugging Face models: the same weights give the same tokens and scores, and errors are clear."""

import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fewparse.errors import CorruptModel, ModelError, ModelUnavailable, UsageError
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.evaluator import WholeSequences
from fewparse.lm.load import open_model
from fewparse.lm.model import Prefix
from fewparse.lm.token_tree import TokenTree
from fewparse.lm.transformers import TransformersModel
from fewparse.lm.usage import Usage
from fewparse.lm.weights import pull
from fewparse.prompt import Part, Prompt
from support import tiny_checkpoints as tiny
from support.prompts import plain_prompt

torch = pytest.importorskip("torch", reason="torch is not installed: it belongs to the extra `transformers`")
hf = pytest.importorskip("transformers", reason="transformers is not installed: it is an extra")

NOISE = 0.8  # nats between float32 and the quantised arithmetic of the embedded model
MARKUP = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<file_sep>", "<|im", "_end|>", "<|", "|>"]
blanks = st.text(alphabet=" \t\n\r\u00a0\u3000a1(")
programs = st.text(alphabet="(){}[]:;,.'\"=<>+-*/_ \n0123456789abcXYZ")
marked = st.lists(st.sampled_from([*MARKUP, "user", " hello", "\n", "7"])).map("".join)
texts = st.text() | blanks | programs | marked
tokens = st.integers(17, 49_151)
prompts = st.lists(st.builds(Part, texts, st.booleans())).map(tuple).map(Prompt)


def has_tokens(model: EmbeddedModel, text: str) -> bool:
    return not model.vocabulary.missing_bytes & set(text.encode())


def test_the_vocabulary_is_that_of_the_embedded_model(
    model: EmbeddedModel, transformers_model: TransformersModel
) -> None:
    assert transformers_model.vocabulary.tokens == model.vocabulary.tokens
    assert transformers_model.vocabulary.end_ids == model.vocabulary.end_ids
    assert transformers_model.context_length == model.context_length


@given(text=texts)
def test_a_text_has_the_tokens_of_the_embedded_model(
    model: EmbeddedModel, transformers_model: TransformersModel, text: str
) -> None:
    assume(has_tokens(model, text))
    assert transformers_model.tokenize(text) == model.tokenize(text)


@given(prompt=prompts)
def test_a_prompt_has_the_tokens_of_the_embedded_model(
    model: EmbeddedModel, transformers_model: TransformersModel, prompt: Prompt
) -> None:
    assume(has_tokens(model, prompt.text))
    assert transformers_model.prompt_ids(prompt) == model.prompt_ids(prompt)


def test_a_byte_without_a_token_is_dropped_before_merging_tokens(
    model: EmbeddedModel, transformers_model: TransformersModel
) -> None:
    text = "\x82\U00079000"  # C2 82 F1 B9 80 80: there is no token F1, but one of 82 B9
    assert not has_tokens(model, text)
    assert [token.bytes for token in model.tokenize(text)][:3] == [b"\xc2", b"\x82", b"\xb9"]
    assert [token.bytes for token in transformers_model.tokenize(text)][:2] == [b"\xc2", b"\x82\xb9"]


@pytest.mark.parametrize(
    ("prompt", "continuation"),
    [
        ("The capital of France is", " Paris. It lies on the river Seine."),
        ("Fruits: apple, pear,", " banana, orange, and grape"),
        ("say: when is lunch\nprogram:", " (start (find lunch))"),
        ("A B C", " ÄÖ 中文"),
    ],
)
def test_scores_are_those_of_the_embedded_model_except_for_quantisation(
    model: EmbeddedModel, transformers_model: TransformersModel, prompt: str, continuation: str
) -> None:
    tokens = model.tokenize(continuation)
    (mine,) = transformers_model.score(plain_prompt(prompt), [()], [tokens], Usage())
    (theirs,) = model.score(plain_prompt(prompt), [()], [tokens], Usage())
    assert mine == pytest.approx(theirs, abs=NOISE)
    assert math.fsum(mine) / len(tokens) == pytest.approx(math.fsum(theirs) / len(tokens), abs=NOISE / 4)


@settings(max_examples=8)
@given(
    prompt=st.lists(tokens, min_size=1, max_size=20).map(tuple),
    paths=st.lists(st.lists(st.sampled_from([30, 3000, 30000]), max_size=5).map(tuple), min_size=1, max_size=8),
)
def test_tree_attention_gives_the_logits_of_whole_sequences(
    transformers_model: TransformersModel, prompt: tuple[int, ...], paths: list[tuple[int, ...]]
) -> None:
    expected = WholeSequences(transformers_model.backend).next_logits(prompt, paths, Usage())
    together = transformers_model.evaluator.next_logits(prompt, paths, Usage())
    assert isinstance(transformers_model.evaluator, TokenTree)
    for one, other in zip(together, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.save(tmp_path / "model", "gpt2", tiny.byte_level())


def oracle_scores(folder: Path, ids: tuple[int, ...], continuation: Prefix) -> list[float]:
    """The scores by transformers alone, in one pass."""
    oracle = hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = [*ids, *(token.id for token in continuation)]
    with torch.no_grad():
        rows = torch.log_softmax(oracle(torch.tensor([tokens]), use_cache=False).logits[0], dim=-1)
    return [float(rows[i - 1, tokens[i]]) for i in range(len(ids), len(tokens))]


def test_a_folder_is_opened_silently_and_scores_equal_those_of_transformers(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    opened = open_model(f"hf:{folder}")
    assert opened.name == f"hf:{folder}"
    assert opened.context_length == tiny.CONTEXT
    assert capfd.readouterr() == ("", "")
    prompt, tokens = plain_prompt("the cat"), opened.tokenize(" sat on the mat")
    (scores,) = opened.score(prompt, [()], [tokens], Usage())
    assert isinstance(opened, TransformersModel)
    assert scores == pytest.approx(oracle_scores(folder, opened.prompt_ids(prompt), tokens), abs=1e-3)
    opened.close()
    opened.close()


def test_logits_without_a_token_are_not_text(folder: Path) -> None:
    vocabulary = TransformersModel(str(folder)).vocabulary
    assert len(vocabulary) == tiny.byte_level().get_vocab_size() + 5
    assert vocabulary.tokens[-5:] == (b"",) * 5
    assert vocabulary.end_ids == (0,)
    assert vocabulary.missing_bytes == frozenset()


@pytest.mark.parametrize("kind", ["window", "mamba"])
def test_a_model_without_tree_attention_warns_once_and_scores_correctly(tmp_path: Path, kind: str) -> None:
    saved = tiny.save(tmp_path, kind, tiny.byte_level())
    with pytest.warns(UserWarning, match="every sequence is evaluated whole") as caught:
        opened = TransformersModel(str(saved))
    assert len(caught) == 1
    prompt = plain_prompt("the cat sat on")
    tokens = opened.tokenize(" the mat and the mat")
    starts = range(len(tokens))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = opened.score(prompt, [tokens[:i] for i in starts], [tokens[i:] for i in starts], Usage())
    expected = oracle_scores(saved, opened.prompt_ids(prompt), tokens)
    for i, some in enumerate(scores):
        assert some == pytest.approx(expected[i:], abs=1e-3)


def test_a_model_that_ignores_the_attention_mask_is_detected(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fewparse.lm.hf_backend import HFBackend

    evaluate = HFBackend.evaluate

    def ignoring(self: HFBackend, tokens: Any, positions: Any, attention: Any, wanted: Any) -> Any:
        return evaluate(self, tokens, positions, None, wanted)

    monkeypatch.setattr(HFBackend, "evaluate", ignoring)
    with pytest.warns(UserWarning, match="every sequence is evaluated whole"):
        TransformersModel(str(folder))


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> TransformersModel:
    folder = tiny.save(tmp_path_factory.mktemp("pieces"), "llama", tiny.sentence_piece())
    edited = folder / "tokenizer_config.json"
    edited.write_text(edited.read_text().replace("{", '{"bos_token": "<s>",', 1))
    return TransformersModel(str(folder))


@given(text=st.text() | blanks | st.text(alphabet="the cat sat"))
def test_sentencepiece_tokens_concatenate_to_the_text_without_a_leading_space(
    pieces: TransformersModel, text: str
) -> None:
    assert b"".join(token.bytes for token in pieces.tokenize(text)) == text.encode().replace("▁".encode(), b" ")


def test_a_sentencepiece_prompt_has_a_leading_space_at_its_start_only(
    pieces: TransformersModel,
) -> None:
    written = [pieces.vocabulary.tokens[i] for i in pieces.prompt_ids(plain_prompt("the cat"))]
    assert written == [b"", b" the", b" cat"]
    parts = Prompt((Part("<s>", True), Part("the cat", False)))
    ids = pieces.prompt_ids(parts)
    assert b"".join(pieces.vocabulary.tokens[i] for i in ids).endswith(b"the cat")
    assert b" the" not in [pieces.vocabulary.tokens[i] for i in ids]


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, fewparse, fewparse.lm.transformers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_error_without_the_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fewparse.lm.hf_backend", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelUnavailable, match="torch") as caught:
        open_model("hf:some/model")
    assert caught.value.hint == "pip install 'fewparse[transformers]'"


def test_a_gguf_file_needs_the_whole_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ModelUnavailable, match="gguf") as caught:
        open_model("hf:embedded")
    assert caught.value.hint == "pip install 'fewparse[transformers]'"


def test_an_error_of_torch_is_reported_in_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = TransformersModel(str(folder))
    monkeypatch.setattr("torch.tensor", lambda *_, **__: torch.zeros((1, 1), dtype=torch.float32))
    with pytest.raises(ModelError, match="torch could not evaluate 1 tokens") as caught:
        opened.next_tokens(plain_prompt("the cat"), [()], 1, b"", Usage())
    assert "\n" not in caught.value.message


def test_a_name_is_needed() -> None:
    with pytest.raises(UsageError, match="hf: needs"):
        open_model("hf:")


@pytest.mark.parametrize("name", ["/no/such/folder", "./no-such-folder", __file__, "~/no-such-folder"])
def test_a_missing_folder_is_unavailable(name: str) -> None:
    with pytest.raises(ModelUnavailable, match="is not a folder"):
        open_model(f"hf:{name}")


def test_a_missing_gguf_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="No such file"):
        open_model(f"hf:{tmp_path}/none.gguf")


def test_a_model_of_the_hub_is_unavailable_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnavailable, match="some/model is not available") as caught:
        open_model("hf:some/model")
    assert "\n" not in caught.value.message
    assert "network" in str(caught.value.hint)


def test_a_model_that_is_not_causal_is_rejected(folder: Path) -> None:
    tiny.edit_config(folder, model_type="t5")
    with pytest.raises(ModelError, match="not a causal language model"):
        TransformersModel(str(folder))


def test_a_model_with_custom_code_is_rejected_and_the_code_not_run(folder: Path) -> None:
    tiny.edit_config(folder, model_type="own", auto_map={"AutoConfig": "own.Config"})
    (folder / "own.py").write_text("raise SystemExit('run')")
    with pytest.raises(ModelError, match="its own code"):
        TransformersModel(str(folder))


def test_a_tokenizer_without_known_bytes_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="which bytes"):
        TransformersModel(str(tiny.save(tmp_path, "gpt2", tiny.word_piece())))


def test_a_folder_without_a_model_in_it_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        TransformersModel(str(tmp_path))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("keep", [0, 100])
def test_a_damaged_file_is_reported_in_one_line(folder: Path, file: str, keep: int) -> None:
    damaged = folder / file
    damaged.write_bytes(damaged.read_bytes()[:keep])
    with pytest.raises(ModelError) as caught:
        TransformersModel(str(folder))
    assert "\n" not in caught.value.message


def test_missing_weights_are_an_error(folder: Path) -> None:
    tiny.edit_config(folder, n_layer=3)
    with pytest.raises(CorruptModel, match="lacks 12 of the weights"):
        TransformersModel(str(folder))


@pytest.mark.parametrize("size", [4, 100_000, 20_000_000])
def test_a_truncated_gguf_is_corrupt(tmp_path: Path, size: int) -> None:
    file = tmp_path / "model.gguf"
    with pull().open("rb") as whole:
        file.write_bytes(whole.read(size))
    with pytest.raises(CorruptModel, match="cannot be loaded"):
        open_model(f"hf:{file}")


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_an_error(folder: Path, wrong: float) -> None:
    network = hf.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        next(network.parameters()).fill_(wrong)
    network.save_pretrained(folder)
    with pytest.raises(ModelError, match="not finite"):
        TransformersModel(str(folder))
