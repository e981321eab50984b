"""The calendar grammar is a bijection: one canonical utterance per program, and one program per utterance.

This is proved, not only sampled: on each side every sentence has at most one derivation, since the LALR(1) table
of its words has no conflict, and in every rule each symbol is linked to one on the other side.
"""

import random
import re
from collections.abc import Iterator
from itertools import product

import pytest
from lark import Lark, Token
from lark.lexer import Lexer

from fewparse.domains.load import load_domain
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text
from fewparse.grammar.synchronous import SIDES, Side
from fewparse.grammar.translation.translator import Translator
from fewparse.retrieve.folding import rules_of_words
from support.earley import Recogniser
from support.sample_grammars import CALENDAR as LARK_SOURCE
from support.sample_grammars import lark_language

CALENDAR = load_domain("calendar")
RULES = CALENDAR.folder / "grammar.scfg"
GRAMMAR = read_scfg_text(RULES.read_text(encoding="utf-8"), RULES)
PROGRAMS = GRAMMAR.side("program")
AS_LARK = read_grammar(LARK_SOURCE)
TRANSLATOR = Translator(GRAMMAR)
WITHOUT_TITLES = {"TITLE": ((Text("x"),),)}
UNKNOWN = 1_000
ALL_PROGRAMS = sorted({e.program for e in (*CALENDAR.examples, *CALENDAR.test_examples) if e.program})

PAIRS = {
    "list my meetings with Maria next week": "(list (meetings (with me Maria) (on next-week)))",
    "list the rooms for 8 people with a projector free now": (
        "(list (rooms (at-least 8) (has projector) (free (at now))))"
    ),
    "how many rooms are there on floor 2 with video": "(count (rooms (floor 2) (has video)))",
    "how many meetings are there on Friday shorter than an hour": (
        "(count (meetings (on Friday) (shorter-than (hours 1))))"
    ),
    'how many "review" meetings do I have today': '(count (meetings "review" (with me) (on today)))',
    "how many people are on the design team": "(count (team design))",
    "are there any meetings after March 12 in the morning": "(any (meetings (after March-12) (at morning)))",
    'are there any conflicts with the "retro" on Friday': '(any (conflicts (meeting "retro" (on Friday))))',
    "what is the largest room": "(what (largest (rooms)))",
    "when is the first meeting with Anna on Thursday": "(when (first (meetings (with Anna) (on Thursday))))",
    'when does my "1:1" with Tom end': '(ends (meeting "1:1" (with me Tom)))',
    "where is the meeting with Kofi on March 19 at 11am": "(where (meeting (with Kofi) (on March-19) (at 11am)))",
    "how long is my previous meeting with Jonas": "(how-long (previous (meetings (with me Jonas))))",
    "what is the total time of my meetings tomorrow afternoon": (
        "(total-time (meetings (with me) (on tomorrow) (at afternoon)))"
    ),
    "who is Lena's manager's manager": "(who (manager (manager Lena)))",
    'who is the organizer of the "interview" on March 25': '(who (organizer (meeting "interview" (on March-25))))',
    "who is in my next meeting": "(who (attendees (next (meetings (with me)))))",
    'is my manager in the "retro"': '(attends (manager me) (meeting "retro"))',
    "are Tom and I free last Monday after noon": "(free Tom me (on last-Monday) (after noon))",
    "when is Cedar free tomorrow for 2 hours": "(free-times Cedar (on tomorrow) (for (hours 2)))",
    "what is my email": "(email me)",
    "what is Kofi's manager's team": "(team-of (manager Kofi))",
    'how many people fit in the room of the "standup" today': '(capacity (where (meeting "standup" (on today))))',
    'schedule "lunch" with Iris on Monday at 12:15pm for an hour in Ember': (
        '(create "lunch" (with Iris) (on Monday) (at 12:15pm) (for (hours 1)) (in Ember))'
    ),
    "schedule a meeting with Ben, Lena and the sales team": "(create (with Ben Lena (team sales)))",
    "cancel my meeting today at 3pm": "(cancel (meeting (with me) (on today) (at 3pm)))",
    'accept all the "sync" meetings held online': '(accept (meetings "sync" (in online)))',
    'decline all the conflicts with the "all hands"': '(decline (conflicts (meeting "all hands")))',
    'move the "standup" on Monday to 10:30am': '(move (meeting "standup" (on Monday)) (at 10:30am))',
    'move the "retro" to tomorrow at 2pm': '(move (meeting "retro") (on tomorrow) (at 2pm))',
    "move my next meeting to Breeze": "(relocate (next (meetings (with me))) Breeze)",
    "delay the longest meeting organized by me by 15 minutes": "(delay (longest (meetings (by me))) (minutes 15))",
    'extend the "retro" by 10 minutes': '(extend (meeting "retro") (minutes 10))',
    "shorten the last meeting this week by an hour": "(shorten (last (meetings (on this-week))) (hours 1))",
    'remind me about the "offsite"': '(remind (meeting "offsite"))',
    'remind me 5 minutes before the "offsite"': '(remind (meeting "offsite") (minutes 5))',
    'rename my "1:1" with Tom to "catch-up"': '(rename (meeting "1:1" (with me Tom)) "catch-up")',
    'invite everyone in the "sync" to the "retro"': '(invite (meeting "retro") (attendees (meeting "sync")))',
    'remove me from the "partner call"': '(uninvite (meeting "partner call") me)',
    'tell Tom "I\'m running late"': '(message Tom "I\'m running late")',
    "book the smallest room for 5 people on Friday at 3pm": (
        "(book (smallest (rooms (at-least 5))) (on Friday) (at 3pm))"
    ),
    'list the meetings with everyone in the "sync" on Monday': (
        '(list (meetings (with (attendees (meeting "sync"))) (on Monday)))'
    ),
    'list the meetings with everyone in (the "sync" on Friday) on Monday': (
        '(list (meetings (with (attendees (meeting "sync" (on Friday)))) (on Monday)))'
    ),
    "list my meetings between 1pm and 4pm in the room of (my first meeting today) longer than 45 minutes": (
        "(list (meetings (with me) (after 1pm) (before 4pm) (in (where (first (meetings (with me) (on today)))))"
        " (longer-than (minutes 45))))"
    ),
    "is (the largest room free today) free tomorrow": "(free (largest (rooms (free (on today)))) (on tomorrow))",
}


