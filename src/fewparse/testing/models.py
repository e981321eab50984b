"""The laws of a language model: `MODEL_LAWS`, each a function that takes an open model.

They need a model with `supports_prefix`, at least 256 tokens in the vocabulary and a context of 64 tokens. Laws
that need the vocabulary hold trivially for a model without one. Log-probabilities may differ by up to `TOLERANCE`
between batches, as they do in quantised models.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewparse.lm.model import Completion, LanguageModel, NextTokens, Prefix, Sampling
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt
from fewparse.vocabulary import Mask, Vocabulary

STOP = b"\n"
NO_STOP = b"\0 no token starts with this"
TOLERANCE = 1.0
"""The maximum difference of equal log-probabilities from different batches, in nats."""

FRUITS = Prompt((Part("Fruits: apple, pear,", False),))
NUMBERS = Prompt((Part("One, two, three, four,", False),))
SAMPLING = Sampling(n=3, temperature=1.0, max_tokens=6, seed=7, alternatives=4)


def next_tokens_are_sorted(model: LanguageModel) -> None:
    """As many next tokens as requested are returned, by descending log-probability."""
    best = query(model, k=50).best
    assert len(best) == 50, f"{len(best)} tokens were returned, 50 requested"
    logprobs = [scored.logprob for scored in best]
    assert logprobs == sorted(logprobs, reverse=True), f"log-probabilities are not descending: {logprobs}"


def probabilities_sum_to_one(model: LanguageModel) -> None:
    """The probabilities of all tokens and of ending sum to 1."""
    if model.vocabulary is None:
        return
    result = query(model, k=len(model.vocabulary))
    assert result.complete, "all tokens were requested, but the result is not complete"
    total = math.fsum(math.exp(scored.logprob) for scored in result.best) + math.exp(result.end_logprob)
    assert close(total, 1, 1e-3), f"probabilities sum to {total}"


def a_truncated_result_is_not_complete(model: LanguageModel) -> None:
    """A result that omits tokens is not complete."""
    assert not query(model, k=5).complete, "five tokens of the vocabulary are not all"


def end_logprob_sums_stops_and_end_tokens(model: LanguageModel) -> None:
    """The probability of ending is that of all tokens that start with the stop, plus the model's end tokens."""
    if model.vocabulary is None:
        return
    size = len(model.vocabulary)
    without_stop = query(model, k=size, stop=NO_STOP)
    stops = [scored.logprob for scored in without_stop.best if scored.token.bytes.startswith(STOP)]
    assert stops, f"no token starts with {STOP!r}"
    expected = float(np.logaddexp.reduce([*stops, without_stop.end_logprob]))
    found = query(model, k=size).end_logprob
    assert close(found, expected, 0.01), f"end_logprob is {found}, expected {expected}"
    tolerance = 0.01 if model.local else TOLERANCE  # a server may evaluate another request in another batch
    found = query(model).end_logprob
    assert close(found, expected, tolerance), f"end_logprob is {found} for few tokens, expected {expected}"


def ending_tokens_are_never_returned(model: LanguageModel) -> None:
    """Tokens that end an output are not among the next tokens, with or without a mask."""
    if model.vocabulary is None:
        return
    size = len(model.vocabulary)
    for masks in (None, [np.ones(size, dtype=np.bool_)]):
        best = model.next_tokens(FRUITS, [()], size, STOP, Usage(), masks)[0].best
        ends = [s for s in best if s.token.bytes.startswith(STOP) or s.token.id in model.vocabulary.end_ids]
        assert not ends, f"ending tokens were returned: {ends}"
        assert len(best) > size / 2, f"only {len(best)} of {size} tokens were returned"


def masks_are_exact(model: LanguageModel) -> None:
    """Under a mask, exactly the allowed tokens are returned, however improbable; an empty mask allows none."""
    if model.vocabulary is None:
        return
    ranked = query(model, k=len(model.vocabulary)).best
    some = mask_of(model.vocabulary, [ranked[i].token.id for i in (200, 3, 77, 150)])
    none = mask_of(model.vocabulary, [])
    masked, empty = model.next_tokens(FRUITS, [(), ()], 4, STOP, Usage(), [some, none])
    expected = [ranked[i].token for i in (3, 77, 150, 200)]
    found = [scored.token for scored in masked.best]
    assert found == expected, f"the mask allows {expected}, but {found} were returned"
    assert masked.complete, "all allowed tokens were returned, but the result is not complete"
    assert empty.best == (), f"an empty mask allows nothing, but {empty.best} were returned"
    assert empty.complete, "the result under an empty mask is not complete"


