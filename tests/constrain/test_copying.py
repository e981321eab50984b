"""Copied rules by placeholders accept the language of a grammar with all spans compiled in."""

import gc
import random
import time
import tracemalloc
import weakref
from itertools import islice

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fewparse.constrain import copying, placeholders
from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.configuration import Configuration
from fewparse.constrain.copying import CopyGrammar, CopyState
from fewparse.constrain.engine import Limits
from fewparse.constrain.preceding import preceding_bytes
from fewparse.constrain.state import Constraint
from fewparse.domains.load import load_domain
from fewparse.errors import ConstraintError, LimitExceeded
from fewparse.example import Target
from fewparse.grammar.parsing.chart import ChartParser, ParseFailure
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.testing.constraints import CONSTRAINT_LAWS, end_of_walk, random_walk
from fewparse.vocabulary import BYTES, Vocabulary
from support.campaign import examples

SOURCES = {
    "quoted": 'start: "(" TEXT ")" | "(" TEXT "," start ")"\nTEXT: /[a-c é]+/',
    "after a space": 'start: "to " TEXT " at " NUMBER\nTEXT: /[a-c ]+/\nNUMBER: /[0-9]+/',
    "first": 'start: TEXT "." | TEXT ". " start\nTEXT: /[a-c ]+/',
    "adjacent": 'start: "<" TEXT OTHER ">"\nTEXT: /[a-c ]+/\nOTHER: /[b-d]+/',
    "ambiguous": 'start: item | item "," start\nitem: TEXT | "a" | "ab" | WORD\nTEXT: /[a-c ]+/\nWORD: /[a-z]/+',
    "nullable before": 'start: "x" maybe maybe TEXT "!"\nmaybe: " " | ""\nTEXT: /[a-c]+/',
    "recursive": 'start: TEXT | "(" start ")" | start "+" start\nTEXT: /[a-c]+/',
    "escaped": 'start: "<" TEXT ">" | "<>"\nTEXT: CHAR+\nCHAR: /[a-c ]/ | "!" /[!>]/',
    "nested at the end": 'start: "q" inner\ninner: "é" TEXT | TEXT "é"\nTEXT: /[a-cé ]+/',
}
RULES = ("TEXT", "NUMBER", "OTHER")
WORDS = st.lists(
    st.sampled_from(["a", "ab", "abc", "b", "bc", "d", "é", "12", "3", "!", ">", "cX", " "]), max_size=6
)
TOKENS = [
    *(bytes([byte]) for byte in range(256)),
    *(
        text.encode()
        for text in ["ab", "abc", " a", " ab", "a)", "a,", "to a", " at", "t ", "(a", "(ab", "<a", "aé", "é>"]
    ),
    *(
        text.encode()
        for text in ["b c", ". a", "a.", ", ", ",a", ",ab", "b>", "+a", "a+b", "x a", "x", "x ", "!!", "!>", "<>"]
    ),
    "é".encode()[:1],
    b"ab",
    b"",
]
VOCABULARY = Vocabulary(TOKENS, [len(TOKENS) - 1])


def copy_grammar(source: str, vocabulary: Vocabulary = VOCABULARY) -> CopyGrammar:
    grammar = read_grammar(SOURCES.get(source, source))
    return CopyGrammar(grammar, [name for name in RULES if name in grammar.rules], vocabulary)


GRAMMARS = {name: copy_grammar(name) for name in SOURCES}


def same_states(constraint: Constraint, oracle: Constraint, rng: random.Random) -> None:
    """Walk through both constraints and compare everything that can be observed, at every step."""
    for text, state in islice(random_walk(constraint, rng, long=10), 14):
        expected = oracle.start().advance(text) if text else oracle.start()
        assert expected is not None, text
        assert state.may_end == expected.may_end, text
        different = np.flatnonzero(state.mask() != expected.mask())
        assert not len(different), (text, [constraint.vocabulary.tokens[i] for i in different])


@pytest.mark.parametrize("name", SOURCES)
@examples(25)
@given(st.tuples(WORDS, st.sampled_from(["", " "])).map(lambda words: words[1].join(words[0])), st.integers(0, 9))
@example("a ab abc a", 0)
@example("", 0)
def test_masks_equal_those_of_the_grammar_with_all_spans_compiled_in(name: str, utterance: str, seed: int) -> None:
    grammar = GRAMMARS[name]
    try:
        oracle = grammar.with_spans(utterance)
    except ConstraintError:  # without a span nothing is derived
        with pytest.raises(ConstraintError, match="derives no string"):
            grammar.constraint(utterance)
        return
    same_states(grammar.constraint(utterance), oracle, random.Random(seed))


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("law", CONSTRAINT_LAWS, ids=lambda law: law.__name__)
def test_copied_rules_satisfy_the_laws_of_constraints(name: str, law: object) -> None:
    assert callable(law)
    law(GRAMMARS[name].constraint("ab a 12 bc ab! c>"), seed=3)


@pytest.mark.parametrize("name", SOURCES)
def test_an_ending_completes_every_prefix(name: str) -> None:
    constraint = GRAMMARS[name].constraint("ab a 12 bc ab! c>")
    rng = random.Random(0)
    for _ in range(10):
        for text, _ in islice(random_walk(constraint, rng, long=10), 14):
            suffix = constraint.ending(text)
            assert suffix is not None
            assert constraint.accepts(text + suffix)