@pytest.mark.parametrize(("utterance", "program"), PAIRS.items(), ids=PAIRS)
def test_a_program_has_a_readable_canonical_utterance(utterance: str, program: str) -> None:
    assert TRANSLATOR.to_utterance(program).best == utterance
    assert TRANSLATOR.to_program(utterance).best == program


def test_the_pairs_use_every_function() -> None:
    functions = re.compile(r"\(([a-z-]+)")
    assert set(functions.findall(" ".join(PAIRS.values()))) == set(functions.findall(" ".join(ALL_PROGRAMS)))


class Sampler:
    """Samples shallow and deep sentences of a grammar, with a fixed seed."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._rng = random.Random(1)
        self._depths: dict[str, int] = {}
        while len(self._depths) < len(grammar.rules):
            ready = {name: min(map(self._depth, productions)) for name, productions in grammar.rules.items()}
            self._depths |= {n: d for n, d in ready.items() if d < UNKNOWN and n not in self._depths}

    def _depth(self, production: Production) -> int:
        return 1 + max((self._depths.get(s.name, UNKNOWN) for s in production if isinstance(s, Ref)), default=0)

    def sentences(self, count: int) -> list[str]:
        return ["".join(self.pieces()) for _ in range(count)]

    def pieces(self) -> Iterator[str]:
        """Yield the terminals of one sentence; beyond a random depth, the shallowest productions are used."""
        stack: list[tuple[Symbol, int]] = [(Ref(self._grammar.start), self._rng.choice([8, 12, 16, 24, 40]))]
        while stack:
            symbol, left = stack.pop()
            if isinstance(symbol, Text):
                yield symbol.text
            elif isinstance(symbol, Chars):
                yield chr(self._rng.randint(*self._rng.choice(symbol.ranges)))
            else:
                productions = self._grammar.rules[symbol.name]
                max_depth = max(left, min(map(self._depth, productions)))
                production = self._rng.choice(
                    [production for production in productions if self._depth(production) <= max_depth]
                )
                stack += [(s, left - 1) for s in reversed(production)]


def assert_round_trip(program: str) -> None:
    utterances = TRANSLATOR.to_utterance(program, k=2)
    assert (utterances.derivation_count, len(utterances.texts)) == (1, 1), program
    programs = TRANSLATOR.to_program(utterances.texts[0], k=2)
    assert (programs.derivation_count, programs.texts) == (1, (program,))


def test_every_example_has_one_unambiguous_canonical_utterance() -> None:
    for program in ALL_PROGRAMS:
        assert_round_trip(program)


def test_every_sampled_program_has_one_unambiguous_canonical_utterance() -> None:
    programs = Sampler(PROGRAMS).sentences(300)
    assert max(program.count("(") for program in programs) > 20
    for program in programs:
        assert_round_trip(program)


WORDS: dict[Side, re.Pattern[str]] = {
    "utterance": re.compile(r"in the (?:morning|afternoon)|on floor|'s|[A-Za-z]+|[^ A-Za-z]"),
    "program": re.compile(r"\([a-z-]*|[A-Za-z]+|[^ A-Za-z]"),
}


def lalr_over_words(side: Side) -> Lark:
    """Build an LALR(1) parser over the words of a side; Lark raises if the table has a conflict."""
    grammar = GRAMMAR.side(side).with_rules(WITHOUT_TITLES)
    names = {name: f"rule{number}" for number, name in enumerate(grammar.rules)}
    tokens: dict[str, str] = {}

    def word(text: str) -> str:
        return tokens.setdefault(text, f"WORD{len(tokens)}")

    def alternatives(symbol: Symbol) -> list[str]:
        if isinstance(symbol, Ref):
            return [names[symbol.name]]
        if isinstance(symbol, Text):
            return [" ".join(map(word, WORDS[side].findall(symbol.text)))]
        return [word(chr(code)) for low, high in symbol.ranges for code in range(low, high + 1)]

    class WordLexer(Lexer):
        def __init__(self, _: object) -> None:
            pass

        def lex(self, text: object, *_: object) -> Iterator[Token]:
            return (Token(tokens[found], found) for found in WORDS[side].findall(str(text)))

    lines = []
    for name, productions in grammar.rules.items():
        right_sides = (" ".join(words) for p in productions for words in product(*map(alternatives, p)))
        lines.append(f"{names[name]}: {' | '.join(right_sides)}")
    source = "\n".join([*lines, f"%declare {' '.join(tokens.values())}"])
    return Lark(source, parser="lalr", lexer=WordLexer, start=names[grammar.start], strict=True)


@pytest.mark.parametrize("side", SIDES)
def test_no_sentence_has_two_derivations(side: Side) -> None:
    parser = lalr_over_words(side)
    sampler = Sampler(GRAMMAR.side(side).with_rules(WITHOUT_TITLES))
    for _ in range(500):
        pieces = list(sampler.pieces())
        sentence = "".join(pieces)
        assert [w for piece in pieces for w in WORDS[side].findall(piece)] == WORDS[side].findall(sentence)
        assert parser.parse(sentence)


def test_in_every_rule_each_symbol_is_linked_to_its_counterpart() -> None:
    for rule in GRAMMAR.rules:
        assert rule.program is not None
        [pairing] = rule.pairings
        variables = [i for i, symbol in enumerate(pairing.utterance) if not isinstance(symbol, Text)]
        assert sorted(link for link in pairing.links if link is not None) == variables
        for symbol, link in zip(rule.program, pairing.links, strict=True):
            assert isinstance(symbol, Text) if link is None else symbol == pairing.utterance[link]


def test_lark_accepts_the_same_programs() -> None:
    lark, ours = lark_language(LARK_SOURCE), Recogniser(PROGRAMS)
    for program in Sampler(PROGRAMS).sentences(60):
        assert lark(program), program
    for program in Sampler(AS_LARK).sentences(500):
        assert ours.accepts(program), program


def test_lark_accepts_the_same_mutated_programs() -> None:
    lark, ours = lark_language(LARK_SOURCE), Recogniser(PROGRAMS)
    rng = random.Random(2)
    accepted = []
    for _ in range(400):
        first, second = ([*re.findall(r" ?\(?[^ ()]+|\)", program)] for program in rng.sample(ALL_PROGRAMS, 2))
        begin, deleted, inserted = rng.randrange(len(first)), rng.randint(0, 2), rng.randint(0, 2)
        source = rng.randrange(len(second))
        mutant = "".join([*first[:begin], *second[source : source + inserted], *first[begin + deleted :]])
        accepted.append(ours.accepts(mutant))
        assert accepted[-1] == lark(mutant), mutant
    assert 20 < sum(accepted) < 380


def derivations_by_length(grammar: Grammar, max_length: int) -> list[int]:
    """Return the number of derivations of sentences of each length; titles are fixed.

    The counts of a nonterminal are the coefficients of a polynomial, stored as its value at 2 ** 256.
    """
    bits, grammar = 256, grammar.with_rules(WITHOUT_TITLES)
    mask = (1 << bits * (max_length + 1)) - 1

    def count(symbol: Symbol) -> int:
        if isinstance(symbol, Ref):
            return counts[symbol.name]
        if isinstance(symbol, Text):
            return 1 << bits * len(symbol.text)
        return sum(high - low + 1 for low, high in symbol.ranges) << bits

    counts = dict.fromkeys(grammar.rules, 0)
    changed = True
    while changed:
        changed = False
        for name, productions in grammar.rules.items():
            total = 0
            for production in productions:
                found = 1
                for symbol in production:
                    found = found * count(symbol) & mask
                total += found
            changed |= counts[name] != total & mask
            counts[name] = total & mask
    return [counts[grammar.start] >> bits * length & (1 << bits) - 1 for length in range(max_length + 1)]


def test_the_lark_grammar_has_the_same_number_of_programs_of_each_length() -> None:
    counts = derivations_by_length(PROGRAMS, 80)
    assert counts[80] > 1e9
    first, digit = Chars.of([(ord("1"), ord("9"))]), Chars.of([(ord("0"), ord("9"))])
    # In the Lark grammar, a number with two digits has two derivations.
    unambiguous = AS_LARK.with_rules({"MINUTES": ((first,), (first, digit), (first, digit, digit))})
    assert counts == derivations_by_length(unambiguous, 80)


def test_titles_use_the_character_class_of_the_lark_grammar() -> None:
    [[chars], [rest, last]] = PROGRAMS.rules["TITLE"]
    assert chars == last
    assert rest == Ref("TITLE")
    assert chars in [
        symbol for productions in AS_LARK.rules.values() for production in productions for symbol in production
    ]
    assert GRAMMAR.side("utterance").rules["TITLE"] == PROGRAMS.rules["TITLE"]


@pytest.mark.parametrize("side", SIDES)
def test_the_folded_words_are_the_same_on_both_sides_and_in_the_lark_grammar(side: Side) -> None:
    names = CALENDAR.table.retrieve.fold
    assert rules_of_words(GRAMMAR.side(side), names) == rules_of_words(AS_LARK, names)


def test_the_examples_have_the_best_canonical_utterance_of_their_program() -> None:
    for example in (*CALENDAR.examples, *CALENDAR.test_examples):
        assert TRANSLATOR.to_utterance(example.program).best == example.canonical
