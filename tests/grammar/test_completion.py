"""What ends a begun text is the shortest there is."""

import random

import pytest
from hypothesis import given

from fewparse.domains.load import find_domain
from fewparse.grammar.parsing.completion import Completer
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import Grammar
from support.earley import Recogniser
from support.random_grammars import ALPHABET, candidates, examples, heights, plain_grammars, seeds
from support.sample_grammars import strings


def missing(recogniser: Recogniser, text: str) -> int | None:
    """How many characters the shortest sentence has behind a text, by breadth-first search."""
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
def test_no_shorter_text_makes_a_sentence(grammar: Grammar, rng: random.Random) -> None:
    completer = Completer(grammar)
    if grammar.start not in heights(grammar):
        assert completer.complete("") is None
        return
    recogniser = Recogniser(grammar)
    whole = candidates(grammar, rng, count=2)
    begun = [text[: rng.randrange(len(text) + 1)] for text in whole]
    for text in [*whole, *begun, *rng.sample(list(strings("ab", 3)), 4), ""]:
        found = completer.complete(text)
        assert (None if found is None else len(found)) == missing(recogniser, text), text
        assert found is None or recogniser.accepts(text + found)


@pytest.mark.parametrize(
    ("begun", "ending"),
    [
        ("(on (lamp", " b))"),
        ("(on (lamp b", "))"),
        ("(on (lamp b))", ""),
        ('(say "hi', '")'),
        ("(on (lamb", None),
    ],
)
def test_a_text_is_ended_where_it_stands(begun: str, ending: str | None) -> None:
    rules = (
        'start: "(on " lamp ")" | "(say \\"" TEXT "\\")"\nlamp: "(lamp " ROOM ")"\nROOM: /[b-z]/\nTEXT: /[a-z]+/'
    )
    assert Completer(read_grammar(rules)).complete(begun) == ending


@pytest.mark.parametrize(
    ("begun", "ending"),
    [
        ("change the event", " to be an event"),
        ('create an event with "Ann" and the manager of ', '""'),
        ("create an event starting the week of Thanks", "giving of 0"),
        ("create an event named", None),
    ],
)
def test_a_sentence_of_a_large_grammar_is_ended_as_well(begun: str, ending: str | None) -> None:
    assert Completer(find_domain("smcalflow").side("canonical")).complete(begun) == ending
