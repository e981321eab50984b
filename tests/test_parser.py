"""The whole way of an utterance, on a domain small enough for short prompts."""

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
from fewparse.events import Event, RoundStarted
from fewparse.lm.embedded import EmbeddedModel
from fewparse.options import Options
from fewparse.rerank import Alignment
from fewparse.vocabulary import Vocabulary

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
        lines = [json.dumps({"utterance": u, "program": p, "canonical": c}) for u, p, c in EXAMPLES]
        (tmp_path / "domain.toml").write_text(SETTINGS.format(target=target, prompt=prompt, kind=kind))
        (tmp_path / "examples.jsonl").write_text("\n".join(lines))
        (tmp_path / "grammar.lark").write_text(GRAMMAR)
        (tmp_path / "executor.py").write_text(EXECUTOR)
        return load_domain(tmp_path)

    return make


@pytest.fixture
def parser(make_domain: MakeDomain, model: EmbeddedModel) -> Parser:
    return Parser.from_domain(make_domain(), model)


def test_a_parse_tells_all_that_is_known_of_it(parser: Parser, model: EmbeddedModel) -> None:
    heard: list[Event] = []
    parse = parser.parse("fan on", emit=heard.append)
    assert (parse.utterance, parse.target, parse.model) == ("fan on", "program", model.name)
    assert parse.output == parse.program == parse.candidates[0].text
    assert [c.score for c in parse.candidates] == sorted((c.score for c in parse.candidates), reverse=True)
    assert len({c.text for c in parse.candidates}) == len(parse.candidates) <= 3
    assert parse.failure is None
    assert parse.answer == {"done": parse.program} or parse.answer_error
    assert len(parse.examples) == 3
    assert parse.examples_dropped == 0
    assert parse.prompt.text.endswith("; fan on\n")
    assert parse.trace == tuple(heard)
    assert isinstance(parse.trace[0], RoundStarted)
    assert parse.usage.requests > 0
    assert json.loads(json.dumps(parse.as_dict()))["output"] == parse.output


