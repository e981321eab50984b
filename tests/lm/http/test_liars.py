"""Servers that do not do as they say: found out and named, or worked around with the scores that are right.

The toy model itself is the judge: it knows every log-probability by heart.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from fewparse.errors import FewparseError, ServerUnfit
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.http.wire import UNREADABLE
from fewparse.lm.model import Completion, NextTokens, Prefix, Sampling, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Message, Part, Prompt
from support.remote_models import abilities_of, model_at, toy_model
from support.server_behaviours import HONEST, Manners
from support.toy_model import END, TOKENS, ToyModel, ends
from support.toy_server import ToyServer, rendered

ORACLE = ToyModel()
IDS = {text: number for number, text in enumerate(TOKENS) if text}
CONTENT = Manners(logprob_format="content")
EXACT = Manners(logprob_format="content", tokenize="llama.cpp", models_tell="meta")
STOP = b"\n"
PROMPTS = [Prompt((Part(text, False),)) for text in ("pear", "a plum", "cabbage")]
SAMPLINGS = [
    Sampling(n, temperature, 12, STOP, seed, alternatives)
    for n, temperature, seed, alternatives in [(5, 1.0, 1, 20), (4, 0.5, 2, 5), (3, 1.5, 3, 40), (2, 0.0, 4, 3)]
]
PREFIX = (Token(b"a", 97), Token(b"b", 98))
NOISE = 1e-6


def before(prompt: Prompt, chat: bool, said: Prefix) -> list[int]:
    """What the toy model has read before its next token."""
    if not chat:
        return [*prompt.text.encode(), *(IDS[token.bytes] for token in said)]
    messages = [{"role": m.role, "content": m.content} for m in prompt.messages] or [
        {"role": "user", "content": prompt.text}
    ]
    return [*rendered(messages).encode(), *(IDS[token.bytes] for token in said)]


def ends_of(row: Sequence[float]) -> list[float]:
    return [logprob for i, logprob in enumerate(row) if ends(i, STOP)]


def log_sum(logprobs: Sequence[float]) -> float:
    return math.log(math.fsum(map(math.exp, logprobs)))


def left(thought: NextTokens) -> float:
    """All that the tokens which are told leave to others."""
    return 1 - math.fsum(math.exp(scored.logprob) for scored in thought.best)


def check_thought(thought: NextTokens, row: Sequence[float]) -> None:
    """Every token as likely as it is, none left out that is likelier than the bound; an ending as likely as it is.

    Of the tokens that end, those beyond the bound may not be told: if none is, the bound stands for them.
    """
    for token, logprob in thought.best:
        assert logprob == pytest.approx(row[IDS[token.bytes]], abs=NOISE)
    assert list(thought.best) == sorted(thought.best, key=lambda scored: -scored.logprob)
    told = [row[i] for i in range(len(row)) if ends(i, STOP) and row[i] > thought.bound + NOISE]
    if told:
        assert log_sum(told) - NOISE <= thought.end_logprob <= log_sum(ends_of(row)) + NOISE
    else:
        assert thought.end_logprob >= max(ends_of(row)) - NOISE
    assert math.exp(thought.end_logprob) <= left(thought) + NOISE or not thought.best


def check(completion: Completion, prompt: Prompt, prefix: Prefix = (), chat: bool = False) -> None:
    """What a completion tells is what the model thinks at each of its places."""
    said = prefix
    for i, (token, logprob) in enumerate(zip(completion.tokens, completion.logprobs, strict=True)):
        row = ORACLE.logprobs(before(prompt, chat, said))
        if i < len(completion.positions):
            check_thought(completion.positions[i], row)
        if token == UNREADABLE:
            assert i == len(completion.tokens) - 1, "nothing comes behind what cannot be read"
            return
        assert logprob == pytest.approx(row[IDS[token.bytes]], abs=NOISE)
        said = (*said, token)
    if completion.ended:
        last = completion.positions[len(completion.tokens)]
        try:
            check_thought(last, ORACLE.logprobs(before(prompt, chat, said)))
        except AssertionError:  # asked apart, and the server has cut the text anew
            anew = tuple(Token(bytes([byte])) for token in said for byte in token.bytes)
            assert anew != tuple(Token(token.bytes) for token in said)
            check_thought(last, ORACLE.logprobs(before(prompt, chat, anew)))


def check_model(model: RemoteModel, chat: bool = False, exact: bool = False) -> int:
    """All that search asks, compared with the oracle; how many tokens were compared."""
    compared = 0
    prefixes: list[Prefix] = [()] if chat else [(), PREFIX]
    for prompt in PROMPTS:
        for sampling in SAMPLINGS:
            for prefix, group in zip(prefixes, model.sample(prompt, prefixes, sampling, Usage()), strict=True):
                assert len(group) == sampling.n
                for completion in group:
                    check(completion, prompt, prefix, chat)
                    compared += len(completion.tokens)
        if not chat:
            thoughts = model.next_tokens(prompt, prefixes, 10, STOP, Usage())
            for prefix, thought in zip(prefixes, thoughts, strict=True):
                row = ORACLE.logprobs(before(prompt, chat, prefix))
                check_thought(thought, row)
                compared += len(thought.best)
            check_scores(model, prompt, exact)
    return compared


def check_scores(model: RemoteModel, prompt: Prompt, exact: bool) -> None:
    """The score of a text; never worse than it is where the server tells too little."""
    said = tuple(Token(bytes([byte]), byte) for byte in b"abcab")
    scores = model.score(prompt, [(), said[:2]], [said, said[2:]], Usage())
    for begin, found in zip((0, 2), scores, strict=True):
        rows = [ORACLE.logprobs(before(prompt, False, said[:i])) for i in range(begin, len(said))]
        true = [row[token.id] for row, token in zip(rows, said[begin:], strict=True)]
        if exact:
            assert math.fsum(found) == pytest.approx(math.fsum(true), abs=NOISE)
        assert math.fsum(found) >= math.fsum(true) - NOISE


WORKED_AROUND = {
    "honest": HONEST,
    "honest, the other format": CONTENT,
    "exact": EXACT,
    "n ignored": Manners(n="ignored"),
    "n refused": Manners(n="refused"),
    "few at once": Manners(most_n=3),
    "lists answered once": Manners(lists_answered_once=True),
    "no lists": Manners(takes_lists=False),
    "few alternatives": Manners(most_logprobs=5),
    "silently capped": Manners(silently_capped_logprobs=5),
    "silently capped, the other format": replace(CONTENT, silently_capped_logprobs=5),
    "tempered": Manners(tempered_logprobs=True),
    "tempered, the other format": replace(CONTENT, tempered_logprobs=True),
    "characters in halves": replace(EXACT, merged_tokens="split_characters"),
    "merged often": replace(EXACT, merged_tokens="often"),
    "same samples": Manners(same_samples=True),
    "stop hidden": Manners(stop="hidden"),
    "stop hidden, the other format": replace(CONTENT, stop="hidden"),
    "stop ignored": Manners(stop="ignored"),
    "seed ignored": Manners(seed="ignored"),
    "echo off by one": Manners(echo="off_by_one"),
    "echo ignored": Manners(echo="ignored"),
    "end hidden": Manners(end_shown=False),
    "end without text": Manners(end_text=""),
    "usage not told": Manners(usage_told=False),
    "usage of the first": Manners(usage_of_first=True),
    "reordered": Manners(reordered=True),
    "ids as text": replace(EXACT, takes_ids=False),
    "ids not told": replace(EXACT, ids_told=False),
    "one token for none": Manners(max_tokens_zero="one_token"),
    "top_k unknown": Manners(refused_fields=frozenset({"top_k", "min_p"})),
}


@pytest.mark.parametrize("manners", WORKED_AROUND.values(), ids=WORKED_AROUND.keys())
def test_every_score_is_right_whatever_the_server_does(manners: Manners) -> None:
    tells_all = manners.most_logprobs is None and manners.silently_capped_logprobs is None
    with toy_model(manners) as (model, _):
        assert check_model(model, exact=tells_all) > 100


CHATTING = ["honest", "n ignored", "silently capped", "tempered", "same samples", "stop hidden", "stop ignored"]


@pytest.mark.parametrize("name", [*CHATTING, "reordered", "usage not told"])
@pytest.mark.parametrize("end_shown", [False, True])
def test_every_score_of_a_chat_is_right_too(name: str, end_shown: bool) -> None:
    manners = replace(WORKED_AROUND[name], end_shown_in_chat=end_shown)
    with toy_model(manners, chat=True) as (model, _):
        assert check_model(model, chat=True) > 50


@pytest.mark.parametrize("ids_told", [False, True])
@pytest.mark.parametrize("chat", [False, True])
def test_tokens_in_one_are_seen_without_a_vocabulary_where_all_alternatives_are_told(
    ids_told: bool, chat: bool
) -> None:
    manners = replace(CONTENT, merged_tokens="often", ids_told=ids_told, usage_told=False)
    with toy_model(manners, chat) as (model, _):
        unreadable = 0
        for prompt in PROMPTS:
            for completion in model.sample(prompt, [()], Sampling(10, 0.7, 12, STOP, 5, 300), Usage())[0]:
                check(completion, prompt, chat=chat)
                unreadable += UNREADABLE in completion.tokens
        assert unreadable > 5


NAMED: dict[str, tuple[Manners, str]] = {
    "no log-probabilities": (Manners(logprob_format="none"), "gives no log-probabilities"),
    "too many choices": (Manners(wrong_choices=2), "asked for .* and gave"),
    "merged often": (Manners(merged_tokens="often"), "merges some|add up to more"),
    "merged often, the other format": (replace(CONTENT, merged_tokens="often"), "counts .* tokens and tells"),
}


@pytest.mark.parametrize(("manners", "words"), NAMED.values(), ids=NAMED.keys())
def test_what_cannot_be_worked_around_is_named(manners: Manners, words: str) -> None:
    with pytest.raises(ServerUnfit, match=words) as caught, toy_model(manners) as (model, _):
        check_model(model)
    assert caught.value.hint


@contextmanager
def changed(honest: Manners, lying: Manners, chat: bool = False) -> Iterator[RemoteModel]:
    """A model whose server behaves otherwise than when it was probed."""
    with ToyServer(lying) as toy, model_at(toy.url, abilities_of(honest, chat)) as model:
        yield model


LATER_LIES = {
    name: (HONEST, manners)
    for name, manners in WORKED_AROUND.items()
    if not name.startswith(("exact", "tempered", "top_k", "honest", "echo off", "ids", "characters", "merged"))
    and "other format" not in name
} | {
    "no log-probabilities": (HONEST, Manners(logprob_format="none")),
    "too many choices": (HONEST, Manners(wrong_choices=2)),
    "too few choices": (HONEST, Manners(wrong_choices=-1)),
    "another format": (HONEST, CONTENT),
    "the old format": (CONTENT, HONEST),
    "ids no longer taken": (EXACT, replace(EXACT, takes_ids=False)),
    "ids no longer told": (EXACT, replace(EXACT, ids_told=False)),
    "fewer alternatives, vocabulary known": (EXACT, replace(EXACT, silently_capped_logprobs=7)),
    "merged, vocabulary unknown": (HONEST, Manners(merged_tokens="often")),
    "merged, vocabulary known": (EXACT, replace(EXACT, merged_tokens="often")),
    "end hidden, vocabulary known": (EXACT, replace(EXACT, end_shown=False)),
    "stop hidden, vocabulary known": (EXACT, replace(EXACT, stop="hidden")),
    "end without text, vocabulary known": (EXACT, replace(EXACT, end_text="")),
    "a web page": (HONEST, Manners(html=True)),
    "another model": (HONEST, Manners(model="other")),
}


@pytest.mark.parametrize(("honest", "lying"), LATER_LIES.values(), ids=LATER_LIES.keys())
def test_a_server_that_lies_only_after_the_probe_never_makes_a_wrong_score(
    honest: Manners, lying: Manners
) -> None:
    with changed(honest, lying) as model, suppress(FewparseError):
        check_model(model)


ALWAYS_NAMED_LATER = [
    "no log-probabilities",
    "too many choices",
    "lists answered once",
    "echo ignored",
    "a web page",
    "another model",
]


@pytest.mark.parametrize("name", ALWAYS_NAMED_LATER)
def test_a_later_lie_that_leaves_nothing_to_work_with_is_named(name: str) -> None:
    with changed(*LATER_LIES[name]) as model, pytest.raises(FewparseError) as caught:
        check_model(model)
    assert caught.value.hint


class Twisting(ToyServer):
    """Answers well, and then changes every entry of the log-probabilities."""

    def __init__(self, manners: Manners, **changes: Any) -> None:
        super().__init__(manners)
        self._changes = changes

    def _told(self, asked: Any, chat: bool) -> dict[str, Any]:
        told = super()._told(asked, chat)
        for choice in told["choices"]:
            for entry in choice["logprobs"]["content"]:
                entry.update(self._changes)
                for other in entry["top_logprobs"]:
                    other.update({k: v for k, v in self._changes.items() if k == "logprob"})
        return told


@pytest.mark.parametrize(
    "changes",
    [
        {"logprob": math.nan},
        {"logprob": None},
        {"logprob": 0.5},
        {"logprob": 0.0},
        {"logprob": "many"},
        {"token": "z", "bytes": [122]},
        {"top_logprobs": [{"token": "a", "bytes": [97], "logprob": -0.1}, {"token": "b", "logprob": -0.1}]},
    ],
    ids=str,
)
def test_log_probabilities_that_cannot_be_are_refused_at_once(changes: dict[str, Any]) -> None:
    with Twisting(CONTENT, **changes) as toy, model_at(toy.url, abilities_of(CONTENT)) as model:
        with pytest.raises(ServerUnfit) as caught:
            model.sample(PROMPTS[0], [()], SAMPLINGS[0], Usage())
        assert caught.value.hint
        assert len(toy.requests) == 1


def test_samples_that_are_missing_are_asked_for_one_by_one_and_differ() -> None:
    with ToyServer(Manners(n="ignored")) as toy, model_at(toy.url, abilities_of(HONEST)) as model:
        usage = Usage()
        (group,) = model.sample(PROMPTS[0], [()], SAMPLINGS[0], usage)
        assert len({completion.tokens for completion in group}) > 1
        assert (len(group), len(toy.requests), usage.requests) == (5, 5, 5)


def test_a_server_whose_samples_are_all_the_same_is_asked_for_each_of_them() -> None:
    with toy_model(Manners(same_samples=True)) as (model, toy):
        (group,) = model.sample(PROMPTS[0], [()], SAMPLINGS[0], Usage())
        assert len({completion.tokens for completion in group}) > 1
        assert [request.body.get("n") for request in toy.requests] == [None] * 5


def test_a_conversation_is_scored_by_its_turns() -> None:
    turns = (Message("user", "a pear"), Message("assistant", "ab"), Message("user", "a plum"))
    prompt = Prompt((Part("unused", False),), turns)
    with toy_model(Manners(end_shown_in_chat=True), chat=True) as (model, _):
        for completion in model.sample(prompt, [()], SAMPLINGS[0], Usage())[0]:
            check(completion, prompt, chat=True)


def test_the_oracle_notices_a_wrong_score() -> None:
    """The judge of all tests above can say no."""
    token = Token(b"a", 97)
    row = ORACLE.logprobs(before(PROMPTS[0], False, ()))
    right = Completion((token,), (row[97],), (), False)
    check(right, PROMPTS[0])
    for wrong in (row[97] + 1e-3, row[97] - 1e-3):
        with pytest.raises(AssertionError):
            check(right._replace(logprobs=(wrong,)), PROMPTS[0])
    check_thought(NextTokens((), log_sum(ends_of(row)), bound=-9.0), row)
    for end in (0.0, log_sum(ends_of(row)) + 1e-3, row[END] - 1e-3):
        with pytest.raises(AssertionError):
            check_thought(NextTokens((), end, bound=-9.0), row)
