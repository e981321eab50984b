"""Servers that return wrong data: scores are correct nevertheless, or the server is reported as unfit.

The toy model is the oracle: it has every log-probability.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from fewparse.errors import FewparseError, ServerUnsupported
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.http.wire import UNREADABLE
from fewparse.lm.model import Completion, NextTokens, Prefix, Sampling, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Message, Part, Prompt
from support.prompts import plain_prompt
from support.remote_models import capabilities_of, model_at, toy_model
from support.server_behaviours import COMPLIANT, Behaviour
from support.toy_model import END, TOKENS, ToyModel, ends
from support.toy_responses import CompletionRequest
from support.toy_server import ToyServer, rendered

ORACLE = ToyModel()
IDS = {text: number for number, text in enumerate(TOKENS) if text}
CONTENT = Behaviour(logprob_format="content")
EXACT = Behaviour(logprob_format="content", tokenize="llama.cpp", models_report="meta")
STOP = b"\n"
PROMPTS = [plain_prompt(text) for text in ("pear", "a plum", "cabbage")]
SAMPLINGS = [
    Sampling(n, temperature, 12, STOP, seed, alternatives)
    for n, temperature, seed, alternatives in [(5, 1.0, 1, 20), (4, 0.5, 2, 5), (3, 1.5, 3, 40), (2, 0.0, 4, 3)]
]
PREFIX = (Token(b"a", 97), Token(b"b", 98))
NOISE = 1e-6


def context_of(prompt: Prompt, chat: bool, output: Prefix) -> list[int]:
    """Return the context of the toy model before its next token."""
    if not chat:
        return [*prompt.text.encode(), *(IDS[token.bytes] for token in output)]
    messages = [{"role": m.role, "content": m.content} for m in prompt.messages] or [
        {"role": "user", "content": prompt.text}
    ]
    return [*rendered(messages).encode(), *(IDS[token.bytes] for token in output)]


def end_logprobs(row: Sequence[float]) -> list[float]:
    return [logprob for i, logprob in enumerate(row) if ends(i, STOP)]


def log_sum(logprobs: Sequence[float]) -> float:
    return math.log(math.fsum(map(math.exp, logprobs)))


def remaining(found: NextTokens) -> float:
    """The probability of the tokens that are not listed."""
    return 1 - math.fsum(math.exp(scored.logprob) for scored in found.best)


def check_next_tokens(found: NextTokens, row: Sequence[float]) -> None:
    """Check the log-probability of every token and of the end.

    End tokens below the bound may not be listed: if none is listed, the bound is used for the end.
    """
    for token, logprob in found.best:
        assert logprob == pytest.approx(row[IDS[token.bytes]], abs=NOISE)
    assert list(found.best) == sorted(found.best, key=lambda scored: -scored.logprob)
    listed = [row[i] for i in range(len(row)) if ends(i, STOP) and row[i] > found.bound + NOISE]
    if listed:
        assert log_sum(listed) - NOISE <= found.end_logprob <= log_sum(end_logprobs(row)) + NOISE
    else:
        assert found.end_logprob >= max(end_logprobs(row)) - NOISE
    assert math.exp(found.end_logprob) <= remaining(found) + NOISE or not found.best


def check(completion: Completion, prompt: Prompt, prefix: Prefix = (), chat: bool = False) -> None:
    """Check every position of a completion against the model."""
    output = prefix
    for i, (token, logprob) in enumerate(zip(completion.tokens, completion.logprobs, strict=True)):
        row = ORACLE.logprobs(context_of(prompt, chat, output))
        if i < len(completion.positions):
            check_next_tokens(completion.positions[i], row)
        if token == UNREADABLE:
            assert i == len(completion.tokens) - 1, "an unreadable token is the last one"
            return
        assert logprob == pytest.approx(row[IDS[token.bytes]], abs=NOISE)
        output = (*output, token)
    if completion.ended:
        last = completion.positions[len(completion.tokens)]
        try:
            check_next_tokens(last, ORACLE.logprobs(context_of(prompt, chat, output)))
        except AssertionError:  # a separate request, for which the server tokenized the text again
            bytewise = tuple(Token(bytes([byte])) for token in output for byte in token.bytes)
            assert bytewise != tuple(Token(token.bytes) for token in output)
            check_next_tokens(last, ORACLE.logprobs(context_of(prompt, chat, bytewise)))


def check_model(model: RemoteModel, chat: bool = False, exact: bool = False) -> int:
    """Compare all results of a model with the oracle; return the number of compared tokens."""
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
            results = model.next_tokens(prompt, prefixes, 10, STOP, Usage())
            for prefix, found in zip(prefixes, results, strict=True):
                row = ORACLE.logprobs(context_of(prompt, chat, prefix))
                check_next_tokens(found, row)
                compared += len(found.best)
            check_scores(model, prompt, exact)
    return compared


def check_scores(model: RemoteModel, prompt: Prompt, exact: bool) -> None:
    """Check the score of a text: exact, or at least an upper bound if the server lists too little."""
    output = tuple(Token(bytes([byte]), byte) for byte in b"abcab")
    scores = model.score(prompt, [(), output[:2]], [output, output[2:]], Usage())
    for begin, found in zip((0, 2), scores, strict=True):
        rows = [ORACLE.logprobs(context_of(prompt, False, output[:i])) for i in range(begin, len(output))]
        true = [row[token.id] for row, token in zip(rows, output[begin:], strict=True)]
        if exact:
            assert math.fsum(found) == pytest.approx(math.fsum(true), abs=NOISE)
        assert math.fsum(found) >= math.fsum(true) - NOISE


SUPPORTED = {
    "compliant": COMPLIANT,
    "compliant, content format": CONTENT,
    "exact": EXACT,
    "n ignored": Behaviour(n="ignored"),
    "n rejected": Behaviour(n="rejected"),
    "few samples per request": Behaviour(max_n=3),
    "first prompt only": Behaviour(first_prompt_only=True),
    "no lists": Behaviour(accepts_prompt_lists=False),
    "few alternatives": Behaviour(max_logprobs=5),
    "silently capped": Behaviour(capped_logprobs=5),
    "silently capped, content format": replace(CONTENT, capped_logprobs=5),
    "tempered": Behaviour(tempered_logprobs=True),
    "tempered, content format": replace(CONTENT, tempered_logprobs=True),
    "split characters merged": replace(EXACT, merged_tokens="split_characters"),
    "merged often": replace(EXACT, merged_tokens="often"),
    "same samples": Behaviour(same_samples=True),
    "stop hidden": Behaviour(stop="hidden"),
    "stop hidden, content format": replace(CONTENT, stop="hidden"),
    "stop ignored": Behaviour(stop="ignored"),
    "seed ignored": Behaviour(seed="ignored"),
    "echo off by one": Behaviour(echo="off_by_one"),
    "echo ignored": Behaviour(echo="ignored"),
    "end hidden": Behaviour(end_shown=False),
    "end without text": Behaviour(end_text=""),
    "usage not reported": Behaviour(reports_usage=False),
    "usage of the first choice": Behaviour(usage_of_first_choice=True),
    "reordered choices": Behaviour(reorders_choices=True),
    "ids as text": replace(EXACT, accepts_token_ids=False),
    "ids not reported": replace(EXACT, reports_token_ids=False),
    "one token for max_tokens 0": Behaviour(max_tokens_zero="one_token"),
    "top_k unknown": Behaviour(rejected_fields=frozenset({"top_k", "min_p"})),
}


@pytest.mark.parametrize("behaviour", SUPPORTED.values(), ids=SUPPORTED.keys())
def test_every_score_is_correct_for_each_behaviour(behaviour: Behaviour) -> None:
    lists_all = behaviour.max_logprobs is None and behaviour.capped_logprobs is None
    with toy_model(behaviour) as (model, _):
        assert check_model(model, exact=lists_all) > 100


CHAT_BEHAVIOURS = [
    "compliant",
    "n ignored",
    "silently capped",
    "tempered",
    "same samples",
    "stop hidden",
    "stop ignored",
]


@pytest.mark.parametrize("name", [*CHAT_BEHAVIOURS, "reordered choices", "usage not reported"])
@pytest.mark.parametrize("end_shown", [False, True])
def test_every_score_of_a_chat_is_correct(name: str, end_shown: bool) -> None:
    behaviour = replace(SUPPORTED[name], end_shown_in_chat=end_shown)
    with toy_model(behaviour, chat=True) as (model, _):
        assert check_model(model, chat=True) > 50


@pytest.mark.parametrize("reports_token_ids", [False, True])
@pytest.mark.parametrize("chat", [False, True])
def test_merged_tokens_are_detected_without_a_vocabulary_if_all_alternatives_are_listed(
    reports_token_ids: bool, chat: bool
) -> None:
    behaviour = replace(CONTENT, merged_tokens="often", reports_token_ids=reports_token_ids, reports_usage=False)
    with toy_model(behaviour, chat) as (model, _):
        unreadable = 0
        for prompt in PROMPTS:
            for completion in model.sample(prompt, [()], Sampling(10, 0.7, 12, STOP, 5, 300), Usage())[0]:
                check(completion, prompt, chat=chat)
                unreadable += UNREADABLE in completion.tokens
        assert unreadable > 5


REPORTED: dict[str, tuple[Behaviour, str]] = {
    "too many choices": (Behaviour(extra_choices=2), "returned .* instead of"),
    "merged often": (Behaviour(merged_tokens="often"), "merges some|sum to more"),
    "merged often, content format": (replace(CONTENT, merged_tokens="often"), "counts .* tokens but lists"),
}


@pytest.mark.parametrize(("behaviour", "message"), REPORTED.values(), ids=REPORTED.keys())
def test_unusable_behaviour_is_reported(behaviour: Behaviour, message: str) -> None:
    with pytest.raises(ServerUnsupported, match=message) as caught, toy_model(behaviour) as (model, _):
        check_model(model)
    assert caught.value.hint


@contextmanager
def changed(probed: Behaviour, actual: Behaviour, chat: bool = False) -> Iterator[RemoteModel]:
    """A model whose server behaves differently than when it was probed."""
    with ToyServer(actual) as toy, model_at(toy.url, capabilities_of(probed, chat)) as model:
        yield model


LATER_CHANGES = {
    name: (COMPLIANT, behaviour)
    for name, behaviour in SUPPORTED.items()
    if not name.startswith(
        ("exact", "tempered", "top_k", "compliant", "echo off", "ids", "split characters", "merged")
    )
    and "content format" not in name
} | {
    "no log-probabilities": (COMPLIANT, Behaviour(logprob_format="none")),
    "too many choices": (COMPLIANT, Behaviour(extra_choices=2)),
    "too few choices": (COMPLIANT, Behaviour(extra_choices=-1)),
    "another format": (COMPLIANT, CONTENT),
    "the old format": (CONTENT, COMPLIANT),
    "ids no longer accepted": (EXACT, replace(EXACT, accepts_token_ids=False)),
    "ids no longer reported": (EXACT, replace(EXACT, reports_token_ids=False)),
    "fewer alternatives, vocabulary known": (EXACT, replace(EXACT, capped_logprobs=7)),
    "merged, vocabulary unknown": (COMPLIANT, Behaviour(merged_tokens="often")),
    "merged, vocabulary known": (EXACT, replace(EXACT, merged_tokens="often")),
    "end hidden, vocabulary known": (EXACT, replace(EXACT, end_shown=False)),
    "stop hidden, vocabulary known": (EXACT, replace(EXACT, stop="hidden")),
    "end without text, vocabulary known": (EXACT, replace(EXACT, end_text="")),
    "a web page": (COMPLIANT, Behaviour(html=True)),
    "another model": (COMPLIANT, Behaviour(model="other")),
}


@pytest.mark.parametrize(("probed", "actual"), LATER_CHANGES.values(), ids=LATER_CHANGES.keys())
def test_a_change_of_behaviour_after_the_probe_never_gives_a_wrong_score(
    probed: Behaviour, actual: Behaviour
) -> None:
    with changed(probed, actual) as model, suppress(FewparseError):
        check_model(model)


ALWAYS_REPORTED = [
    "no log-probabilities",
    "too many choices",
    "first prompt only",
    "echo ignored",
    "a web page",
    "another model",
]


@pytest.mark.parametrize("name", ALWAYS_REPORTED)
def test_an_unusable_change_after_the_probe_is_reported(name: str) -> None:
    with changed(*LATER_CHANGES[name]) as model, pytest.raises(FewparseError) as caught:
        check_model(model)
    assert caught.value.hint


class CorruptingServer(ToyServer):
    """Changes every entry of the log-probabilities."""

    def __init__(self, behaviour: Behaviour, **changes: Any) -> None:
        super().__init__(behaviour)
        self._changes = changes

    def _response(self, request: CompletionRequest, chat: bool) -> dict[str, Any]:
        response = super()._response(request, chat)
        for choice in response["choices"]:
            for entry in choice["logprobs"]["content"]:
                entry.update(self._changes)
                for other in entry["top_logprobs"]:
                    other.update({k: v for k, v in self._changes.items() if k == "logprob"})
        return response


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
def test_invalid_log_probabilities_are_rejected_without_retry(changes: dict[str, Any]) -> None:
    with CorruptingServer(CONTENT, **changes) as toy, model_at(toy.url, capabilities_of(CONTENT)) as model:
        with pytest.raises(ServerUnsupported) as caught:
            model.sample(PROMPTS[0], [()], SAMPLINGS[0], Usage())
        assert caught.value.hint
        assert len(toy.requests) == 1


def test_missing_samples_are_requested_one_by_one_and_differ() -> None:
    with ToyServer(Behaviour(n="ignored")) as toy, model_at(toy.url, capabilities_of(COMPLIANT)) as model:
        usage = Usage()
        (group,) = model.sample(PROMPTS[0], [()], SAMPLINGS[0], usage)
        assert len({completion.tokens for completion in group}) > 1
        assert (len(group), len(toy.requests), usage.requests) == (5, 5, 5)


def test_identical_samples_lead_to_one_request_per_sample() -> None:
    with toy_model(Behaviour(same_samples=True)) as (model, toy):
        (group,) = model.sample(PROMPTS[0], [()], SAMPLINGS[0], Usage())
        assert len({completion.tokens for completion in group}) > 1
        assert [request.body.get("n") for request in toy.requests] == [None] * 5


def test_a_conversation_is_scored_with_its_turns() -> None:
    turns = (Message("user", "a pear"), Message("assistant", "ab"), Message("user", "a plum"))
    prompt = Prompt((Part("unused", False),), turns)
    with toy_model(Behaviour(end_shown_in_chat=True), chat=True) as (model, _):
        completions = model.sample(prompt, [()], SAMPLINGS[0], Usage())[0]
    assert len(completions) == SAMPLINGS[0].n
    for completion in completions:
        check(completion, prompt, chat=True)


def test_the_oracle_rejects_wrong_scores() -> None:
    """The checks of the tests above fail for wrong scores."""
    token = Token(b"a", 97)
    row = ORACLE.logprobs(context_of(PROMPTS[0], False, ()))
    right = Completion((token,), (row[97],), (), False)
    check(right, PROMPTS[0])
    for wrong in (row[97] + 1e-3, row[97] - 1e-3):
        with pytest.raises(AssertionError):
            check(right._replace(logprobs=(wrong,)), PROMPTS[0])
    check_next_tokens(NextTokens((), log_sum(end_logprobs(row)), bound=-9.0), row)
    for end in (0.0, log_sum(end_logprobs(row)) + 1e-3, row[END] - 1e-3):
        with pytest.raises(AssertionError):
            check_next_tokens(NextTokens((), end, bound=-9.0), row)