def test_the_prompt_is_passed_over_once_and_for_the_same_utterance_not_again(
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
    judge = lark.Lark(GRAMMAR, parser="earley", lexer="dynamic_complete")
    parse = Parser.from_domain(make_domain(), model, decoder=decoder).parse(utterance)
    assert parse.candidates
    for candidate in parse.candidates:
        judge.parse(candidate.text)


def test_an_unconstrained_output_may_be_anything_on_one_line(
    make_domain: MakeDomain, model: EmbeddedModel
) -> None:
    parser = Parser.from_domain(make_domain(), model, constrained=False, decoder="greedy")
    output = parser.parse("tell me a joke").output
    assert output
    assert "\n" not in output


def test_many_parses_come_in_the_order_of_their_utterances(parser: Parser) -> None:
    utterances = ["fan on", "is the lamp on?", "fan on"]
    parses = list(parser.parse_many(utterances))
    assert [p.utterance for p in parses] == utterances
    assert [p.candidates for p in parses] == [parser.parse(u).candidates for u in utterances]


def test_parses_at_once_are_those_one_after_the_other(parser: Parser) -> None:
    utterances = ["radio on", "is the fan off?"]
    alone = [parser.parse(u).candidates for u in utterances]

    async def max_concurrency() -> list[object]:
        return [p.candidates for p in await asyncio.gather(*map(parser.aparse, utterances))]

    async def in_a_row() -> list[object]:
        return [p.candidates async for p in parser.aparse_many(utterances)]

    assert asyncio.run(max_concurrency()) == alone
    assert asyncio.run(in_a_row()) == alone


@pytest.mark.parametrize("nothing", ["", "  ", "\n\t"])
def test_an_empty_utterance_is_refused(parser: Parser, nothing: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        parser.parse(nothing)


def test_an_utterance_longer_than_the_context_is_refused_with_both_lengths(
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
def test_samples_that_nothing_can_cut_are_not_branched_unless_asked_for(
    chosen: dict[str, Any], branches: bool
) -> None:
    assert Options.resolve(load_domain("starter"), **chosen).search.free_branching is branches


def test_the_most_similar_example_stands_last_before_the_question(parser: Parser) -> None:
    examples, prompt = parser.prompt("is the radio on?")
    assert examples[0].program == "(ask radio)"
    assert prompt.text.endswith("; is the radio on?\n(ask radio)\n; is the radio on?\n")


def test_an_example_that_is_kept_out_stays_out_and_is_not_counted_as_dropped(
    make_domain: MakeDomain, model: EmbeddedModel
) -> None:
    parser = Parser.from_domain(make_domain(), model, examples=4)
    itself = next(e for e in parser.domain.examples if e.utterance == "is the radio on?")
    parse = parser.parse(itself.utterance, without=[itself])
    assert itself not in parse.examples
    assert "(ask radio)" not in parse.prompt.text
    assert len(parse.examples) == 3
    assert parse.examples_dropped == 0


def test_an_example_that_is_kept_out_does_not_teach_the_reranker_either(
    make_domain: MakeDomain, model: EmbeddedModel
) -> None:
    parser = Parser.from_domain(make_domain(), model, rerank=2.0)
    itself = next(e for e in parser.domain.examples if e.utterance == "is the radio on?")
    others = Alignment((e.utterance, e.program) for e in parser.domain.examples if e != itself)
    parse = parser.parse(itself.utterance, without=[itself])
    assert parse.candidates
    for candidate in parse.candidates:
        gained = 2.0 * others.score(itself.utterance, candidate.text)
        assert candidate.score - candidate.model_score == pytest.approx(gained)


def test_a_constraint_that_lies_is_caught(
    make_domain: MakeDomain, model: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Liar(Constraint):
        """Lets the search say what it then refuses."""

        def __init__(self, vocabulary: Vocabulary) -> None:
            self.vocabulary = vocabulary

        def start(self) -> State:
            return Trie(["(ask fan)"], self.vocabulary).start()

        def accepts(self, text: bytes) -> bool:
            return text == b"(ask lamp)"

    monkeypatch.setattr(Domain, "constraint", lambda _self, vocabulary, *_rest: Liar(vocabulary))
    with pytest.raises(IllFormedOutput, match="ask fan"):
        Parser.from_domain(make_domain(), model).parse("is the fan on?")


def test_an_executor_that_raises_leaves_an_answer_error_and_a_parse(
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


def test_no_examples_at_all_is_a_choice(make_domain: MakeDomain, model: EmbeddedModel) -> None:
    parse = Parser.from_domain(make_domain(), model, examples=0, decoder="greedy").parse("lamp on")
    assert parse.examples == ()
    assert parse.examples_dropped == 0
    assert parse.output


def test_no_more_candidates_than_asked_for_come_back(make_domain: MakeDomain, model: EmbeddedModel) -> None:
    assert len(Parser.from_domain(make_domain(), model, n_best=1).parse("lamp on").candidates) == 1


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ({"widht": 3}, "Did you mean width?"),
        ({"decoder": "beems"}, "Did you mean beam?"),
        ({"target": "cannonical"}, "Did you mean canonical?"),
        ({"prompt": "lips"}, "Did you mean lisp?"),
        ({"retriever": "bm26"}, "Did you mean bm25?"),
        ({"order": "best-frist"}, "Did you mean best-first"),
    ],
)
def test_an_unknown_option_is_refused_at_once_with_a_suggestion(
    make_domain: MakeDomain, model: EmbeddedModel, option: Any, complaint: str
) -> None:
    with pytest.raises(UnknownName) as caught:
        Parser.from_domain(make_domain(), model, **option)
    assert complaint in str(caught.value.hint)


@pytest.mark.parametrize("option", [{"examples": -1}, {"n_best": 0}, {"width": 0}])
def test_an_option_that_makes_no_sense_is_refused_at_once(
    make_domain: MakeDomain, model: EmbeddedModel, option: Any
) -> None:
    with pytest.raises(UsageError):
        Parser.from_domain(make_domain(), model, **option)


def test_a_canonical_target_needs_canonical_utterances(tmp_path: Path, model: EmbeddedModel) -> None:
    (tmp_path / "domain.toml").write_text('name = "bare"\n[constraint]\nkind = "trie"\n')
    (tmp_path / "examples.jsonl").write_text('{"utterance": "lamp on", "program": "(set lamp on)"}')
    with pytest.raises(UsageError, match="lacks canonical utterances"):
        Parser.from_domain(tmp_path, model, target="canonical")