def a_mask_returns_the_best_allowed_tokens(model: LanguageModel) -> None:
    """If a mask allows more than k tokens, the k most probable ones are returned, with unchanged scores."""
    if model.vocabulary is None:
        return
    ranked = query(model, k=len(model.vocabulary)).best
    mask = mask_of(model.vocabulary, [ranked[i].token.id for i in (9, 4, 100)])
    result = model.next_tokens(FRUITS, [()], 2, STOP, Usage(), [mask])[0]
    expected = [ranked[4].token, ranked[9].token]
    found = [scored.token for scored in result.best]
    assert found == expected, f"expected {expected}, found {found}"
    assert not result.complete, "an allowed token was omitted, but the result is complete"
    logprobs = (result.best[0].logprob, ranked[4].logprob)
    assert close(*logprobs, TOLERANCE), f"the mask changes a log-probability: {logprobs}"


def batched_prefixes_are_independent(model: LanguageModel) -> None:
    """Prefixes queried together get the same results as each alone."""
    prefixes = [model.tokenize(text) for text in ("", " banana", " banana, or", " b", " grape")]
    together = model.next_tokens(FRUITS, prefixes, 8, STOP, Usage())
    for prefix, result in zip(prefixes, together, strict=True):
        alone = query(model, prefix, k=8)
        ends = (result.end_logprob, alone.end_logprob)
        assert close(*ends, TOLERANCE), f"end_logprob after {prefix} is {ends[0]} in a batch, {ends[1]} alone"
        best = {scored.token for scored in result.best[:3]}
        assert best <= {scored.token for scored in alone.best}, f"the best tokens after {prefix} differ in a batch"


def no_prefixes_give_no_results(model: LanguageModel) -> None:
    """Queries without prefixes return empty lists."""
    assert model.next_tokens(FRUITS, [], 5, STOP, Usage()) == [], "next_tokens of no prefixes is not empty"
    assert model.score(FRUITS, [], [], Usage()) == [], "score of no prefixes is not empty"
    assert model.sample(FRUITS, [], SAMPLING, Usage()) == [], "sample of no prefixes is not empty"


def scores_equal_stepwise_logprobs(model: LanguageModel) -> None:
    """The scores of a continuation are the log-probabilities of its tokens, one after the other."""
    tokens = model.tokenize(" banana, or")
    scores = model.score(FRUITS, [()], [tokens], Usage())[0]
    assert len(scores) == len(tokens), f"{len(scores)} scores for {len(tokens)} tokens"
    if model.vocabulary is None:
        return
    for i, token in enumerate(tokens):
        mask = mask_of(model.vocabulary, [token.id])
        step = model.next_tokens(FRUITS, [tokens[:i]], 1, STOP, Usage(), [mask])[0].best[0].logprob
        assert close(scores[i], step, TOLERANCE), f"{token} has the score {scores[i]}, but log-probability {step}"


def scores_do_not_depend_on_the_split(model: LanguageModel) -> None:
    """A token has the same score wherever the text before it is split into prefix and continuation."""
    tokens = model.tokenize(" banana, or")
    splits = range(len(tokens) + 1)
    scores = model.score(FRUITS, [tokens[:i] for i in splits], [tokens[i:] for i in splits], Usage())
    assert [len(s) for s in scores] == [len(tokens) - i for i in splits], "there is not one score per token"
    for i, some in enumerate(scores):
        assert all_close(some, scores[0][i:]), f"scores {some} after {i} tokens, {scores[0][i:]} after none"


def every_prefix_gets_n_samples(model: LanguageModel) -> None:
    """Each prefix gets as many samples as requested, also at temperature 0."""
    groups = model.sample(FRUITS, [(), model.tokenize(" b")], SAMPLING, Usage())
    assert [len(group) for group in groups] == [3, 3], "each of two prefixes should get three samples"
    greedy = model.sample(FRUITS, [()], replace(SAMPLING, temperature=0), Usage())
    assert [len(group) for group in greedy] == [3], "three greedy samples were requested"


def sample_logprobs_are_at_temperature_one(model: LanguageModel) -> None:
    """The log-probabilities of samples do not depend on the sampling temperature."""
    hot = model.sample(FRUITS, [()], replace(SAMPLING, temperature=2.0), Usage())[0]
    reported = [(c.tokens[:-1], c.logprobs[:-1]) if is_cut_off(c) else (c.tokens, c.logprobs) for c in hot]
    samples = [(tokens, logprobs) for tokens, logprobs in reported if tokens]
    assert samples, "all samples are empty"
    untempered = dict(query(model, k=300).best)
    for tokens, logprobs in samples:
        expected = untempered.get(tokens[0], logprobs[0])
        assert close(expected, logprobs[0], TOLERANCE), f"{tokens[0]} has {logprobs[0]}, expected {expected}"
    if model.vocabulary is None:  # scoring may tokenize the text differently
        return
    scores = model.score(FRUITS, [()] * len(samples), [tokens for tokens, _ in samples], Usage())
    for (_, logprobs), expected_scores in zip(samples, scores, strict=True):
        assert all_close(logprobs, expected_scores), f"a sample has {logprobs}, its score is {expected_scores}"


