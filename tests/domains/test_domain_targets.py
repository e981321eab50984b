"""The targets of a domain: programs and canonical utterances, their constraints, prompts and translation."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse import Parser, load_domain
from fewparse.domains.domain import Domain
from fewparse.errors import DomainError, FewparseError, GrammarError, UsageError
from fewparse.example import Target
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.lm.embedded import EmbeddedModel
from fewparse.vocabulary import BYTES
from support.domain_files import write_domain

SYNCHRONOUS = r"""
start -> "turn on the " device , "(on " device ")"
start -> "play the " device , "(on " device ")"
start -> "say \"" NOTE "\"" , "(say \"" NOTE "\")"
device -> "lamp"
device -> "music" , "radio"
device -> "music" , "gramophone"
NOTE -> /[a-z ]/
NOTE -> /[a-z ]/ NOTE
"""
EXAMPLES = [
    {"utterance": "lamp please", "program": "(on lamp)"},
    {"utterance": "I need music", "program": "(on gramophone)"},
    {"utterance": "say good night", "program": '(say "good night")'},
]
Make = Callable[..., Domain]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def build(
        settings: str = "", target: str = "canonical", *more: dict[str, str], grammar: str = SYNCHRONOUS
    ) -> Domain:
        table = f'name = "sounds"\ntarget = "{target}"\n[constraint]\ngrammar = "grammar.scfg"\n{settings}\n'
        return load_domain(write_domain(tmp_path, table, [*EXAMPLES, *more], {"grammar.scfg": grammar}))

    return build


def test_missing_canonical_utterances_are_the_shortest_translations(make: Make) -> None:
    domain = make().for_target("canonical")
    assert [example.canonical for example in domain.examples] == [
        "play the lamp",
        "play the music",
        'say "good night"',
    ]


def test_a_given_canonical_utterance_is_not_replaced(make: Make) -> None:
    given = {"utterance": "light", "program": "(on lamp)", "canonical": "turn on the lamp"}
    assert make("", "canonical", given).for_target("canonical").examples[-1].canonical == "turn on the lamp"


def test_for_the_target_program_no_canonical_utterances_are_generated(make: Make) -> None:
    assert all(example.canonical is None for example in make().for_target("program").examples)


def test_a_program_without_a_canonical_utterance_is_an_error(make: Make) -> None:
    domain = make("", "canonical", {"utterance": "off", "program": "(off lamp)"})
    with pytest.raises(DomainError, match=r"the program \(off lamp\) is not derived from character 3 on"):
        domain.for_target("canonical")


def test_an_ambiguous_utterance_has_the_program_most_probable_by_the_examples(make: Make) -> None:
    assert make().program_of("play the music", "canonical") == "(on gramophone)"
    assert make('scorer = "shortest"').program_of("play the music", "canonical") == "(on radio)"


@pytest.mark.parametrize("utterance", ["play the tuba", 'say "' + "a" * 3_000 + '"'], ids=["unknown", "too long"])
def test_an_underivable_or_too_long_utterance_has_no_program(make: Make, utterance: str) -> None:
    assert make().program_of(utterance, "canonical") is None


def test_each_target_is_constrained_by_its_side_of_the_grammar(make: Make) -> None:
    domain = make('copy = ["NOTE"]').for_target("canonical")
    canonical = domain.constraint(BYTES, "canonical", "say hello there")
    program = domain.constraint(BYTES, "program", "say hello there")
    assert canonical.accepts(b'say "hello there"')
    assert not canonical.accepts(b'say "there hello"')
    assert program.accepts(b'(say "hello")')
    assert not program.accepts(b'say "hello"')


def test_each_target_has_its_default_prompt(make: Make, model: EmbeddedModel) -> None:
    prompts: dict[Target, str] = {"canonical": "canonical", "program": "lisp"}
    for target, template in prompts.items():
        assert Parser.from_domain(make(), model, target=target).options.prompt == template


def test_a_parse_has_the_canonical_utterance_and_its_program(make: Make, model: EmbeddedModel) -> None:
    parse = Parser.from_domain(make(), model, decoder="greedy").parse("lamp please")
    assert parse.output is not None
    assert parse.program is not None
    assert parse.program == make().program_of(parse.output, "canonical")


def test_an_example_with_a_generated_canonical_utterance_can_be_hidden(make: Make, model: EmbeddedModel) -> None:
    domain = make()
    examples, _ = Parser.from_domain(domain, model).prompt("lamp please", without=domain.examples[:1])
    assert [example.utterance for example in examples if example.utterance == "lamp please"] == []
    assert len(examples) == len(domain.examples) - 1


def test_a_plain_grammar_has_no_canonical_utterances(make: Make, tmp_path: Path) -> None:
    domain = make('dialect = "lark"', "program", grammar='start: "(on lamp)"\n')
    assert domain.translator is None
    with pytest.raises(UsageError, match="lacks canonical utterances"):
        Parser.from_domain(domain, target="canonical")


@pytest.mark.parametrize("merge", ["strict", "typed", "loose", "open"])
def test_examples_alone_induce_a_constraint(make: Make, merge: str) -> None:
    domain = make(f'kind = "induced"\nmerge = "{merge}"\ncopy = ["TEXT"]', "program")
    constraint = domain.constraint(BYTES, "program", "say hello")
    assert constraint.accepts(b"(on lamp)")
    assert constraint.accepts(b'(say "hello")')
    assert not constraint.accepts(b'(say "goodbye")')
    assert not constraint.accepts(b"(on lamp")


def test_a_mistake_in_a_synchronous_grammar_is_shown_with_its_line(make: Make) -> None:
    with pytest.raises(GrammarError, match=r"grammar.scfg:1:"):
        make("", "program", grammar="start -> 'a'\n").check()


def test_a_malformed_program_cannot_be_used_for_induction(make: Make) -> None:
    with pytest.raises(FewparseError, match=r"\(on"):
        make('kind = "induced"', "program", {"utterance": "x", "program": "(on"}).check()


def test_the_translator_has_the_scorer_of_the_domain_or_the_given_one(make: Make) -> None:
    def best(domain: Domain, scorer: ScorerName | None = None) -> str | None:
        translator = domain.scored_translator(scorer)
        return translator.to_program("play the music").best if translator else None

    assert best(make()) == best(make('scorer = "shortest"'), "learned") == "(on gramophone)"
    assert best(make('scorer = "shortest"')) == best(make(), "shortest") == "(on radio)"


def test_an_example_too_long_to_parse_is_ignored_by_the_learned_scorer(make: Make) -> None:
    long = {"utterance": "long", "program": '(say "' + "a" * 3_000 + '")'}
    assert make("", "canonical", long).program_of("play the music", "canonical") == "(on gramophone)"
