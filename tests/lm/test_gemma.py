"""A second architecture: Gemma 3, with sliding-window attention and a SentencePiece vocabulary of 262,144 tokens.

The laws of models are in `test_model_laws.py`.
"""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import CorruptModel
from fewparse.example import Target
from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.evaluator import Logits, TokenIds, log_softmax
from fewparse.lm.gguf import read_metadata
from fewparse.lm.http.load import RemoteSettings, open_remote
from fewparse.lm.local import LocalModel
from fewparse.lm.model import Prefix, Token
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.prompt import Part, Prompt
from fewparse.testing import CONSTRAINT_LAWS
from support.adapters import GEMMA_SHAPES, write_adapter
from support.constraint_cases import CASES, Case
from support.llama_server import llama_cpp_server
from support.prompts import plain_prompt

STOP = b"\n"
NOISE = 1.0
WINDOW = 512
SPACE_MARK = "\u2581"
NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 3, 4, 6
FRUITS = plain_prompt("Fruits: apple, pear,")


def test_the_bytes_of_every_token_are_those_of_the_model_file(gemma: EmbeddedModel) -> None:
    metadata = read_metadata(gemma.path)
    texts, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    assert len(gemma.vocabulary) == len(texts) == 262_144
    assert set(types) == {NORMAL, CONTROL, USER_DEFINED, BYTE}
    expected = [text.replace(SPACE_MARK, " ").encode() for text in texts]
    for i, (text, kind) in enumerate(zip(texts, types, strict=True)):
        if byte := re.fullmatch("<0x(..)>", text):
            assert kind == BYTE
            expected[i] = bytes.fromhex(byte[1])
        elif kind == CONTROL or i in gemma.vocabulary.end_ids:
            expected[i] = b""
    assert list(gemma.vocabulary.tokens) == expected
    assert {texts[i] for i in gemma.vocabulary.end_ids} == {"<eos>", "<end_of_turn>", "</s>"}
    assert not gemma.vocabulary.missing_bytes


@given(text=st.text().filter(lambda text: SPACE_MARK not in text))
def test_tokens_concatenate_to_the_text(gemma: EmbeddedModel, text: str) -> None:
    assert b"".join(token.bytes for token in gemma.tokenize(text)) == text.encode()


@pytest.mark.parametrize(
    "text", ["\n", "\n\n", "a\n b", " a  b", "\t\r", "<bos>", "<start_of_turn>", "</s>", "<0x0A>", "[multimodal]"]
)
def test_white_space_and_the_names_of_special_tokens_are_text_in_an_output(
    gemma: EmbeddedModel, text: str
) -> None:
    assert b"".join(token.bytes for token in gemma.tokenize(text)) == text.encode()


def test_every_token_that_starts_with_a_newline_ends_a_line(gemma: EmbeddedModel) -> None:
    tokens = gemma.vocabulary.tokens
    newlines = {i for i, token in enumerate(tokens) if token.startswith(STOP)}
    assert {b"\n", b"\n\n"} < {tokens[i] for i in newlines}
    assert set(gemma.vocabulary.endings(STOP).tolist()) == newlines | set(gemma.vocabulary.end_ids)


def test_a_prompt_starts_with_one_begin_token_and_markers_of_other_models_are_text(gemma: EmbeddedModel) -> None:
    metadata = read_metadata(gemma.path)
    names = metadata["tokenizer.ggml.tokens"]
    prompt = Prompt((Part("<start_of_turn>", True), Part("<start_of_turn>", False), Part("<|im_end|>", True)))
    ids = gemma.prompt_ids(prompt)
    assert [names[i] for i in ids[:2]] == ["<bos>", "<start_of_turn>"]
    assert "<bos>" not in [names[i] for i in ids[1:]]
    assert b"".join(gemma.vocabulary.tokens[i] for i in ids[2:]) == b"<start_of_turn><|im_end|>"


def logprobs(model: LocalModel, prompt: TokenIds, path: TokenIds = ()) -> Logits:
    return log_softmax(model.evaluator.next_logits(prompt, [path], Usage())[0])


def assert_equal(found: Logits, expected: Logits) -> None:
    best = np.argsort(-expected)[:20]
    assert found[best] == pytest.approx(expected[best], abs=NOISE)