def temperature_zero_is_greedy(model: LanguageModel) -> None:
    """A sample at temperature 0 consists of the most probable tokens."""
    compared = 0
    for prompt in (NUMBERS, FRUITS):
        completion = model.sample(prompt, [()], replace(SAMPLING, temperature=0), Usage())[0][0]
        prefix: Prefix = ()
        # Without a vocabulary, prefixes may be tokenized differently: only the first token can be compared.
        for token in completion.tokens[: 1 if model.vocabulary is None else None]:
            best = model.next_tokens(prompt, [prefix], 1, STOP, Usage())[0].best[0].token
            assert token == best, f"{token} was sampled after {prefix}, but {best} is the most probable token"
            prefix = (*prefix, token)
            compared += 1
    assert compared, "all samples are empty"


def samples_report_every_position(model: LanguageModel) -> None:
    """Samples have a log-probability and the requested alternatives for each token, consistent with each other."""
    for completion in model.sample(FRUITS, [()], SAMPLING, Usage())[0]:
        tokens, logprobs, positions, ended = completion
        assert len(logprobs) == len(tokens), f"{len(logprobs)} log-probabilities for {len(tokens)} tokens"
        extra = len(positions) - len(tokens)
        assert extra in (0, 1) or (extra == -1 and is_cut_off(completion)), f"{extra} positions more than tokens"
        assert not ended or extra == 1, "the position of the end is missing"
        sizes = {len(position.best) for position in positions}
        expected = sizes == {4} if model.local else sizes <= {1, 2, 3, 4}
        assert expected, f"4 alternatives per position were requested, but there are {sizes}"
        for token, logprob, position in zip(tokens, logprobs, positions, strict=False):
            alternatives = dict(position.best)
            listed = alternatives.get(token, logprob)
            assert listed == logprob, f"{token} has {logprob}, but {listed} among the alternatives"
            lowest = position.best[-1].logprob
            assert token in alternatives or logprob <= lowest, f"{token} should be among the alternatives"


def samples_end_before_the_stop_or_at_the_limit(model: LanguageModel) -> None:
    """Samples contain no stop and respect the limit of tokens, and only the limit cuts them off."""
    prefix = model.tokenize(" b")
    for stop in (STOP, b","):
        sampling = replace(SAMPLING, n=6, max_tokens=5, stop=stop)
        for completion in model.sample(FRUITS, [prefix], sampling, Usage())[0]:
            stops = [token for token in completion.tokens if token.bytes.startswith(stop)]
            assert not stops, f"the sample contains the stop: {stops}"
            length = len(prefix) + len(completion.tokens)
            assert length <= 5, f"prefix and sample have {length} tokens, at most 5 are allowed"
            finished = completion.ended or length == 5 or is_cut_off(completion)
            assert finished, f"the sample was cut off after {length} of 5 tokens"


def a_prefix_at_the_limit_is_not_continued(model: LanguageModel) -> None:
    """A prefix that has the maximum number of tokens gets empty samples."""
    prefix = model.tokenize(" banana, or")
    samples = model.sample(FRUITS, [prefix], replace(SAMPLING, max_tokens=len(prefix)), Usage())[0]
    assert [c[:3] for c in samples] == [((), (), ())] * 3, f"the samples are not empty: {samples}"


def a_guide_stops_a_sample(model: LanguageModel) -> None:
    """A sample stops after the token at which its guide returns None; other samples are not affected."""
    sampling = replace(SAMPLING, n=8, max_tokens=6, stop=NO_STOP)
    guided, free = model.sample(NUMBERS, [(), ()], sampling, Usage(), [TokenLimit(2), None])
    lengths = {len(c.tokens) for c in guided if not c.ended and not is_cut_off(c)}
    assert lengths == {2}, f"the guide stops after 2 tokens, but samples have {lengths}"
    assert max(len(c.tokens) for c in guided) == 2, "a sample continues beyond its guide"
    assert max(len(c.tokens) for c in free) > 2, "samples without a guide were stopped"


