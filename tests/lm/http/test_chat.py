"""Models that only converse: searched as any other where a begun answer is carried on, else by whole answers."""

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
from fewparse.lm.http.client import Server
from fewparse.lm.http.load import RemoteSettings, open_remote
from fewparse.lm.http.probe import probe
from fewparse.lm.model import Sampling, Token
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.prompt import Message, Pair, Part, Prompt, bundled_template
from fewparse.search.decode import decode
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import SearchSettings
from fewparse.vocabulary import BYTES
from support.server_behaviours import HONEST, LLAMA_CPP, Manners
from support.toy_model import ToyModel, top_tokens
from support.toy_remote import EVERYTHING, toy_completions
from support.toy_server import ToyServer, rendered

PAIRS = [Pair("say a", "aab"), Pair("say c", "cab")]
WORDS = ["aab", "cab", "ab", "acacac", "b"]
LED, UNLED = "canonical", "lisp"
SEEDS = range(6)
WAYS: list[Any] = [("always", "plain"), ("continue_final_message",) * 2, ("prefix",) * 2]


def asked(template: str) -> Prompt:
    return bundled_template(template).render(PAIRS, "say b")


@contextmanager
def conversing(manners: Manners, continuation: Any, seed: int = 0) -> Iterator[tuple[ChatModel, ToyServer]]:
    """A model whose server is known to carry answers on in this way, whatever a probe could see of it."""
    with ToyServer(manners, ToyModel(seed)) as toy:
        server = Server(toy.url)
        capabilities = replace(probe(server, "toy", chat=True), continuation=continuation, top=EVERYTHING)
        opened = ChatModel(server, "toy", capabilities, Budget(BudgetLimits(), None), top=EVERYTHING)
        toy.requests.clear()
        try:
            yield opened, toy
        finally:
            opened.close()


def search(
    model: Any, prompt: Prompt, settings: SearchSettings, lead: str
) -> tuple[list[Hypothesis], list[Event]]:
    events: list[Event] = []
    found = decode(model, prompt, Trie(WORDS, BYTES, lead), settings, Usage(), events.append)
    return found, events


def test_the_examples_are_turns_and_the_instruction_comes_first() -> None:
    with conversing(HONEST, None) as (model, toy):
        model.sample(
            asked(LED), [()], Sampling(n=2, temperature=0.5, max_tokens=9, seed=4, alternatives=3), Usage()
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


@pytest.mark.parametrize(("manner", "way"), WAYS)
def test_a_begun_answer_is_sent_as_the_server_wants_it(manner: Any, way: Any) -> None:
    with conversing(replace(HONEST, supports_prefix=manner), way) as (model, toy):
        model.next_tokens(asked(LED), [(Token(b" "), Token("aé".encode()))], 3, b"\n", Usage())
    body = toy.requests[-1].body
    marked = {"prefix": True} if way == "prefix" else {}
    assert body["messages"][-1] == {"role": "assistant", "content": "aé", **marked}
    flags = {key: body[key] for key in ("continue_final_message", "add_generation_prompt") if key in body}
    wanted = {"continue_final_message": True, "add_generation_prompt": False}
    assert flags == (wanted if way == "continue_final_message" else {})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("manner", "way"), WAYS)
@pytest.mark.parametrize("repeated", [False, True])
def test_what_follows_a_begun_answer_is_what_the_model_thinks_there(
    manner: Any, way: Any, repeated: bool, seed: int
) -> None:
    manners = replace(HONEST, supports_prefix=manner, begun_repeated=repeated)
    prompt = asked(LED)
    turns = [message._asdict() for message in prompt.messages]
    said = [b"", b" ", b" a", b" ab", b" ca"]
    with conversing(manners, way, seed) as (model, _):
        answers = model.next_tokens(prompt, [(Token(text),) if text else () for text in said], 300, b"\n", Usage())
    assert [(s.token.bytes, s.logprob) for s in answers[0].best] == [(b" ", 0.0)]
    for text, answer in zip(said[1:], answers[1:], strict=True):
        begun = [*turns, {"role": "assistant", "content": text.decode().removeprefix(" ")}]
        context = rendered(begun if begun[-1]["content"] else turns, supports_prefix=True).encode()
        expected = top_tokens(ToyModel(seed).logprobs(context), 300, b"\n", None)
        told = {s.token.bytes: s.logprob for s in expected.best if s.token.bytes.isascii()}
        assert {s.token.bytes: s.logprob for s in answer.best} == pytest.approx(told)
        assert answer.end_logprob == pytest.approx(expected.end_logprob)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("manner", "way"), WAYS)