def test_prefixes_beyond_the_sliding_window_are_shared_with_the_same_results(gemma: EmbeddedModel) -> None:
    """A prompt cut back by more than the window, and forks behind the window, are as if evaluated alone."""
    words = [i for i, token in enumerate(gemma.vocabulary.tokens) if re.fullmatch(rb" [a-z]{2,6}", token)]
    begin = gemma.prompt_ids(plain_prompt(""))
    rng = random.Random(0)
    text = tuple(rng.choices(words, k=WINDOW + 150))
    prompt = begin + text
    cut = begin + text[:100] + text[:30]
    cut_behind = begin + text[: WINDOW + 50] + text[:30]
    paths = [text[:1], text[5:25]]
    alone = {}
    for sequence in (cut, cut_behind, *(prompt + path for path in paths)):
        logprobs(gemma, begin)  # drops what the sequences have in common
        alone[sequence] = logprobs(gemma, sequence)
    logprobs(gemma, prompt)
    for path in paths:
        assert_equal(logprobs(gemma, prompt, path), alone[prompt + path])
    usage = Usage()
    gemma.evaluator.next_logits(cut_behind, [()], usage)
    assert usage.prefill_tokens == 30, "the prompt is evaluated again"
    assert_equal(logprobs(gemma, cut_behind), alone[cut_behind])
    assert_equal(logprobs(gemma, cut), alone[cut])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_constraints_satisfy_their_laws_over_this_vocabulary(gemma: EmbeddedModel, case: Case) -> None:
    constraint = case.build(gemma.vocabulary)
    for law in CONSTRAINT_LAWS:
        law(constraint, 0)


def change(gemma: EmbeddedModel, path: Path, strength: float) -> float:
    """Return by how much an adapter of this strength changes the log-probability of a text."""
    written = write_adapter(
        path, strength=strength, blocks=[3, 14], matrices=GEMMA_SHAPES, architecture="gemma3", shapes=GEMMA_SHAPES
    )
    banana: Prefix = gemma.tokenize(" banana, or a plum")
    scores = [
        sum(model.score(FRUITS, [()], [banana], Usage())[0])
        for model in (gemma, gemma.with_adapter(read_adapter(written)))
    ]
    return abs(scores[1] - scores[0])


def test_an_adapter_for_the_architecture_changes_the_output(gemma: EmbeddedModel, tmp_path: Path) -> None:
    assert change(gemma, tmp_path / "none.gguf", 0.0) < 0.1
    assert change(gemma, tmp_path / "strong.gguf", 0.2) > NOISE


def test_an_adapter_for_the_default_model_does_not_fit(gemma: EmbeddedModel, tmp_path: Path) -> None:
    with pytest.raises(CorruptModel, match="is not an adapter for this model") as caught:
        gemma.with_adapter(read_adapter(write_adapter(tmp_path / "other.gguf")))
    assert "it is for the architecture llama, and the model is of gemma3" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("prompt", "target", "constrained"),
    [
        ("lisp", "program", True),
        ("lisp", "program", False),
        ("canonical", "canonical", True),
        ("canonical", "canonical", False),
        ("chatml", "canonical", True),
    ],
)
def test_utterances_are_parsed_with_the_layouts_of_the_paper_and_as_chat(
    gemma: EmbeddedModel, prompt: str, target: Target, constrained: bool
) -> None:
    parser = Parser.from_domain(
        "calendar", gemma, prompt=prompt, target=target, constrained=constrained, decoder="greedy"
    )
    assert parser.options.adapter is None
    found = parser.parse("when is my next meeting with Anna?")
    assert found.program is not None
    assert found.program.startswith("(when ")
    if constrained:
        assert found.answer_error is None, "the program is not well-formed"


def test_a_server_reports_the_same_vocabulary(gemma: EmbeddedModel, isolated_cache: Path) -> None:
    masks = np.zeros((1, len(gemma.vocabulary)), dtype=np.bool_)
    improbable: tuple[Token, ...] = gemma.tokenize(" zebra")
    masks[0, improbable[0].id] = True
    with llama_cpp_server(gemma.path) as url:
        served = open_remote("openai", "", RemoteSettings(base_url=url))
        assert served.vocabulary is not None
        assert served.vocabulary.tokens == gemma.vocabulary.tokens
        assert served.vocabulary.end_ids == gemma.vocabulary.end_ids
        for model in (served, gemma):
            assert model.next_tokens(FRUITS, [()], 1, STOP, Usage(), list(masks))[0].best[0].token == improbable[0]
        served.close()
