"""Parsing with the embedded model, on a domain small enough for short prompts."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lark
import pytest

from fewparse import Parser, load_domain
from fewparse.constrain.state import Constraint, State
from fewparse.constrain.trie import Trie
from fewparse.domains.domain import Domain
from fewparse.errors import ContextOverflow, IllFormedOutput, UnknownName, UsageError
from fewparse.events import Event, Prompted, RoundStarted
from fewparse.lm.embedded import EmbeddedModel
from fewparse.options import Options
from fewparse.rerank import Alignment
from fewparse.vocabulary import Vocabulary
from support.domain_files import write_domain

GRAMMAR = """\
start: "(set " DEVICE " " STATE ")" | "(ask " DEVICE ")"
DEVICE: "lamp" | "radio" | "fan"
STATE: "on" | "off"
"""
EXAMPLES = [
    ("lamp on", "(set lamp on)", "turn the lamp on"),
    ("radio off", "(set radio off)", "turn the radio off"),
    ("is the fan on?", "(ask fan)", "ask about the fan"),
    ("is the radio on?", "(ask radio)", "ask about the radio"),
]
EXECUTOR = """\
def execute(program):
    if "radio" in program:
        raise ValueError("there is no radio here")
    return {"done": program}
"""
SETTINGS = """\
name = "tiny"
target = "{target}"
executor = "executor.py:execute"
prompt = "{prompt}"
[retrieve]
examples = 3
retriever = "bm25"
[constraint]
kind = "{kind}"
[search]
width = 3
max_tokens = 16
"""
MakeDomain = Callable[..., Domain]


@pytest.fixture
def make_domain(tmp_path: Path) -> MakeDomain:
    def make(target: str = "program", prompt: str = "lisp", kind: str = "grammar") -> Domain:
        examples = [{"utterance": u, "program": p, "canonical": c} for u, p, c in EXAMPLES]
        settings = SETTINGS.format(target=target, prompt=prompt, kind=kind)
        files = {"grammar.lark": GRAMMAR, "executor.py": EXECUTOR}
        return load_domain(write_domain(tmp_path, settings, examples, files))

    return make


@pytest.fixture
def parser(make_domain: MakeDomain, model: EmbeddedModel) -> Parser:
    return Parser.from_domain(make_domain(), model)


def test_a_parse_has_candidates_examples_prompt_trace_and_usage(parser: Parser, model: EmbeddedModel) -> None:
    events: list[Event] = []
    parse = parser.parse("fan on", emit=events.append)
    assert (parse.utterance, parse.target, parse.model) == ("fan on", "program", model.name)
    assert parse.output == parse.program == parse.candidates[0].text
    assert [c.score for c in parse.candidates] == sorted((c.score for c in parse.candidates), reverse=True)
    assert len({c.text for c in parse.candidates}) == len(parse.candidates) <= 3
    assert parse.failure is None
    assert parse.answer == {"done": parse.program} or parse.answer_error
    assert len(parse.examples) == 3
    assert parse.examples_dropped == 0
    assert parse.prompt.text.endswith("; fan on\n")
    prompted, *search_events = events
    assert isinstance(prompted, Prompted)
    assert prompted.prompt == parse.prompt.text
    assert parse.trace == tuple(search_events)
    assert isinstance(parse.trace[0], RoundStarted)
    assert parse.usage.requests > 0
    assert json.loads(json.dumps(parse.as_dict()))["output"] == parse.output


def test_the_prompt_is_evaluated_once_and_not_again_for_the_same_utterance(
    parser: Parser, model: EmbeddedModel
) -> None:
    first = parser.parse("lamp off, please")
    assert first.usage.prefill_tokens <= model.prompt_length(first.prompt)
    again = parser.parse("lamp off, please")
    assert again.usage.prefill_tokens == 0
    assert again.candidates == first.candidates


@pytest.mark.parametrize("decoder", ["greedy", "beam", "speculative"])
@pytest.mark.parametrize("utterance", ["lamp on", "sing a song about zebras"])
def test_every_constrained_output_is_a_sentence_of_the_grammar(
    make_domain: MakeDomain, model: EmbeddedModel, decoder: str, utterance: str
) -> None:
    oracle = lark.Lark(GRAMMAR, parser="earley", lexer="dynamic_complete")
    parse = Parser.from_domain(make_domain(), model, decoder=decoder).parse(utterance)
    assert parse.candidates
    for candidate in parse.candidates:
        oracle.parse(candidate.text)


def test_an_unconstrained_output_is_one_line(make_domain: MakeDomain, model: EmbeddedModel) -> None:
    parser = Parser.from_domain(make_domain(), model, constrained=False, decoder="greedy")
    output = parser.parse("tell me a joke").output
    assert output
    assert "\n" not in output


def test_parses_are_in_the_order_of_their_utterances(parser: Parser) -> None:
    utterances = ["fan on", "is the lamp on?", "fan on"]
    parses = list(parser.parse_many(utterances))
    assert [p.utterance for p in parses] == utterances
    assert [p.candidates for p in parses] == [parser.parse(u).candidates for u in utterances]


def test_concurrent_parses_equal_sequential_ones(parser: Parser) -> None:
    utterances = ["radio on", "is the fan off?"]
    alone = [parser.parse(u).candidates for u in utterances]

    async def gathered() -> list[object]:
        return [p.candidates for p in await asyncio.gather(*map(parser.aparse, utterances))]

    async def streamed() -> list[object]:
        return [p.candidates async for p in parser.aparse_many(utterances)]

    assert asyncio.run(gathered()) == alone
    assert asyncio.run(streamed()) == alone


@pytest.mark.parametrize("nothing", ["", "  ", "\n\t"])
def test_an_empty_utterance_is_rejected(parser: Parser, nothing: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        parser.parse(nothing)


def test_an_utterance_longer_than_the_context_is_an_error_with_both_lengths(
    parser: Parser, model: EmbeddedModel
) -> None:
    with pytest.raises(ContextOverflow) as caught:
        parser.parse("lamp " * 9_000)
    assert caught.value.needed > caught.value.available == model.context_length


def test_examples_that_do_not_fit_are_dropped_the_least_similar_first_and_counted(
    parser: Parser, model: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = parser.prompt("is the radio on?")[0]
    longest = model.prompt_length(parser.prompt("is the radio on?")[1])
    monkeypatch.setattr(model, "context_length", longest - 1 + 16)
    parse = parser.parse("is the radio on?")
    assert parse.examples == whole[:2]
    assert parse.examples_dropped == 1


@pytest.mark.parametrize(
    ("chosen", "branches"),
    [({}, True), ({"constrained": False}, False), ({"constrained": False, "free_branching": True}, True)],
)
def test_free_branching_is_off_by_default_without_a_constraint(chosen: dict[str, Any], branches: bool) -> None:
    assert Options.resolve(load_domain("starter"), **chosen).search.free_branching is branches


def test_the_most_similar_example_is_the_last_one_in_the_prompt(parser: Parser) -> None:
    examples, prompt = parser.prompt("is the radio on?")
    assert examples[0].program == "(ask radio)"
    assert prompt.text.endswith("; is the radio on?\n(ask radio)\n; is the radio on?\n")


def test_a_hidden_example_is_not_in_the_prompt_and_not_counted_as_dropped(
    make_domain: MakeDomain, model: EmbeddedModel
) -> None:
    parser = Parser.from_domain(make_domain(), model, examples=4)
    hidden = next(e for e in parser.domain.examples if e.utterance == "is the radio on?")
    parse = parser.parse(hidden.utterance, without=[hidden])
    assert hidden not in parse.examples
    assert "(ask radio)" not in parse.prompt.text
    assert len(parse.examples) == 3
    assert parse.examples_dropped == 0


def test_the_reranker_is_not_trained_on_a_hidden_example(make_domain: MakeDomain, model: EmbeddedModel) -> None:
    parser = Parser.from_domain(make_domain(), model, rerank=2.0)
    hidden = next(e for e in parser.domain.examples if e.utterance == "is the radio on?")
    others = Alignment((e.utterance, e.program) for e in parser.domain.examples if e != hidden)
    parse = parser.parse(hidden.utterance, without=[hidden])
    assert parse.candidates
    for candidate in parse.candidates:
        alignment = 2.0 * others.score(hidden.utterance, candidate.text)
        assert candidate.score - candidate.model_score == pytest.approx(alignment)


def test_an_ill_formed_output_of_the_search_is_an_error(
    make_domain: MakeDomain, model: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    class InconsistentConstraint(Constraint):
        """Allows an output during the search that it does not accept."""

        def __init__(self, vocabulary: Vocabulary) -> None:
            self.vocabulary = vocabulary

        def start(self) -> State:
            return Trie(["(ask fan)"], self.vocabulary).start()

        def accepts(self, text: bytes) -> bool:
            return text == b"(ask lamp)"

    monkeypatch.setattr(Domain, "constraint", lambda _self, vocabulary, *_rest: InconsistentConstraint(vocabulary))
    with pytest.raises(IllFormedOutput, match="ask fan"):
        Parser.from_domain(make_domain(), model).parse("is the fan on?")


def test_a_parse_whose_execution_fails_has_an_answer_error(
    make_domain: MakeDomain, model: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = "(ask radio)"
    monkeypatch.setattr(Domain, "constraint", lambda _self, vocabulary, *_rest: Trie([only], vocabulary))
    parse = Parser.from_domain(make_domain(), model).parse("is the radio on?")
    assert parse.program == only
    assert parse.answer is None
    assert parse.answer_error == "there is no radio here"


def test_a_canonical_output_is_translated_to_its_program(make_domain: MakeDomain, model: EmbeddedModel) -> None:
    parser = Parser.from_domain(make_domain("canonical", "canonical", "trie"), model, decoder="beam")
    parse = parser.parse("is the fan on?")
    programs = {canonical: program for _, program, canonical in EXAMPLES}
    assert parse.target == "canonical"
    assert parse.output in programs
    assert all(c.program == programs[c.text] for c in parse.candidates)
    assert parse.program == programs[parse.output]


def test_the_number_of_examples_may_be_zero(make_domain: MakeDomain, model: EmbeddedModel) -> None:
    parse = Parser.from_domain(make_domain(), model, examples=0, decoder="greedy").parse("lamp on")
    assert parse.examples == ()
    assert parse.examples_dropped == 0
    assert parse.output


def test_the_number_of_candidates_is_limited_by_n_best(make_domain: MakeDomain, model: EmbeddedModel) -> None:
    assert len(Parser.from_domain(make_domain(), model, n_best=1).parse("lamp on").candidates) == 1


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ({"widht": 3}, "Did you mean width?"),
        ({"decoder": "beems"}, "Did you mean beam?"),
        ({"target": "cannonical"}, "Did you mean canonical?"),
        ({"prompt": "lips"}, "Did you mean lisp?"),
        ({"retriever": "bm26"}, "Did you mean bm25?"),
        ({"order": "best-frist"}, "Did you mean best-first"),
    ],
)
def test_an_unknown_option_is_rejected_with_a_suggestion(
    make_domain: MakeDomain, model: EmbeddedModel, option: Any, hint: str
) -> None:
    with pytest.raises(UnknownName) as caught:
        Parser.from_domain(make_domain(), model, **option)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("option", [{"examples": -1}, {"n_best": 0}, {"width": 0}])
def test_an_option_out_of_range_is_rejected(make_domain: MakeDomain, model: EmbeddedModel, option: Any) -> None:
    with pytest.raises(UsageError):
        Parser.from_domain(make_domain(), model, **option)


def test_a_canonical_target_needs_canonical_utterances(tmp_path: Path, model: EmbeddedModel) -> None:
    settings = 'name = "bare"\n[constraint]\nkind = "trie"\n'
    write_domain(tmp_path, settings, [{"utterance": "lamp on", "program": "(set lamp on)"}])
    with pytest.raises(UsageError, match="lacks canonical utterances"):
        Parser.from_domain(tmp_path, model, target="canonical")
