"""Chat models: searched as any other with prefix continuation, else by complete outputs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.constrain.trie import Trie
from fewparse.errors import UsageError
from fewparse.events import Completed, Event
from fewparse.lm.http.budget import Budget, BudgetLimits
from fewparse.lm.http.capabilities import Capabilities
from fewparse.lm.http.chat import ChatModel
from fewparse.lm.http.client import HttpClient
from fewparse.lm.http.load import RemoteSettings, open_remote
from fewparse.lm.http.probe import probe
from fewparse.lm.model import Sampling, Token
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.prompt import Message, Pair, Prompt, bundled_template
from fewparse.search.decode import decode
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import SearchSettings
from fewparse.vocabulary import BYTES
from support.prompts import plain_prompt
from support.remote_models import ALL_TOKENS, toy_completions
from support.server_behaviours import COMPLIANT, LLAMA_CPP, Behaviour
from support.toy_model import ToyModel, top_tokens
from support.toy_server import ToyServer, rendered

PAIRS = [Pair("say a", "aab"), Pair("say c", "cab")]
WORDS = ["aab", "cab", "ab", "acacac", "b"]
WITH_LEAD, WITHOUT_LEAD = "canonical", "lisp"
SEEDS = range(6)
CONTINUATIONS: list[Any] = [("always", "plain"), ("continue_final_message",) * 2, ("prefix",) * 2]


def prompt_for(template: str) -> Prompt:
    return bundled_template(template).render(PAIRS, "say b")


@contextmanager
def chat_model(behaviour: Behaviour, continuation: Any, seed: int = 0) -> Iterator[tuple[ChatModel, ToyServer]]:
    """A chat model whose server continues messages in this way, whatever the probe detects."""
    with ToyServer(behaviour, ToyModel(seed)) as toy:
        client = HttpClient(toy.url)
        capabilities = replace(probe(client, "toy", chat=True), continuation=continuation, top_logprobs=ALL_TOKENS)
        opened = ChatModel(client, "toy", capabilities, Budget(BudgetLimits(), None), top_logprobs=ALL_TOKENS)
        toy.requests.clear()
        try:
            yield opened, toy
        finally:
            opened.close()


def search(
    model: Any, prompt: Prompt, settings: SearchSettings, lead: str
) -> tuple[list[Hypothesis], list[Event]]:
    events: list[Event] = []
    found = decode(model, prompt, Trie([lead + word for word in WORDS], BYTES), settings, Usage(), events.append)
    return found, events


def test_the_instruction_is_the_system_message_and_examples_are_turns() -> None:
    with chat_model(COMPLIANT, None) as (model, toy):
        model.sample(
            prompt_for(WITH_LEAD),
            [()],
            Sampling(n=2, temperature=0.5, max_tokens=9, seed=4, alternatives=3),
            Usage(),
        )
    (request,) = toy.requests
    assert request.path == "/v1/chat/completions"
    assert request.body["messages"] == [
        {"role": "system", "content": "Let's translate what a human user says into what a computer might say."},
        {"role": "user", "content": "say a"},
        {"role": "assistant", "content": "aab"},
        {"role": "user", "content": "say c"},
        {"role": "assistant", "content": "cab"},
        {"role": "user", "content": "say b"},
    ]
    chosen = {key: request.body[key] for key in ("n", "temperature", "max_tokens", "logprobs", "top_logprobs")}
    assert chosen == {"n": 2, "temperature": 0.5, "max_tokens": 9, "logprobs": True, "top_logprobs": 3}
    assert request.body["stop"] == ["\n"]


@pytest.mark.parametrize(("flag", "continuation"), CONTINUATIONS)
def test_a_prefix_is_sent_in_the_fields_of_the_server(flag: Any, continuation: Any) -> None:
    with chat_model(replace(COMPLIANT, supports_prefix=flag), continuation) as (model, toy):
        model.next_tokens(prompt_for(WITH_LEAD), [(Token(b" "), Token("aé".encode()))], 3, b"\n", Usage())
    body = toy.requests[-1].body
    marked = {"prefix": True} if continuation == "prefix" else {}
    assert body["messages"][-1] == {"role": "assistant", "content": "aé", **marked}
    flags = {key: body[key] for key in ("continue_final_message", "add_generation_prompt") if key in body}
    wanted = {"continue_final_message": True, "add_generation_prompt": False}
    assert flags == (wanted if continuation == "continue_final_message" else {})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("flag", "continuation"), CONTINUATIONS)
@pytest.mark.parametrize("repeated", [False, True])
def test_next_tokens_after_a_prefix_are_those_of_the_model(
    flag: Any, continuation: Any, repeated: bool, seed: int
) -> None:
    behaviour = replace(COMPLIANT, supports_prefix=flag, repeats_prefix=repeated)
    prompt = prompt_for(WITH_LEAD)
    messages = [message._asdict() for message in prompt.messages]
    texts = [b"", b" ", b" a", b" ab", b" ca"]
    with chat_model(behaviour, continuation, seed) as (model, _):
        results = model.next_tokens(
            prompt, [(Token(text),) if text else () for text in texts], 300, b"\n", Usage()
        )
    assert [(s.token.bytes, s.logprob) for s in results[0].best] == [(b" ", 0.0)]
    for text, result in zip(texts[1:], results[1:], strict=True):
        open_message = [*messages, {"role": "assistant", "content": text.decode().removeprefix(" ")}]
        context = rendered(
            open_message if open_message[-1]["content"] else messages, supports_prefix=True
        ).encode()
        expected = top_tokens(ToyModel(seed).logprobs(context), 300, b"\n", None)
        listed = {s.token.bytes: s.logprob for s in expected.best if s.token.bytes.isascii()}
        assert {s.token.bytes: s.logprob for s in result.best} == pytest.approx(listed)
        assert result.end_logprob == pytest.approx(expected.end_logprob)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("flag", "continuation"), CONTINUATIONS)
@pytest.mark.parametrize(
    "settings",
    [
        SearchSettings(decoder="beam", width=3, max_tokens=12),
        SearchSettings(decoder="greedy", max_tokens=12),
        SearchSettings(width=3, max_tokens=12, temperature=0, alternatives=ALL_TOKENS),
    ],
    ids=lambda settings: settings.decoder,
)
def test_search_with_continuation_equals_search_with_completions(
    settings: SearchSettings, flag: Any, continuation: Any, seed: int
) -> None:
    prompt = prompt_for(WITHOUT_LEAD)
    messages = rendered([message._asdict() for message in prompt.messages])
    with chat_model(replace(COMPLIANT, supports_prefix=flag), continuation, seed) as (model, _):
        found, _ = search(model, prompt, settings, "")
    with toy_completions(replace(COMPLIANT, end_shown=False), ToyModel(seed)) as same:
        expected, _ = search(same, plain_prompt(messages), settings, "")
    assert [h.text for h in found] == [h.text for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("template", [WITH_LEAD, WITHOUT_LEAD])
def test_without_continuation_complete_outputs_are_ranked_or_closed_in_one_round(template: str, seed: int) -> None:
    lead = bundled_template(template).lead
    with chat_model(COMPLIANT, None, seed) as (model, toy):
        settings = SearchSettings(width=8, max_tokens=8, temperature=1.0, seed=seed)
        found, events = search(model, prompt_for(template), settings, lead)
        assert all(request.body["messages"][-1]["role"] == "user" for request in toy.requests)
    assert found
    assert {h.text.decode().removeprefix(lead) for h in found} <= set(WORDS)
    assert all(h.finished and h.score <= 0 for h in found)
    assert len(found) == 1 or not [event for event in events if isinstance(event, Completed)]


def test_the_best_prefix_of_an_ill_formed_output_is_closed_by_the_constraint() -> None:
    outcomes = []
    for seed in range(20):
        with chat_model(COMPLIANT, None, seed) as (model, _):
            found, events = search(
                model, prompt_for(WITH_LEAD), SearchSettings(width=1, max_tokens=8, temperature=1.0), " "
            )
        closed = [event for event in events if isinstance(event, Completed)]
        assert [event.prefix + event.completion for event in closed] in ([], [found[0].text])
        outcomes += closed
    assert any(event.prefix.strip() for event in outcomes)


@pytest.mark.parametrize("decoder", ["beam", "greedy"])
def test_without_continuation_step_by_step_decoders_are_rejected(decoder: Any) -> None:
    with chat_model(COMPLIANT, None) as (model, toy):
        with pytest.raises(UsageError) as caught:
            search(model, prompt_for(WITH_LEAD), SearchSettings(decoder=decoder), " ")
        assert toy.requests == []
    assert f"`{decoder}`" in caught.value.message
    assert caught.value.hint == "Use --decoder speculative."


@pytest.mark.parametrize("continuation", [None, "plain"])
def test_retrieval_by_likelihood_is_rejected(continuation: Any) -> None:
    with chat_model(replace(COMPLIANT, supports_prefix="always"), continuation) as (model, toy):
        parser = Parser.from_domain("calendar", model, retriever="lm", prompt="canonical", target="canonical")
        with pytest.raises(UsageError) as caught:
            parser.parse("what is on tomorrow")
        assert toy.requests == []
    assert "cannot score a text" in caught.value.message
    assert "bm25" in str(caught.value.hint)


def test_without_continuation_only_the_end_can_follow() -> None:
    with chat_model(COMPLIANT, None) as (model, toy):
        assert model.next_tokens(prompt_for(WITH_LEAD), [(Token(b" "), Token(b"a"))], 3, b"\n", Usage()) == [
            ((), 0.0, False, 0.0)
        ]
        assert toy.requests == []
        usage = Usage()
        (first,) = model.next_tokens(prompt_for(WITH_LEAD), [(Token(b" "),)], 3, b"\n", usage)
    assert len(first.best) == 3
    assert usage.requests == len(toy.requests) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_an_end_token_without_text_ends_the_output(seed: int) -> None:
    with chat_model(LLAMA_CPP, "plain", seed) as (model, _):
        sampling = Sampling(n=4, temperature=1.0, max_tokens=12, seed=seed, alternatives=5)
        samples = model.sample(prompt_for(WITHOUT_LEAD), [()], sampling, Usage())[0]
    for sample in samples:
        assert sample.ended or len(sample.tokens) == 12 or sample.tokens[-1].id == -2
        assert all(token.bytes for token in sample.tokens[:-1])
        assert not sample.ended or len(sample.positions) == len(sample.tokens) + 1
    assert any(sample.ended for sample in samples)


def test_a_prompt_without_messages_is_one_user_message() -> None:
    with chat_model(COMPLIANT, None) as (model, toy):
        plain = Prompt(prompt_for(WITHOUT_LEAD).parts)
        model.sample(plain, [()], Sampling(n=1, temperature=1.0, max_tokens=3), Usage())
        assert model.prompt_length(plain) > len(plain.text) / 4
    assert toy.requests[0].body["messages"] == [Message("user", plain.text)._asdict()]


def test_chat_with_the_llama_cpp_server_gives_well_formed_programs(
    llama_server: str, isolated_cache: Path
) -> None:
    model = open_remote("openai-chat", "", RemoteSettings(base_url=llama_server))
    assert isinstance(model, ChatModel)
    try:
        assert model.supports_prefix
        for decoder in ("speculative", "greedy"):
            parser = Parser.from_domain(
                "calendar", model, decoder=decoder, width=2, examples=4, max_tokens=40, target="program"
            )
            parse = parser.parse("when is my next meeting with Jane")
            assert parse.program is not None
            assert parser.domain.grammar is not None
            assert parse.usage.requests > 0
            assert all(candidate.model_score <= 0 for candidate in parse.candidates)
        without_prefix = ChatModel(
            model._batcher.client,
            model._model,
            without_continuation(model._capabilities),
            Budget(BudgetLimits(), None),
        )
        parse = Parser.from_domain(
            "calendar", without_prefix, width=2, examples=4, max_tokens=40, target="canonical"
        ).parse("when is my next meeting with Jane")
        assert parse.program is not None
        assert parse.usage.rounds == 1
    finally:
        model.close()


def without_continuation(capabilities: Capabilities) -> Capabilities:
    return replace(capabilities, continuation=None)
