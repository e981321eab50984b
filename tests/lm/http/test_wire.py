r"""Both formats of responses are parsed into one, or rejected; no JSON breaks the parser."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import ServerUnsupported
from fewparse.lm.http.wire import (
    MIN_LOGPROB,
    UNREADABLE,
    Choice,
    Entry,
    Reply,
    has_valid_logprobs,
    is_merged,
    matches_text,
    parse_reply,
    token_bytes,
)
from fewparse.lm.model import ScoredToken, Token
from fewparse.retry import RetryableError

STOP = b"\n"


def legacy(**value: Any) -> dict[str, Any]:
    lists = {"tokens": ["a", "b"], "token_logprobs": [-1.0, -2.0], "top_logprobs": [{"a": -1.0}, {"b": -2.0}]}
    return {"choices": [{"text": "ab", "index": 0, "logprobs": {**lists, **value}, "finish_reason": "length"}]}


def content(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "ab"}, "logprobs": {"content": list(entries)}}]}


def only_choice(payload: Any) -> Choice:
    (choice,) = parse_reply(payload).choices
    return choice


def tokens(payload: Any) -> list[Token]:
    return [entry.token for entry in only_choice(payload).entries]


def scored(**logprobs: float) -> tuple[ScoredToken, ...]:
    return tuple(ScoredToken(Token(text.encode()), logprob) for text, logprob in logprobs.items())


def test_both_formats_are_equivalent() -> None:
    top = [{"token": "b", "logprob": -2.0}, {"token": "a", "logprob": -1.0}]
    value = content({"token": "a", "logprob": -1.0, "top_logprobs": top}, {"token": "b", "logprob": -2.0})
    same = legacy(top_logprobs=[{"b": -2.0, "a": -1.0}, None])
    assert only_choice(value).entries == only_choice(same).entries
    assert only_choice(value).text == only_choice(same).text == "ab"
    assert only_choice(same).entries[0] == Entry(Token(b"a"), -1.0, scored(a=-1.0, b=-2.0))


def test_alternatives_are_sorted_best_first() -> None:
    top = {"c": -3.0, "a": -0.5, "b": -9999}
    assert only_choice(legacy(top_logprobs=[top, None])).entries[0].alternatives == scored(
        a=-0.5, c=-3.0, b=MIN_LOGPROB
    )


def test_the_sampled_token_is_dropped_if_it_is_listed_after_the_best() -> None:
    value = only_choice(legacy(top_logprobs=[{"b": -0.5, "c": -1.5, "a": -9.0}, {"b": -2.0}]))
    assert value.entries[0].alternatives == scored(b=-0.5, c=-1.5)
    assert value.entries[1].alternatives == scored(b=-2.0)


def test_a_repeated_alternative_counts_once() -> None:
    top = [{"token": "a", "id": 97, "logprob": -1.0}] * 2
    value = content({"token": "a", "id": 97, "logprob": -1.0, "top_logprobs": top})
    assert len(only_choice(value).entries[0].alternatives) == 1


@pytest.mark.parametrize("value", [-9999, -9999.0, -1e300, -math.inf, "-9999"])
def test_log_probabilities_are_clipped(value: Any) -> None:
    assert only_choice(legacy(token_logprobs=[value, 1e-9])).entries[0].logprob == MIN_LOGPROB
    assert only_choice(legacy(token_logprobs=[value, 1e-9])).entries[1].logprob == 0.0


@pytest.mark.parametrize("value", [math.nan, 0.5, math.inf, True, "nan"])
@pytest.mark.parametrize("alternative", [False, True])
def test_invalid_log_probabilities_are_rejected(value: Any, alternative: bool) -> None:
    fields = {"top_logprobs": [{"a": value}, None]} if alternative else {"token_logprobs": [value, -1.0]}
    with pytest.raises(ServerUnsupported, match="log-probability of") as caught:
        parse_reply(legacy(**fields))
    assert caught.value.hint


@pytest.mark.parametrize("value", [{}, [], "half", 10**400])
def test_log_probabilities_that_are_not_numbers_are_rejected(value: Any) -> None:
    with pytest.raises(ServerUnsupported, match="structure"):
        parse_reply(legacy(token_logprobs=[value, -1.0]))


def test_a_missing_log_probability_is_nan() -> None:
    first = only_choice(legacy(token_logprobs=[None, -1.0], top_logprobs=[None, {"b": -1.0}])).entries[0]
    second = only_choice(content({"token": "a", "logprob": None})).entries[0]
    for entry in (first, second):
        assert math.isnan(entry.logprob)
        assert entry.alternatives == ()
        assert not has_valid_logprobs(entry)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", b"a"),
        ("é", "é".encode()),
        ("", b""),
        ("bytes:\\xe2\\x80", b"\xe2\x80"),
        ("bytes:\\xE2", b"\xe2"),
        ("bytes:", b"bytes:"),
        ("bytes:\\xe", b"bytes:\\xe"),
        ("bytes:\\xe2 and more", b"bytes:\\xe2 and more"),
        ("kilobytes:\\xe2", b"kilobytes:\\xe2"),
    ],
)
def test_only_escaped_bytes_are_unescaped(text: str, expected: bytes) -> None:
    assert token_bytes(text) == expected


@given(st.binary(min_size=1, max_size=8))
def test_any_bytes_can_be_represented_in_both_formats(piece: bytes) -> None:
    escaped = "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)
    assert tokens(legacy(tokens=[escaped, "b"]))[0].bytes == piece
    assert tokens(content({"token": "?", "bytes": [*piece], "id": 5, "logprob": -1.0})) == [Token(piece, 5)]


@pytest.mark.parametrize("token", ["\ufffd", "a\ufffd", "half \ud83d"])
def test_a_token_with_replaced_bytes_is_unreadable(token: str) -> None:
    assert tokens(legacy(tokens=[token, "b"]))[0] == UNREADABLE
    assert tokens(content({"token": token, "bytes": None, "logprob": -1.0})) == [UNREADABLE]
    assert tokens(content({"token": token, "bytes": [0xF0], "logprob": -1.0})) == [Token(b"\xf0")]


def test_choices_are_sorted_by_index() -> None:
    value = {"choices": [{"text": str(i), "index": i} for i in (2, 0, 1)]}
    assert [choice.text for choice in parse_reply(value).choices] == ["0", "1", "2"]


def test_missing_token_counts_are_none_not_zero() -> None:
    reply = parse_reply(legacy())
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens) == (None, None, 0)
    usage = {"prompt_tokens": 7, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 3}}
    assert parse_reply({**legacy(), "usage": usage})[1:4] == (7, 0, 3)


@pytest.mark.parametrize("nonsense", ["7", -7, 7.5, True, [7], None])
def test_invalid_token_counts_are_none(nonsense: Any) -> None:
    usage = {"prompt_tokens": nonsense, "completion_tokens": nonsense}
    details = {
        "prompt_tokens_details": {"cached_tokens": nonsense},
        "completion_tokens_details": {"reasoning_tokens": nonsense},
    }
    assert parse_reply({**legacy(), "usage": {**usage, **details}})[1:] == (None, None, 0, 0)


@pytest.mark.parametrize("payload", [{}, {"choices": None}, {"choices": "none"}, [], None, "no"])
def test_a_response_without_choices_is_retryable(payload: Any) -> None:
    with pytest.raises(RetryableError, match="no completions"):
        parse_reply(payload)


def test_an_error_message_instead_of_choices_is_quoted() -> None:
    with pytest.raises(RetryableError, match="no completions: upstream is busy"):
        parse_reply({"error": {"message": "upstream is busy", "code": 502}})


@pytest.mark.parametrize(
    "choice",
    [
        5,
        {},
        {"text": 5},
        {"text": "a", "index": "first"},
        {"message": "a"},
        {"text": "a", "logprobs": {"tokens": ["a"], "token_logprobs": []}},
        {"text": "a", "logprobs": {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": [[]] * 2}},
        {"text": "a", "logprobs": {"tokens": [5], "token_logprobs": [-1.0]}},
        {"text": "a", "logprobs": {"content": [{"token": "a"}]}},
        {"text": "a", "logprobs": {"content": [{"token": "a", "logprob": -1.0, "bytes": 10**12}]}},
        {"text": "a", "logprobs": {"content": [{"token": "a", "logprob": -1.0, "bytes": [300]}]}},
        {"text": "a", "logprobs": {"content": [{"token": "a", "logprob": -1.0, "id": "97"}]}},
        {"text": "a", "logprobs": {"content": [{"token": "a", "logprob": -1.0, "id": -7}]}},
    ],
)
def test_a_response_of_another_structure_is_not_retryable(choice: Any) -> None:
    with pytest.raises(ServerUnsupported, match="structure of completions"):
        parse_reply({"choices": [choice, {"text": "b", "index": 1}]})


def test_the_text_may_be_null_and_log_probabilities_missing() -> None:
    value = {
        "choices": [{"message": {"content": None}, "logprobs": None}, {"text": "a", "logprobs": {"content": None}}]
    }
    assert [(choice.text, choice.entries) for choice in parse_reply(value).choices] == [("", ()), ("a", ())]


FIELD_NAMES = st.sampled_from(
    [
        *(
            "choices",
            "index",
            "text",
            "message",
            "content",
            "logprobs",
            "tokens",
            "token_logprobs",
            "top_logprobs",
        ),
        *("token", "logprob", "bytes", "id", "finish_reason", "usage", "prompt_tokens", "completion_tokens"),
        *("prompt_tokens_details", "cached_tokens", "error", "detail"),
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 300),
    st.just(10**400),
    st.floats(),
    st.sampled_from(["", "a", "bytes:\\xe2", "\ufffd", "\ud800", "-1"]),
)
ANY_JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELD_NAMES, inner, max_size=5),
    max_leaves=30,
)
ENTRIES = st.fixed_dictionaries(
    {"token": LEAVES, "logprob": LEAVES},
    optional={"bytes": ANY_JSON, "id": LEAVES, "top_logprobs": ANY_JSON},
)
LOGPROBS = st.one_of(
    ANY_JSON,
    st.fixed_dictionaries({"content": st.lists(ENTRIES, max_size=3)}),
    st.fixed_dictionaries(
        {"tokens": st.lists(LEAVES, max_size=2), "token_logprobs": st.lists(LEAVES, max_size=2)},
        optional={"top_logprobs": ANY_JSON | st.lists(st.dictionaries(st.text(), LEAVES), max_size=2)},
    ),
)
CHOICES = st.fixed_dictionaries({"text": LEAVES | st.text(), "logprobs": LOGPROBS}, optional={"index": LEAVES})
ALMOST_VALID = st.fixed_dictionaries({"choices": st.lists(CHOICES | ANY_JSON, max_size=3), "usage": ANY_JSON})


@given(ANY_JSON | ALMOST_VALID)
def test_any_json_is_parsed_or_rejected(payload: Any) -> None:
    try:
        reply = parse_reply(payload)
    except (RetryableError, ServerUnsupported):
        return
    assert isinstance(reply, Reply)
    for choice in reply.choices:
        assert choice.text.encode() is not None
        matches_text(choice, STOP)
        for entry in choice.entries:
            is_merged(entry)
            has_valid_logprobs(entry)
            assert math.isnan(entry.logprob) or MIN_LOGPROB <= entry.logprob <= 0
            assert all(MIN_LOGPROB <= other.logprob <= 0 for other in entry.alternatives)
    for number in reply[1:]:
        assert number is None or number >= 0


@pytest.mark.parametrize(
    ("text", "pieces", "stop", "expected"),
    [
        ("ab", ["a", "b"], b"", True),
        ("ab", ["a", "c"], b"", False),
        ("ab", ["ba"], b"", False),
        ("ab", ["a", "b", "\n"], STOP, True),
        ("ab", ["a", "b\n", "c"], STOP, True),
        ("ab", ["a", "\nb"], STOP, True),
        ("a\ufffd", ["a", "c"], b"", True),
        ("", ["a"], b"", True),
        ("", [], b"", True),
    ],
)
def test_tokens_are_compared_with_the_text(text: str, pieces: list[str], stop: bytes, expected: bool) -> None:
    entries = tuple(Entry(Token(piece.encode()), -1.0, ()) for piece in pieces)
    assert matches_text(Choice(text, entries, "stop"), stop) is expected


def test_probabilities_must_not_sum_to_more_than_one() -> None:
    assert has_valid_logprobs(Entry(Token(b"a"), -0.7, scored(a=math.log(0.5), b=math.log(0.5))))
    assert not has_valid_logprobs(
        Entry(Token(b"a"), -0.7, scored(a=math.log(0.5), b=math.log(0.5), c=math.log(0.1)))
    )


def test_a_merged_entry_is_detected_by_id_or_probability() -> None:
    other = ScoredToken(Token(b"b", 98), -1.0)
    assert is_merged(Entry(Token(b"ab", 98), -1.0, (other,)))
    assert not is_merged(Entry(Token(b"b", 98), -1.0, (other,)))
    assert not is_merged(Entry(Token(b"c", 99), -2.0, (other,)))
    assert is_merged(Entry(Token(b"ab"), -0.5, scored(b=-0.5, c=-2.0)))
    assert not is_merged(Entry(Token(b"c"), -2.0, scored(a=-0.5, b=-1.0)))