@pytest.mark.parametrize(
    "settings",
    [
        SearchSettings(decoder="beam", width=3, max_tokens=12),
        SearchSettings(decoder="greedy", max_tokens=12),
        SearchSettings(width=3, max_tokens=12, temperature=0, alternatives=EVERYTHING),
    ],
    ids=lambda settings: settings.decoder,
)
def test_carried_on_it_is_searched_as_a_model_of_completions(
    settings: SearchSettings, manner: Any, way: Any, seed: int
) -> None:
    prompt = asked(UNLED)
    turns = rendered([message._asdict() for message in prompt.messages])
    with conversing(replace(HONEST, supports_prefix=manner), way, seed) as (model, _):
        found, _ = search(model, prompt, settings, "")
    with toy_completions(replace(HONEST, end_shown=False), ToyModel(seed)) as same:
        expected, _ = search(same, Prompt((Part(turns, False),)), settings, "")
    assert [h.text for h in found] == [h.text for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("template", [LED, UNLED])
def test_without_it_whole_answers_are_ranked_or_closed_in_one_round(template: str, seed: int) -> None:
    lead = bundled_template(template).lead
    with conversing(HONEST, None, seed) as (model, toy):
        settings = SearchSettings(width=8, max_tokens=8, temperature=1.0, seed=seed)
        found, events = search(model, asked(template), settings, lead)
        assert all(request.body["messages"][-1]["role"] == "user" for request in toy.requests)
    assert found
    assert {h.text.decode().removeprefix(lead) for h in found} <= set(WORDS)
    assert all(h.finished and h.score <= 0 for h in found)
    assert len(found) == 1 or not [event for event in events if isinstance(event, Completed)]


def test_the_best_beginning_of_a_bad_answer_is_closed_by_the_constraint() -> None:
    outcomes = []
    for seed in range(20):
        with conversing(HONEST, None, seed) as (model, _):
            found, events = search(model, asked(LED), SearchSettings(width=1, max_tokens=8, temperature=1.0), " ")
        closed = [event for event in events if isinstance(event, Completed)]
        assert [event.prefix + event.completion for event in closed] in ([], [found[0].text])
        outcomes += closed
    assert any(event.prefix.strip() for event in outcomes)


@pytest.mark.parametrize("decoder", ["beam", "greedy"])
def test_without_it_a_step_by_step_decoder_is_refused_in_words(decoder: Any) -> None:
    with conversing(HONEST, None) as (model, toy):
        with pytest.raises(UsageError) as caught:
            search(model, asked(LED), SearchSettings(decoder=decoder), " ")
        assert toy.requests == []
    assert f"`{decoder}`" in caught.value.message
    assert caught.value.hint == "Use --decoder speculative."


@pytest.mark.parametrize("way", [None, "plain"])
def test_retrieval_by_likelihood_is_refused_in_words(way: Any) -> None:
    with conversing(replace(HONEST, supports_prefix="always"), way) as (model, toy):
        parser = Parser.from_domain("calendar", model, retriever="lm", prompt="canonical", target="canonical")
        with pytest.raises(UsageError) as caught:
            parser.parse("what is on tomorrow")
        assert toy.requests == []
    assert "cannot score a text" in caught.value.message
    assert "bm25" in str(caught.value.hint)


def test_behind_an_answer_that_cannot_be_carried_on_there_is_only_its_end() -> None:
    with conversing(HONEST, None) as (model, toy):
        assert model.next_tokens(asked(LED), [(Token(b" "), Token(b"a"))], 3, b"\n", Usage()) == [
            ((), 0.0, False, 0.0)
        ]
        assert toy.requests == []
        usage = Usage()
        (first,) = model.next_tokens(asked(LED), [(Token(b" "),)], 3, b"\n", usage)
    assert len(first.best) == 3
    assert usage.requests == len(toy.requests) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_an_end_that_is_shown_without_a_name_ends_the_answer(seed: int) -> None:
    with conversing(LLAMA_CPP, "plain", seed) as (model, _):
        sampling = Sampling(n=4, temperature=1.0, max_tokens=12, seed=seed, alternatives=5)
        samples = model.sample(asked(UNLED), [()], sampling, Usage())[0]
    for sample in samples:
        assert sample.ended or len(sample.tokens) == 12 or sample.tokens[-1].id == -2
        assert all(token.bytes for token in sample.tokens[:-1])
        assert not sample.ended or len(sample.positions) == len(sample.tokens) + 1
    assert any(sample.ended for sample in samples)


def test_a_prompt_that_is_no_conversation_is_one_turn() -> None:
    with conversing(HONEST, None) as (model, toy):
        plain = Prompt(asked(UNLED).parts)
        model.sample(plain, [()], Sampling(n=1, temperature=1.0, max_tokens=3), Usage())
        assert model.prompt_length(plain) > len(plain.text) / 4
    assert toy.requests[0].body["messages"] == [Message("user", plain.text)._asdict()]


def test_llama_cpps_own_chat_parses_an_utterance_into_something_well_formed(
    llama_server: str, alone: Path
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
        whole = ChatModel(
            model._asker.server, model._model, without_continuation(model._abilities), Budget(BudgetLimits(), None)
        )
        parse = Parser.from_domain(
            "calendar", whole, width=2, examples=4, max_tokens=40, target="canonical"
        ).parse("when is my next meeting with Jane")
        assert parse.program is not None
        assert parse.usage.rounds == 1
    finally:
        model.close()


def without_continuation(capabilities: Capabilities) -> Capabilities:
    return replace(capabilities, continuation=None)