@pytest.mark.parametrize(
    ("name", "target"), [("calendar", "canonical"), ("calendar", "program"), ("starter", "program")]
)
def test_the_bundled_domains_never_need_the_spans_in_the_grammar(
    name: str, target: Target, model_vocabulary: Vocabulary
) -> None:
    domain = load_domain(name)
    grammar = CopyGrammar(domain.side(target), domain.constraint_kind.copied_rules, model_vocabulary)
    for pair in domain.examples[:40]:
        state = grammar.constraint(pair.utterance).start().advance(pair.output(target).encode())
        assert state is None or isinstance(state, CopyState)


def test_many_readings_of_a_text_are_followed_in_the_grammar_with_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = GRAMMARS["ambiguous"].constraint("a ab abc")
    text = b",".join([b"ab", b"a", b"ab"] * 6)
    state = constraint.start().advance(text)
    assert not isinstance(state, CopyState)
    assert constraint.accepts(text)
    assert not constraint.accepts(text + b",AB")
    assert constraint.ending(text + b",") == b",a"[1:]
    monkeypatch.setattr(copying, "MAX_CONFIGURATIONS", 1)
    for seed in range(5):
        same_states(constraint, GRAMMARS["ambiguous"].with_spans("a ab abc"), random.Random(seed))


def test_a_vocabulary_with_too_many_starts_of_tokens_gets_the_spans_in_the_grammar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placeholders, "MAX_ENTRIES", 0)
    grammar = copy_grammar("ambiguous")
    assert isinstance(grammar.constraint("a ab"), CfgConstraint)
    same_states(grammar.constraint("a ab"), grammar.with_spans("a ab"), random.Random(1))


def test_more_rules_than_placeholders_are_copied_too() -> None:
    names = [f"T{i}" for i in range(20)]
    rules = "\n".join(f"{name}: /[{chr(97 + i)}]+/" for i, name in enumerate(names))
    grammar = CopyGrammar(read_grammar(f"start: {' | '.join(names)}\n{rules}"), names, BYTES)
    constraint = grammar.constraint("a b c d e f g h i j k l m n o p q r s t")
    assert all(constraint.accepts(bytes([97 + i])) for i in range(20))
    assert not constraint.accepts(b"ab")


def test_bytes_that_are_no_text_are_never_allowed() -> None:
    state = GRAMMARS["quoted"].constraint("ab a").start().advance(b"(")
    assert state is not None
    assert state.advance(b"\xff") is None
    assert not state.mask()[0xFF]


@pytest.mark.parametrize(("source", "expected"), [("quoted", b"("), ("after a space", b" "), ("first", b" ")])
def test_the_bytes_before_a_rule_follow_from_the_grammar(source: str, expected: bytes) -> None:
    assert preceding_bytes(read_grammar(SOURCES[source]), ["TEXT"])["TEXT"] >= set(expected)


@pytest.mark.parametrize("name", SOURCES)
def test_every_byte_that_precedes_a_span_is_predicted(name: str) -> None:
    grammar = read_grammar(SOURCES[name])
    predicted = preceding_bytes(grammar, ["TEXT"])["TEXT"]
    marked = grammar.with_rules({"TEXT": read_grammar('start: "@"').rules["start"]})
    walks = CfgConstraint(marked, BYTES)
    for seed in range(20):
        last = end_of_walk(walks, random.Random(seed), long=10)
        assert not isinstance(ChartParser(marked).parse(last.text.decode()), ParseFailure)
        assert {a for a, b in zip(last.text, last.text[1:], strict=False) if b == ord("@")} <= predicted


def test_the_memory_of_an_utterance_is_linear_in_its_length(model_vocabulary: Vocabulary) -> None:
    domain = load_domain("calendar")
    grammar = CopyGrammar(domain.side("canonical"), ("TITLE",), model_vocabulary)
    grammar.constraint("warm up")
    peaks = []
    for count in (1_000, 4_000):
        utterance = " ".join(f"word{i}" for i in range(count))
        tracemalloc.start()
        constraint = grammar.constraint(utterance)
        assert constraint.accepts(b'list the "word7 word8" meetings')
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 6 * peaks[0]


def test_an_utterance_is_set_up_without_compiling_a_grammar(
    model_vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    grammar = CopyGrammar(load_domain("calendar").side("canonical"), ("TITLE",), model_vocabulary)
    grammar.constraint("warm up")
    monkeypatch.setattr(placeholders, "compile_grammar", None)
    start = time.perf_counter()
    constraint = grammar.constraint("note: " + "buy bulbs " * 400)
    assert constraint.accepts(b'list the "buy bulbs buy bulbs" meetings')
    assert time.perf_counter() - start < 30


def test_a_grammar_that_needs_all_spans_bounds_the_length_of_the_utterance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placeholders, "MAX_ENTRIES", 0)
    source, limits = read_grammar(SOURCES["after a space"]), Limits(grammar_size=10_000)
    with pytest.raises(LimitExceeded, match=r"symbols; the limit is 10000"):
        CopyGrammar(source, RULES[:2], VOCABULARY, limits).constraint("a " * 4_000 + "12")


def test_states_are_freed_without_garbage_collection() -> None:
    constraint = GRAMMARS["quoted"].constraint("ab a")
    gc.collect()
    gc.disable()
    try:
        state = constraint.start().advance(b"(ab")
        assert state is not None
        state.mask()
        assert state.advance(b")") is not None
        last = weakref.ref(state)
        del state
        assert last() is None
        assert not [found for found in gc.get_objects() if type(found) is Configuration]
    finally:
        gc.enable()
