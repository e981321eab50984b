"""Look-ups in a vocabulary, compared with a scan of all tokens."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fewparse.vocabulary import BYTES, Vocabulary

few_bytes = st.sampled_from([0x00, 0x61, 0x62, 0xC3, 0xFE, 0xFF])
pieces = st.lists(few_bytes, max_size=4).map(bytes)
vocabularies = st.lists(pieces, max_size=40)
thorough = settings(max_examples=300, deadline=None, derandomize=True, database=None)


@thorough
@given(vocabularies, pieces)
@example([b"\xff", b"\xff\xff", b"\xfe\xff", b"a"], b"\xff")
@example([b"a\xff", b"a\xff\xff", b"b", b"a"], b"a\xff")
def test_the_tokens_that_start_with_a_prefix(tokens: list[bytes], prefix: bytes) -> None:
    expected = [i for i, token in enumerate(tokens) if token and token.startswith(prefix)]
    assert sorted(Vocabulary(tokens).starting_with(prefix).tolist()) == expected


@thorough
@given(vocabularies, pieces)
def test_ranks_are_in_byte_order_and_map_to_tokens_and_ids(tokens: list[bytes], prefix: bytes) -> None:
    vocabulary = Vocabulary(tokens)
    low, high = vocabulary.with_prefix(prefix)
    expected = sorted(token for token in tokens if token and token.startswith(prefix))
    assert [vocabulary.at(rank) for rank in range(low, high)] == expected
    assert [tokens[i] for i in vocabulary.ids_at(low, high)] == expected


@thorough
@given(vocabularies, pieces, pieces)
def test_a_search_can_be_narrowed_to_an_outer_prefix(tokens: list[bytes], outer: bytes, inner: bytes) -> None:
    vocabulary = Vocabulary(tokens)
    whole = vocabulary.with_prefix(outer + inner)
    narrowed = vocabulary.with_prefix(outer + inner, *vocabulary.with_prefix(outer))
    assert vocabulary.ids_at(*narrowed).tolist() == vocabulary.ids_at(*whole).tolist()


@thorough
@given(vocabularies, pieces, st.data())
def test_the_endings_are_tokens_with_the_stop_and_end_tokens(
    tokens: list[bytes], stop: bytes, data: st.DataObject
) -> None:
    ends = data.draw(st.sets(st.sampled_from(range(len(tokens))))) if tokens else set()
    begins = {i for i, token in enumerate(tokens) if stop and token and token.startswith(stop)}
    vocabulary = Vocabulary(tokens, ends)
    assert vocabulary.endings(stop).tolist() == sorted(begins | ends)
    assert vocabulary.endings(stop) is vocabulary.endings(stop)


@thorough
@given(vocabularies)
def test_ids_missing_bytes_text_mask_and_first_bytes(tokens: list[bytes]) -> None:
    vocabulary = Vocabulary(tokens)
    assert len(vocabulary) == len(tokens)
    assert vocabulary.ids == {token: tokens.index(token) for token in tokens if token}
    assert vocabulary.missing_bytes == {b for b in range(256) if bytes([b]) not in tokens}
    assert vocabulary.is_text.tolist() == [token != b"" for token in tokens]
    assert vocabulary.first_bytes.tolist() == [token[0] if token else 0 for token in tokens]


def test_the_byte_vocabulary_has_every_byte() -> None:
    assert BYTES.missing_bytes == frozenset()
    assert BYTES.starting_with(b"\xff").tolist() == [255]
    assert [BYTES.ids[bytes([b])] for b in range(256)] == list(range(256))


@pytest.mark.parametrize(
    "prefix", [b"", b" ", b" the", b"\n", "é".encode(), b"\xf0\x9f", b"\xff", b"no such token"]
)
def test_the_tokens_of_the_model_that_start_with_a_prefix(model_vocabulary: Vocabulary, prefix: bytes) -> None:
    expected = [i for i, t in enumerate(model_vocabulary.tokens) if t and t.startswith(prefix)]
    assert np.sort(model_vocabulary.starting_with(prefix)).tolist() == expected


def test_the_model_can_spell_all_common_text(model_vocabulary: Vocabulary) -> None:
    common = range(0x20, 0x7F), range(0xA0, 0x800), range(0x4E00, 0x9FFF), range(0x1F300, 0x1F700)
    needed = {byte for block in common for code in block for byte in chr(code).encode()}
    assert not needed & model_vocabulary.missing_bytes
