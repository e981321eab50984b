"""The completer finds the shortest suffix that makes a prefix a sentence."""

import random

import pytest
from hypothesis import given

from fewparse.domains.load import find_domain
from fewparse.grammar.parsing.shortest_suffix import Completer
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import Grammar
from support.campaign import examples
from support.earley import Recogniser
from support.random_grammars import ALPHABET, candidates, heights, plain_grammars, seeds
from support.sample_grammars import strings


def shortest_length(recogniser: Recogniser, text: str) -> int | None:
    """The length of the shortest suffix that makes the text a sentence, by breadth-first search."""
    frontier, seen = [text], set()
    for longer in frontier:
        row = recogniser.row(longer.encode())
        if row is not None and row.accepts:
            return len(longer) - len(text)
        if row is not None and row not in seen:
            seen.add(row)
            frontier += [longer + char for char in ALPHABET]
    return None


@given(plain_grammars(), seeds)
@examples(200)
def test_no_shorter_suffix_makes_a_sentence(grammar: Grammar, rng: random.Random) -> None:
    completer = Completer(grammar)
    if grammar.start not in heights(grammar):
        assert completer.shortest_suffix("") is None
        return
    recogniser = Recogniser(grammar)
    sentences = list(candidates(grammar, rng, count=2))
    prefixes = [text[: rng.randrange(len(text) + 1)] for text in sentences]
    for text in [*sentences, *prefixes, *rng.sample(list(strings("ab", 3)), 4), ""]:
        found = completer.shortest_suffix(text)
        assert (None if found is None else len(found)) == shortest_length(recogniser, text), text
        assert found is None or recogniser.accepts(text + found)


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("(on (lamp", " b))"),
        ("(on (lamp b", "))"),
        ("(on (lamp b))", ""),
        ('(say "hi', '")'),
        ("(on (lamb", None),
    ],
)
def test_shortest_suffixes_of_a_small_grammar(prefix: str, suffix: str | None) -> None:
    rules = (
        'start: "(on " lamp ")" | "(say \\"" TEXT "\\")"\nlamp: "(lamp " ROOM ")"\nROOM: /[b-z]/\nTEXT: /[a-z]+/'
    )
    assert Completer(read_grammar(rules)).shortest_suffix(prefix) == suffix


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("change the event", " to be an event"),
        ('create an event with "Ann" and the manager of ', '""'),
        ("create an event starting the week of Thanks", "giving of 0"),
        ("create an event named", None),
    ],
)
def test_shortest_suffixes_of_a_large_grammar(prefix: str, suffix: str | None) -> None:
    assert Completer(find_domain("smcalflow").side("canonical")).shortest_suffix(prefix) == suffix


@pytest.mark.parametrize("repetition", ["(a{2000}){2000}", "((((((a{50}){50}){50}){50}){50}){50})"])
def test_an_enormous_suffix_is_not_built(repetition: str) -> None:
    completer = Completer(read_grammar(f'start: /{repetition}/ "!" | "b" "c"'))
    assert completer.shortest_suffix("aaa") is None
    assert completer.shortest_suffix("") == "bc"
    assert completer.shortest_suffix("b") == "c"