def samples_depend_on_the_seed_only(model: LanguageModel) -> None:
    """The same seed gives the same samples, regardless of other queries in between."""
    first = model.sample(FRUITS, [()], SAMPLING, Usage())
    assert model.sample(FRUITS, [()], SAMPLING, Usage()) == first, "repeated sampling gives other samples"
    model.sample(NUMBERS, [()], replace(SAMPLING, seed=99), Usage())
    model.next_tokens(FRUITS, [model.tokenize(" ban"), model.tokenize(" or")], 3, STOP, Usage())
    assert model.sample(FRUITS, [()], SAMPLING, Usage()) == first, "other queries change the samples"


def another_seed_gives_other_samples(model: LanguageModel) -> None:
    """Samples with different seeds differ."""
    samples = model.sample(FRUITS, [()], SAMPLING, Usage())
    other = model.sample(FRUITS, [()], replace(SAMPLING, seed=8), Usage())
    assert other != samples, "two seeds give the same samples"


def samples_of_one_prefix_differ(model: LanguageModel) -> None:
    """The samples of one prefix are drawn independently."""
    samples = model.sample(FRUITS, [()], replace(SAMPLING, temperature=1.5), Usage())[0]
    assert len({c.tokens for c in samples}) > 1, "all samples are equal"


def token_ids_match_bytes(model: LanguageModel) -> None:
    """Every returned token has the bytes of its id in the vocabulary."""
    if model.vocabulary is None:
        return
    sampled = model.sample(FRUITS, [()], SAMPLING, Usage())[0][0].tokens
    best = (scored.token for scored in query(model).best)
    for token in (*model.tokenize(" banana pie"), *sampled, *best):
        expected = model.vocabulary.tokens[token.id]
        assert token.bytes == expected, f"token {token.id} is {token.bytes!r}, the vocabulary has {expected!r}"


def requests_are_counted(model: LanguageModel) -> None:
    """Each prefix of a query counts as one request; a remote model may need two more per ended sample."""
    usage = Usage()
    model.next_tokens(FRUITS, [(), model.tokenize(" b")], 3, STOP, usage)
    assert usage.requests == 2, f"{usage.requests} requests were counted for two prefixes"
    samples = model.sample(FRUITS, [()], SAMPLING, usage)[0]
    extra = 0 if model.local else 2 * sum(c.ended for c in samples)
    assert 3 <= usage.requests <= 3 + extra, f"{usage.requests} requests were counted for three prefixes"


MODEL_LAWS: tuple[Callable[[LanguageModel], None], ...] = (
    next_tokens_are_sorted,
    probabilities_sum_to_one,
    a_truncated_result_is_not_complete,
    end_logprob_sums_stops_and_end_tokens,
    ending_tokens_are_never_returned,
    masks_are_exact,
    a_mask_returns_the_best_allowed_tokens,
    batched_prefixes_are_independent,
    no_prefixes_give_no_results,
    scores_equal_stepwise_logprobs,
    scores_do_not_depend_on_the_split,
    every_prefix_gets_n_samples,
    sample_logprobs_are_at_temperature_one,
    temperature_zero_is_greedy,
    samples_report_every_position,
    samples_end_before_the_stop_or_at_the_limit,
    a_prefix_at_the_limit_is_not_continued,
    a_guide_stops_a_sample,
    samples_depend_on_the_seed_only,
    another_seed_gives_other_samples,
    samples_of_one_prefix_differ,
    token_ids_match_bytes,
    requests_are_counted,
)


@dataclass(frozen=True)
class TokenLimit:
    """A guide that stops a sample after some tokens."""

    left: int

    def advance(self, piece: bytes) -> "TokenLimit | None":
        """Return the guide for one token less, or None after the last one."""
        return TokenLimit(self.left - 1) if self.left > 1 else None


def query(model: LanguageModel, prefix: Prefix = (), k: int = 5, stop: bytes = STOP) -> NextTokens:
    """Return the next tokens of one prefix."""
    return model.next_tokens(FRUITS, [prefix], k, stop, Usage())[0]


def mask_of(vocabulary: Vocabulary, ids: list[int]) -> Mask:
    """Return a mask that allows these tokens."""
    mask = np.zeros(len(vocabulary), dtype=np.bool_)
    mask[ids] = True
    return mask


def is_cut_off(completion: Completion) -> bool:
    """Return whether a sample is cut off because its server did not report a token."""
    return bool(completion.tokens) and completion.tokens[-1].bytes == b""


def close(one: float, other: float, tolerance: float) -> bool:
    """Return whether two numbers differ by the tolerance at most."""
    return one == other or abs(one - other) <= tolerance


def all_close(some: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether two sequences have the same length and differ by `TOLERANCE` at most."""
    return len(some) == len(others) and all(close(a, b, TOLERANCE) for a, b in zip(some, others, strict=True))
