r"""What servers write is read into one form, or refused; nothing that a server can say breaks the reader."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import ServerUnfit
from fewparse.lm.http.client import Failed
from fewparse.lm.http.wire import (
    IMPOSSIBLE,
    UNREADABLE,
    Choice,
    Entry,
    Reply,
    merged,
    read_reply,
    sound,
    spells,
    token_bytes,
)
from fewparse.lm.model import ScoredToken, Token

STOP = b"\n"


def legacy(**told: Any) -> dict[str, Any]:
    lists = {"tokens": ["a", "b"], "token_logprobs": [-1.0, -2.0], "top_logprobs": [{"a": -1.0}, {"b": -2.0}]}
    return {"choices": [{"text": "ab", "index": 0, "logprobs": {**lists, **told}, "finish_reason": "length"}]}


def content(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "ab"}, "logprobs": {"content": list(entries)}}]}


def only_choice(answer: Any) -> Choice:
    (choice,) = read_reply(answer).choices
    return choice


def tokens(answer: Any) -> list[Token]:
    return [entry.token for entry in only_choice(answer).entries]


def scored(**logprobs: float) -> tuple[ScoredToken, ...]:
    return tuple(ScoredToken(Token(text.encode()), logprob) for text, logprob in logprobs.items())


def test_both_formats_say_the_same() -> None:
    top = [{"token": "b", "logprob": -2.0}, {"token": "a", "logprob": -1.0}]
    told = content({"token": "a", "logprob": -1.0, "top_logprobs": top}, {"token": "b", "logprob": -2.0})
    same = legacy(top_logprobs=[{"b": -2.0, "a": -1.0}, None])
    assert only_choice(told).entries == only_choice(same).entries
    assert only_choice(told).text == only_choice(same).text == "ab"
    assert only_choice(same).entries[0] == Entry(Token(b"a"), -1.0, scored(a=-1.0, b=-2.0))


def test_alternatives_come_best_first_however_they_are_told() -> None:
    top = {"c": -3.0, "a": -0.5, "b": -9999}
    assert only_choice(legacy(top_logprobs=[top, None])).entries[0].alternatives == scored(
        a=-0.5, c=-3.0, b=IMPOSSIBLE
    )


def test_the_sampled_token_is_no_bound_for_others_where_it_is_told_beside_the_best() -> None:
    told = only_choice(legacy(top_logprobs=[{"b": -0.5, "c": -1.5, "a": -9.0}, {"b": -2.0}]))
    assert told.entries[0].alternatives == scored(b=-0.5, c=-1.5)
    assert told.entries[1].alternatives == scored(b=-2.0)


def test_an_alternative_that_is_told_twice_counts_once() -> None:
    top = [{"token": "a", "id": 97, "logprob": -1.0}] * 2
    told = content({"token": "a", "id": 97, "logprob": -1.0, "top_logprobs": top})
    assert len(only_choice(told).entries[0].alternatives) == 1


@pytest.mark.parametrize("told", [-9999, -9999.0, -1e300, -math.inf, "-9999"])
def test_what_is_impossible_has_a_floor_and_what_is_certain_a_ceiling(told: Any) -> None:
    assert only_choice(legacy(token_logprobs=[told, 1e-9])).entries[0].logprob == IMPOSSIBLE
    assert only_choice(legacy(token_logprobs=[told, 1e-9])).entries[1].logprob == 0.0


@pytest.mark.parametrize("told", [math.nan, 0.5, math.inf, True, "nan"])
@pytest.mark.parametrize("alternative", [False, True])
def test_what_cannot_be_a_log_probability_is_refused(told: Any, alternative: bool) -> None:
    said = {"top_logprobs": [{"a": told}, None]} if alternative else {"token_logprobs": [told, -1.0]}
    with pytest.raises(ServerUnfit, match="log-probability of") as caught:
        read_reply(legacy(**said))
    assert caught.value.hint


@pytest.mark.parametrize("told", [{}, [], "half", 10**400])
def test_what_is_no_number_at_all_is_refused(told: Any) -> None:
    with pytest.raises(ServerUnfit, match="shape"):
        read_reply(legacy(token_logprobs=[told, -1.0]))


def test_a_token_without_a_log_probability_is_known_as_such() -> None:
    first = only_choice(legacy(token_logprobs=[None, -1.0], top_logprobs=[None, {"b": -1.0}])).entries[0]
    nameless = only_choice(content({"token": "a", "logprob": None})).entries[0]
    for entry in (first, nameless):
        assert math.isnan(entry.logprob)
        assert entry.alternatives == ()
        assert not sound(entry)


@pytest.mark.parametrize(
    ("shown", "spelt"),
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
def test_half_a_character_is_spelt_byte_by_byte_and_only_that(shown: str, spelt: bytes) -> None:
    assert token_bytes(shown) == spelt


@given(st.binary(min_size=1, max_size=8))
def test_any_bytes_can_be_told_in_both_formats(piece: bytes) -> None:
    escaped = "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)
    assert tokens(legacy(tokens=[escaped, "b"]))[0].bytes == piece
    assert tokens(content({"token": "?", "bytes": [*piece], "id": 5, "logprob": -1.0})) == [Token(piece, 5)]


@pytest.mark.parametrize("token", ["\ufffd", "a\ufffd", "half \ud83d"])
def test_a_token_whose_bytes_were_lost_is_no_text_that_could_be_said(token: str) -> None:
    assert tokens(legacy(tokens=[token, "b"]))[0] == UNREADABLE
    assert tokens(content({"token": token, "bytes": None, "logprob": -1.0})) == [UNREADABLE]
    assert tokens(content({"token": token, "bytes": [0xF0], "logprob": -1.0})) == [Token(b"\xf0")]


def test_choices_come_in_the_order_of_their_indices() -> None:
    told = {"choices": [{"text": str(i), "index": i} for i in (2, 0, 1)]}
    assert [choice.text for choice in read_reply(told).choices] == ["0", "1", "2"]


def test_what_a_server_does_not_count_is_unknown_not_zero() -> None:
    reply = read_reply(legacy())
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens) == (None, None, 0)
    usage = {"prompt_tokens": 7, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 3}}
    assert read_reply({**legacy(), "usage": usage})[1:] == (7, 0, 3)


@pytest.mark.parametrize("nonsense", ["7", -7, 7.5, True, [7], None])
def test_a_count_that_is_none_is_not_counted_with(nonsense: Any) -> None:
    usage = {"prompt_tokens": nonsense, "completion_tokens": nonsense}
    details = {"prompt_tokens_details": {"cached_tokens": nonsense}}
    assert read_reply({**legacy(), "usage": {**usage, **details}})[1:] == (None, None, 0)


@pytest.mark.parametrize("answer", [{}, {"choices": None}, {"choices": "none"}, [], None, "no"])
def test_an_answer_without_choices_may_be_better_the_next_time(answer: Any) -> None:
    with pytest.raises(Failed, match="no completions"):
        read_reply(answer)


def test_an_error_in_place_of_choices_is_passed_on() -> None:
    with pytest.raises(Failed, match="no completions: upstream is busy"):
        read_reply({"error": {"message": "upstream is busy", "code": 502}})


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
def test_an_answer_of_another_shape_would_be_said_again(choice: Any) -> None:
    with pytest.raises(ServerUnfit, match="shape of completions"):
        read_reply({"choices": [choice, {"text": "b", "index": 1}]})


def test_a_text_may_be_null_and_log_probabilities_missing() -> None:
    told = {
        "choices": [{"message": {"content": None}, "logprobs": None}, {"text": "a", "logprobs": {"content": None}}]
    }
    assert [(choice.text, choice.entries) for choice in read_reply(told).choices] == [("", ()), ("a", ())]


KEYS = st.sampled_from(
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
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=30
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
NEARLY = st.fixed_dictionaries({"choices": st.lists(CHOICES | ANY_JSON, max_size=3), "usage": ANY_JSON})


@given(ANY_JSON | NEARLY)
def test_whatever_json_comes_it_is_read_or_refused(answer: Any) -> None:
    try:
        reply = read_reply(answer)
    except (Failed, ServerUnfit):
        return
    assert isinstance(reply, Reply)
    for choice in reply.choices:
        assert choice.text.encode() is not None
        spells(choice, STOP)
        for entry in choice.entries:
            merged(entry)
            sound(entry)
            assert math.isnan(entry.logprob) or IMPOSSIBLE <= entry.logprob <= 0
            assert all(IMPOSSIBLE <= other.logprob <= 0 for other in entry.alternatives)
    for number in reply[1:]:
        assert number is None or number >= 0


@pytest.mark.parametrize(
    ("text", "pieces", "stop", "right"),
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
def test_tokens_are_compared_with_the_text_that_they_should_spell(
    text: str, pieces: list[str], stop: bytes, right: bool
) -> None:
    entries = tuple(Entry(Token(piece.encode()), -1.0, ()) for piece in pieces)
    assert spells(Choice(text, entries, "stop"), stop) is right


def test_alternatives_cannot_add_up_to_more_than_everything() -> None:
    assert sound(Entry(Token(b"a"), -0.7, scored(a=math.log(0.5), b=math.log(0.5))))
    assert not sound(Entry(Token(b"a"), -0.7, scored(a=math.log(0.5), b=math.log(0.5), c=math.log(0.1))))


def test_an_entry_of_several_tokens_is_known_by_its_id_or_by_being_too_likely() -> None:
    other = ScoredToken(Token(b"b", 98), -1.0)
    assert merged(Entry(Token(b"ab", 98), -1.0, (other,)))
    assert not merged(Entry(Token(b"b", 98), -1.0, (other,)))
    assert not merged(Entry(Token(b"c", 99), -2.0, (other,)))
    assert merged(Entry(Token(b"ab"), -0.5, scored(b=-0.5, c=-2.0)))
    assert not merged(Entry(Token(b"c"), -2.0, scored(a=-0.5, b=-1.0)))
