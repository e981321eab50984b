"""The laws of a language model. Every implementation is run against them: add it to `subject`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.http.completions import CompletionsModel
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.local import LocalModel
from fewparse.lm.model import Completion, LanguageModel, NextTokens, Prefix, Sampling
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt
from fewparse.vocabulary import Mask, Vocabulary
from support.adapters import write_adapter
from support.remote_models import toy_completions
from support.server_behaviours import COMPLIANT, LLAMA_CPP
from support.toy_model import ToyModel

STOP = b"\n"
NO_STOP = b"\0 no token begins like this"
NOISE = 1.0  # nats that the shape of a batch may cost a quantised model
FRUITS = Prompt((Part("Fruits: apple, pear,", False),))
COUNTING = Prompt((Part("One, two, three, four,", False),))
SAMPLING = Sampling(n=3, temperature=1.0, max_tokens=6, seed=7, alternatives=4)


@pytest.fixture(scope="module")
def toy_served() -> Iterator[CompletionsModel]:
    """As llama.cpp does it, but for grammars: it tells all its tokens, and hides the stop."""
    with toy_completions(replace(LLAMA_CPP, grammar=None)) as opened:
        yield opened


@pytest.fixture(scope="module")
def toy_served_as_text() -> Iterator[CompletionsModel]:
    """As OpenAI does it: neither ids nor a vocabulary, prefixes go as text."""
    with toy_completions(COMPLIANT) as opened:
        yield opened


@pytest.fixture(scope="module")
def adapted_model(model: EmbeddedModel, tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    """The embedded model under an adapter, beside the bare one."""
    return model.adapted(read_adapter(write_adapter(tmp_path_factory.mktemp("adapter") / "some.gguf")))


@pytest.fixture(
    params=[
        *("model", "adapted_model", "transformers_model", "toy"),
        *("served_model", "toy_served", "toy_served_as_text"),
    ]
)
def subject(request: pytest.FixtureRequest) -> LanguageModel:
    opened: LanguageModel = ToyModel() if request.param == "toy" else request.getfixturevalue(request.param)
    return opened


def reads_text(subject: LanguageModel) -> bool:
    """Whether prefixes go as text: the model then cuts them into tokens anew, not always as it had said them."""
    return subject.vocabulary is None


def cut_short(completion: Completion) -> bool:
    """Whether a sample breaks off where its server does not tell a token of its own."""
    return bool(completion.tokens) and completion.tokens[-1].bytes == b""


def vocabulary_of(subject: LanguageModel) -> Vocabulary:
    if subject.vocabulary is None:
        pytest.skip("the model does not tell its vocabulary")
    return subject.vocabulary


def next_of(subject: LanguageModel, prefix: Prefix = (), k: int = 5, stop: bytes = STOP) -> NextTokens:
    return subject.next_tokens(FRUITS, [prefix], k, stop, Usage())[0]


def mask_of(subject: LanguageModel, ids: list[int]) -> Mask:
    mask = np.zeros(len(vocabulary_of(subject)), dtype=np.bool_)
    mask[ids] = True
    return mask


def test_the_best_tokens_come_best_first(subject: LanguageModel) -> None:
    best = next_of(subject, k=50).best
    assert len(best) == 50
    assert [s.logprob for s in best] == sorted((s.logprob for s in best), reverse=True)


def test_the_probabilities_of_all_tokens_and_of_ending_add_up_to_one(subject: LanguageModel) -> None:
    answer = next_of(subject, k=len(vocabulary_of(subject)))
    assert answer.complete
    total = math.fsum(math.exp(s.logprob) for s in answer.best) + math.exp(answer.end_logprob)
    assert total == pytest.approx(1, abs=1e-3)


def test_a_few_of_the_tokens_are_not_all_of_them(subject: LanguageModel) -> None:
    assert not next_of(subject, k=5).complete


def test_the_probability_of_ending_is_that_of_the_stop_and_the_models_own_end(subject: LanguageModel) -> None:
    size = len(vocabulary_of(subject))
    unstopped = next_of(subject, k=size, stop=NO_STOP)
    stopping = [s.logprob for s in unstopped.best if s.token.bytes.startswith(STOP)]
    assert stopping
    expected = np.logaddexp.reduce([*stopping, unstopped.end_logprob])
    assert next_of(subject, k=size).end_logprob == pytest.approx(expected, abs=0.01)
    apart = NOISE if isinstance(subject, RemoteModel) else 0.01  # another request, of another batch
    assert next_of(subject).end_logprob == pytest.approx(expected, abs=apart)


def test_a_token_that_ends_is_never_among_the_best_with_or_without_a_mask(subject: LanguageModel) -> None:
    vocabulary = vocabulary_of(subject)
    everything = np.ones(len(vocabulary), dtype=np.bool_)
    size = len(vocabulary)
    for masks in (None, [everything]):
        answer = subject.next_tokens(FRUITS, [()], size, STOP, Usage(), masks)[0]
        assert not [s for s in answer.best if s.token.bytes.startswith(STOP) or s.token.id in vocabulary.end_ids]
        assert len(answer.best) > size / 2


def test_a_mask_is_respected_exactly(subject: LanguageModel) -> None:
    everything = next_of(subject, k=len(vocabulary_of(subject))).best
    chosen = [everything[i] for i in (200, 3, 77, 150)]
    mask = mask_of(subject, [s.token.id for s in chosen])
    whole, part = subject.next_tokens(FRUITS, [(), ()], 4, STOP, Usage(), [mask, mask_of(subject, [])])
    assert [s.token for s in whole.best] == [everything[i].token for i in (3, 77, 150, 200)]
    assert whole.complete
    assert part.best == ()
    assert part.complete


def test_a_mask_with_more_tokens_than_asked_for_gives_the_best_of_them(subject: LanguageModel) -> None:
    everything = next_of(subject, k=len(vocabulary_of(subject))).best
    mask = mask_of(subject, [everything[i].token.id for i in (9, 4, 100)])
    answer = subject.next_tokens(FRUITS, [()], 2, STOP, Usage(), [mask])[0]
    assert [s.token for s in answer.best] == [everything[4].token, everything[9].token]
    assert not answer.complete
    assert answer.best[0].logprob == pytest.approx(everything[4].logprob, abs=NOISE)


def test_prefixes_asked_together_are_answered_as_if_asked_alone(subject: LanguageModel) -> None:
    prefixes = [subject.tokenize(text) for text in ("", " banana", " banana, or", " b", " grape")]
    together = subject.next_tokens(FRUITS, prefixes, 8, STOP, Usage())
    for prefix, answer in zip(prefixes, together, strict=True):
        alone = next_of(subject, prefix, k=8)
        assert answer.end_logprob == pytest.approx(alone.end_logprob, abs=NOISE)
        assert {s.token for s in answer.best[:3]} <= {s.token for s in alone.best}


def test_no_prefixes_get_no_answers(subject: LanguageModel) -> None:
    assert subject.next_tokens(FRUITS, [], 5, STOP, Usage()) == []
    assert subject.score(FRUITS, [], [], Usage()) == []
    assert subject.sample(FRUITS, [], SAMPLING, Usage()) == []


def test_a_score_is_what_stepping_token_by_token_gives(subject: LanguageModel) -> None:
    tokens = subject.tokenize(" banana, or")
    scores = subject.score(FRUITS, [()], [tokens], Usage())[0]
    assert len(scores) == len(tokens)
    for i, token in enumerate(tokens):
        mask = mask_of(subject, [token.id])
        step = subject.next_tokens(FRUITS, [tokens[:i]], 1, STOP, Usage(), [mask])[0]
        assert scores[i] == pytest.approx(step.best[0].logprob, abs=NOISE)


def test_one_path_can_be_scored_from_several_places_at_once(subject: LanguageModel) -> None:
    tokens = subject.tokenize(" banana, or")
    splits = range(len(tokens) + 1)
    scores = subject.score(FRUITS, [tokens[:i] for i in splits], [tokens[i:] for i in splits], Usage())
    assert [len(s) for s in scores] == [len(tokens) - i for i in splits]
    for i, some in enumerate(scores):
        assert some == pytest.approx(scores[0][i:], abs=NOISE)


def test_every_prefix_gets_as_many_samples_as_asked_for(subject: LanguageModel) -> None:
    groups = subject.sample(FRUITS, [(), subject.tokenize(" b")], SAMPLING, Usage())
    assert [len(group) for group in groups] == [3, 3]
    assert [len(g) for g in subject.sample(FRUITS, [()], replace(SAMPLING, temperature=0), Usage())] == [3]


def test_the_log_probabilities_of_a_hot_sample_are_untempered(subject: LanguageModel) -> None:
    hot = replace(SAMPLING, temperature=2.0)
    hot_samples = subject.sample(FRUITS, [()], hot, Usage())[0]
    told = [(c.tokens[:-1], c.logprobs[:-1]) if cut_short(c) else (c.tokens, c.logprobs) for c in hot_samples]
    samples = [(tokens, logprobs) for tokens, logprobs in told if tokens]
    assert samples
    usual = dict(next_of(subject, k=300).best)
    for tokens, logprobs in samples:
        assert usual.get(tokens[0], logprobs[0]) == pytest.approx(logprobs[0], abs=NOISE)
    if not reads_text(subject):
        scores = subject.score(FRUITS, [()] * len(samples), [tokens for tokens, _ in samples], Usage())
        for (_, logprobs), expected in zip(samples, scores, strict=True):
            assert logprobs == pytest.approx(expected, abs=NOISE)


def test_at_temperature_zero_a_sample_is_the_path_of_best_tokens(subject: LanguageModel) -> None:
    compared = 0
    for prompt in (COUNTING, FRUITS):
        completion = subject.sample(prompt, [()], replace(SAMPLING, temperature=0), Usage())[0][0]
        said: Prefix = ()
        for token in completion.tokens[: 1 if reads_text(subject) else None]:
            answer = subject.next_tokens(prompt, [said], 1, STOP, Usage())[0]
            assert token == answer.best[0].token
            said = (*said, token)
            compared += 1
    assert compared


def test_a_sample_tells_what_the_model_thought_at_every_position(subject: LanguageModel) -> None:
    for completion in subject.sample(FRUITS, [()], SAMPLING, Usage())[0]:
        assert len(completion.logprobs) == len(completion.tokens)
        thoughts = len(completion.positions) - len(completion.tokens)
        assert thoughts in (0, 1) or (thoughts == -1 and cut_short(completion))
        assert not completion.ended or thoughts == 1
        sizes = {len(position.best) for position in completion.positions}
        assert sizes <= {1, 2, 3, 4} if isinstance(subject, RemoteModel) else sizes == {4}
        for token, logprob, position in zip(
            completion.tokens, completion.logprobs, completion.positions, strict=False
        ):
            assert dict(position.best).get(token, logprob) == logprob
            assert token in dict(position.best) or logprob <= position.best[-1].logprob


def test_a_sample_stops_before_the_stop_or_at_the_limit(subject: LanguageModel) -> None:
    prefix = subject.tokenize(" b")
    for stop in (STOP, b","):
        sampling = replace(SAMPLING, n=6, max_tokens=5, stop=stop)
        for completion in subject.sample(FRUITS, [prefix], sampling, Usage())[0]:
            assert not [t for t in completion.tokens if t.bytes.startswith(stop)]
            length = len(prefix) + len(completion.tokens)
            assert length <= 5
            assert completion.ended or length == 5 or cut_short(completion)


def test_a_prefix_at_the_limit_is_not_carried_on(subject: LanguageModel) -> None:
    prefix = subject.tokenize(" banana, or")
    sampling = replace(SAMPLING, max_tokens=len(prefix))
    assert [c[:3] for c in subject.sample(FRUITS, [prefix], sampling, Usage())[0]] == [((), (), ())] * 3


@dataclass(frozen=True)
class RetryPolicy:
    """A guide that has had enough after some tokens."""

    left: int

    def advance(self, piece: bytes) -> "RetryPolicy | None":
        return RetryPolicy(self.left - 1) if self.left > 1 else None


def test_a_guide_stops_a_sample_after_the_first_token_it_refuses(subject: LanguageModel) -> None:
    sampling = replace(SAMPLING, n=8, max_tokens=6, stop=NO_STOP)
    guided, free = subject.sample(COUNTING, [(), ()], sampling, Usage(), [RetryPolicy(2), None])
    assert {len(c.tokens) for c in guided if not c.ended and not cut_short(c)} == {2}
    assert max(len(c.tokens) for c in guided) == 2
    assert max(len(c.tokens) for c in free) > 2


def test_the_same_seed_gives_the_same_samples_whatever_was_asked_between(subject: LanguageModel) -> None:
    first = subject.sample(FRUITS, [()], SAMPLING, Usage())
    assert subject.sample(FRUITS, [()], SAMPLING, Usage()) == first
    subject.sample(COUNTING, [()], replace(SAMPLING, seed=99), Usage())
    subject.next_tokens(FRUITS, [subject.tokenize(" ban"), subject.tokenize(" or")], 3, STOP, Usage())
    assert subject.sample(FRUITS, [()], SAMPLING, Usage()) == first


def test_another_seed_gives_other_samples(subject: LanguageModel) -> None:
    some = subject.sample(FRUITS, [()], SAMPLING, Usage())
    assert subject.sample(FRUITS, [()], replace(SAMPLING, seed=8), Usage()) != some


def test_the_samples_of_one_prefix_differ_from_each_other(subject: LanguageModel) -> None:
    samples = subject.sample(FRUITS, [()], replace(SAMPLING, temperature=1.5), Usage())[0]
    assert len({c.tokens for c in samples}) > 1


def test_ids_and_bytes_of_a_token_belong_together(subject: LanguageModel) -> None:
    vocabulary = vocabulary_of(subject)
    completion = subject.sample(FRUITS, [()], SAMPLING, Usage())[0][0]
    for token in (*subject.tokenize(" banana pie"), *completion.tokens, *(s.token for s in next_of(subject).best)):
        assert vocabulary.tokens[token.id] == token.bytes


@given(text=st.text())
def test_the_tokens_of_any_text_spell_it(model: EmbeddedModel, text: str) -> None:
    tokens = model.tokenize(text)
    spelled = bytes(b for b in text.encode() if b not in model.vocabulary.missing_bytes)
    assert b"".join(token.bytes for token in tokens) == spelled
    assert all(token.bytes for token in tokens)


def test_only_bytes_that_no_program_needs_cannot_be_spelled(model: EmbeddedModel) -> None:
    assert not model.vocabulary.missing_bytes & set("\t\n\r !~äß中".encode() + bytes(range(0x20, 0x7F)))


def test_every_question_is_counted(subject: LanguageModel) -> None:
    usage = Usage()
    subject.next_tokens(FRUITS, [(), subject.tokenize(" b")], 3, STOP, usage)
    assert usage.requests == 2
    samples = subject.sample(FRUITS, [()], SAMPLING, usage)[0]
    asked_apart = 2 * isinstance(subject, RemoteModel) * sum(c.ended for c in samples)
    assert 3 <= usage.requests <= 3 + asked_apart
