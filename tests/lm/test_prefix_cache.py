"""The KV caches of local models: shared prefixes are evaluated once, with correct results."""

import math

import pytest

from fewparse.errors import ContextOverflow
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.local import LocalModel
from fewparse.lm.model import Prefix, Sampling, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt, bundled_template
from support.prompts import plain_prompt

STOP = b"\n"
NOISE = 1.0
SAMPLING = Sampling(n=2, temperature=0.8, max_tokens=4, seed=1)


@pytest.fixture(params=["model", "transformers_model"])
def local(request: pytest.FixtureRequest) -> LocalModel:
    opened: LocalModel = request.getfixturevalue(request.param)
    return opened


@pytest.fixture
def clean(local: LocalModel) -> LocalModel:
    """The model after another prompt, which has no common prefix with those of the tests."""
    local.next_tokens(plain_prompt("@"), [()], 1, STOP, Usage())
    return local


def distinct_words(model: LocalModel, count: int) -> list[Prefix]:
    words: list[Prefix] = [
        (Token(text, i),)
        for i, text in enumerate(model.vocabulary.tokens)
        if text.startswith(b" ") and text[1:].isalpha()
    ]
    return words[:count]


def test_a_prompt_is_evaluated_once_for_several_queries(clean: LocalModel) -> None:
    prompt = plain_prompt("The capital of France is")
    word = clean.tokenize(" Paris")

    def series() -> Usage:
        usage = Usage()
        clean.next_tokens(prompt, [()], 3, STOP, usage)
        clean.sample(prompt, [()], SAMPLING, usage)
        clean.score(prompt, [()], [word], usage)
        clean.next_tokens(prompt, [word], 3, STOP, usage)
        return usage

    assert series().prefill_tokens == clean.prompt_length(prompt)
    assert series().prefill_tokens == 0


def test_only_the_new_tokens_of_a_longer_prompt_are_evaluated(clean: LocalModel) -> None:
    short, long = plain_prompt("Berlin and Rome"), plain_prompt("Berlin and Rome are cities")
    clean.next_tokens(short, [()], 3, STOP, Usage())
    usage = Usage()
    clean.next_tokens(long, [()], 3, STOP, usage)
    assert usage.prefill_tokens == clean.prompt_length(long) - clean.prompt_length(short)


def test_a_prompt_is_evaluated_from_the_first_different_token_on(clean: LocalModel) -> None:
    clean.next_tokens(plain_prompt("Oslo is in Norway"), [()], 3, STOP, Usage())
    usage = Usage()
    clean.next_tokens(plain_prompt("Oslo is in Sweden"), [()], 3, STOP, usage)
    assert usage.prefill_tokens == clean.prompt_length(plain_prompt(" Sweden"))


def test_a_prompt_does_not_affect_the_next_one(clean: LocalModel) -> None:
    prompt = plain_prompt("Oslo is in")
    fresh = clean.next_tokens(prompt, [()], 5, STOP, Usage())[0]
    clean.sample(plain_prompt("Oslo is in Norway and"), [()], SAMPLING, Usage())
    again = clean.next_tokens(prompt, [()], 5, STOP, Usage())[0]
    assert [s.token for s in again.best[:2]] == [s.token for s in fresh.best[:2]]
    assert again.end_logprob == pytest.approx(fresh.end_logprob, abs=NOISE)


def test_only_new_tokens_of_a_prefix_are_evaluated(clean: LocalModel) -> None:
    prompt = plain_prompt("Numbers:")
    tokens = clean.tokenize(" one, two, three")
    clean.next_tokens(prompt, [tokens[:3]], 1, STOP, Usage())
    usage = Usage()
    clean.next_tokens(prompt, [tokens], 1, STOP, usage)
    assert usage.forward_tokens == len(tokens) - 3
    clean.next_tokens(prompt, [tokens, tokens[:3]], 1, STOP, usage)
    assert usage.forward_tokens == len(tokens) - 3


def test_equal_prefixes_and_equal_samples_are_evaluated_once(clean: LocalModel) -> None:
    prompt = plain_prompt("Letters: a b c d")
    usage = Usage()
    clean.next_tokens(prompt, [clean.tokenize(" e")] * 5, 1, STOP, usage)
    assert usage.forward_tokens == 1
    usage = Usage()
    cold = Sampling(n=4, temperature=0.01, max_tokens=4, stop=b"\0")
    samples = clean.sample(prompt, [()], cold, usage)[0]
    assert len({c.tokens for c in samples}) == 1
    assert usage.forward_tokens == 3


def test_a_batch_is_one_forward_pass(clean: LocalModel) -> None:
    usage = Usage()
    clean.next_tokens(plain_prompt("Words:"), distinct_words(clean, 10), 1, STOP, usage)
    assert (usage.rounds, usage.requests) == (1, 10)
    assert usage.forward_passes == 2  # the prompt, and all prefixes


def test_more_prefixes_than_sequences_are_evaluated_correctly(clean: LocalModel) -> None:
    prompt = plain_prompt("Word:")
    prefixes = distinct_words(clean, 300)
    results = clean.next_tokens(prompt, prefixes, 3, STOP, Usage())
    comma = clean.tokenize(",")
    scores = clean.score(prompt, prefixes, [comma] * 300, Usage())
    assert len(results) == len(scores) == 300
    clean.next_tokens(plain_prompt("@"), [()], 1, STOP, Usage())
    for i in (0, 150, 299):
        alone = clean.next_tokens(prompt, [prefixes[i]], 3, STOP, Usage())[0]
        assert results[i].end_logprob == pytest.approx(alone.end_logprob, abs=NOISE)
        assert clean.score(prompt, [prefixes[i]], [comma], Usage())[0] == pytest.approx(scores[i], abs=NOISE)


def test_totals_are_the_sums_of_the_scores(clean: LocalModel) -> None:
    prompt = plain_prompt("1.")
    firsts = [clean.tokenize(f" {text}\n2.") for text in ("call Ann", "call Ann and Bob", "write to Ann")]
    seconds = [clean.tokenize(text) for text in (" call", " call Bob", " write to Bob", "")]
    pairs = [(first, second) for first in [(), *firsts] for second in seconds]
    totals = clean.total_logprobs(prompt, [p for p, _ in pairs], [c for _, c in pairs], Usage())
    for (prefix, continuation), total in zip(pairs, totals, strict=True):
        alone = clean.score(prompt, [prefix], [continuation], Usage())[0]
        assert total == pytest.approx(math.fsum(alone), abs=NOISE)


def test_totals_of_more_continuations_than_sequences_evaluate_each_inner_token_once(model: EmbeddedModel) -> None:
    prompt, words = plain_prompt("Word:"), distinct_words(model, 300)
    model.next_tokens(prompt, [()], 1, STOP, Usage())
    continuations = [(*words[0], *word, *words[1]) for word in words]
    usage = Usage()
    totals = model.total_logprobs(prompt, [()] * 300, continuations, usage)
    assert usage.forward_tokens == 1 + 300  # the common first token, and the second of each
    assert usage.prefill_tokens == 0
    for i in (0, 150, 299):
        assert totals[i] == pytest.approx(
            sum(model.score(prompt, [()], [continuations[i]], Usage())[0]), abs=NOISE
        )
    assert model.total_logprobs(prompt, [()] * 300, continuations, Usage()) == totals


def test_totals_do_not_change_a_search_that_follows(model: EmbeddedModel) -> None:
    prompt, words = plain_prompt("Colours:"), distinct_words(model, 5)
    before = model.next_tokens(prompt, [(), *words], 3, STOP, Usage())
    model.total_logprobs(prompt, words, words, Usage())
    assert model.next_tokens(prompt, [(), *words], 3, STOP, Usage()) == before


def test_an_interrupted_query_for_totals_leaves_a_usable_cache(
    model: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt, words = plain_prompt("Animals:"), distinct_words(model, 5)
    pairs = [(*one, *other) for one in words for other in words]
    expected = model.total_logprobs(prompt, [()] * 25, pairs, Usage())

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model._llama, "decode_tree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.total_logprobs(prompt, [()] * 25, pairs, Usage())
    assert model.total_logprobs(prompt, [()] * 25, pairs, Usage()) == expected


def test_a_prompt_beyond_the_context_is_rejected_before_evaluation(local: LocalModel) -> None:
    prompt = plain_prompt("word " * 9_000)
    usage = Usage()
    with pytest.raises(ContextOverflow) as caught:
        local.next_tokens(prompt, [()], 1, STOP, usage)
    length = local.prompt_length(prompt)
    assert length > local.context_length
    assert (caught.value.needed, caught.value.available) == (length, local.context_length)
    assert str(length) in str(caught.value)
    assert str(local.context_length) in str(caught.value)
    assert usage.prefill_tokens == 0


def test_a_continuation_beyond_the_context_is_rejected(local: LocalModel) -> None:
    with pytest.raises(ContextOverflow):
        local.score(plain_prompt("a"), [()], [local.tokenize("word " * 9_000)], Usage())
    assert math.isfinite(local.next_tokens(plain_prompt("a"), [()], 1, STOP, Usage())[0].end_logprob)


def test_only_markup_parts_contain_control_tokens(local: LocalModel) -> None:
    marker = "<|im_end|>"
    assert local.prompt_length(Prompt((Part(marker, True),))) == 1
    assert local.prompt_length(plain_prompt(marker)) > 1
    assert all(token.bytes for token in local.tokenize(marker))


def test_chat_markers_in_an_utterance_are_plain_text(local: LocalModel) -> None:
    template = bundled_template("chatml")
    plain_prompt, marked = (template.render([], text) for text in ("hello", "hello<|im_end|>"))
    extra = len(local.tokenize("hello<|im_end|>")) - len(local.tokenize("hello"))
    assert extra > 1
    assert local.prompt_length(marked) == local.prompt_length(plain_prompt) + extra
