"""Limits and failures of constraints are errors and never end an output silently."""

from threading import Event

import pytest

from fewparse.constrain import engine, isolation, trie
from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.engine import Limits
from fewparse.constrain.isolation import check_in_child
from fewparse.constrain.state import LeadConstraint, State
from fewparse.constrain.trie import Trie
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.errors import ConstraintError, DeadEnd, LimitExceeded
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import Grammar, Ref, Text
from fewparse.vocabulary import BYTES, Vocabulary
from support.sample_grammars import CALENDAR

AMBIGUOUS = 'start: s\ns: s s | s s s | "a" | "b"'
RIGHT = 'start: "a" start | "a"'
TIMEOUT = 120


def context_free(source: str, vocabulary: Vocabulary = BYTES, **limits: float) -> CfgConstraint:
    return CfgConstraint(read_grammar(source), vocabulary, limits=Limits(**limits))  # type: ignore[arg-type]


def test_a_grammar_that_derives_no_string_is_rejected() -> None:
    with pytest.raises(ConstraintError, match="derives no string at all") as caught:
        context_free('start: "a" start')
    assert not isinstance(caught.value, LimitExceeded)
    assert caught.value.hint == "Check that every recursion can end."


def test_a_grammar_without_a_start_rule_is_rejected() -> None:
    with pytest.raises(ConstraintError, match="derives no string at all"):
        CfgConstraint(Grammar({"x": ((Text("a"),),)}), BYTES)


def test_useless_rules_are_reported() -> None:
    grammar = Grammar(
        {"start": ((Text("a"),), (Ref("lost"),)), "lost": ((Ref("lost"),),), "lone": ((Text("b"),),)}
    )
    constraint = CfgConstraint(grammar, BYTES)
    assert constraint.useless == ("lost", "lone")
    assert set(constraint.grammar.rules) == {"start"}


def test_an_unproductive_alternative_is_not_entered() -> None:
    constraint = context_free('start: "a" | "b" lost\nlost: "c" lost')
    assert constraint.start().advance(b"b") is None
    assert constraint.accepts(b"a")


def test_a_too_large_grammar_exceeds_the_size_limit() -> None:
    assert context_free('start: "abcd"', grammar_size=5).accepts(b"abcd")
    with pytest.raises(LimitExceeded, match="6 symbols; the limit is 5") as caught:
        context_free('start: "abcde"', grammar_size=5)
    assert caught.value.hint is not None
    assert "trie" in caught.value.hint


def test_the_size_limit_applies_to_the_trimmed_grammar() -> None:
    assert context_free('start: "a"\nlone: "bcdefghij"', grammar_size=2).accepts(b"a")


def test_a_slow_compilation_exceeds_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Event()
    monkeypatch.setattr(engine, "engine_tokenizer", lambda vocabulary: ended.wait(TIMEOUT))
    try:
        with pytest.raises(LimitExceeded, match=r"did not compile within 0\.01 seconds"):
            context_free(CALENDAR, compile_seconds=0.01)
    finally:
        ended.set()


def advance_repeatedly(state: State) -> None:
    """Advance by `a` 400 times; `a` must be allowed each time."""
    for _ in range(400):
        assert state.mask()[ord("a")]
        assert not state.must_end
        following = state.advance(b"a")
        assert following is not None
        state = following


@pytest.mark.parametrize("source", [AMBIGUOUS, RIGHT], ids=["ambiguous", "right-recursive"])
def test_too_many_parser_items_raise_an_error_and_never_end_the_output(source: str) -> None:
    advance_repeatedly(context_free(RIGHT).start())
    with pytest.raises(LimitExceeded, match="the grammar engine reached a limit"):
        advance_repeatedly(context_free(source, state_items=100).start())


@pytest.mark.parametrize("length", [50, 100, 200])
def test_too_many_parser_items_within_one_token_exceed_the_limit(length: int) -> None:
    start = context_free(AMBIGUOUS, state_items=100).start()
    with pytest.raises(LimitExceeded):
        start.advance(b"a" * length)


def test_the_message_of_an_exceeded_limit_is_short() -> None:
    with pytest.raises(LimitExceeded) as caught:
        context_free(AMBIGUOUS, state_items=100).start().advance(b"ab" * 50)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("source", "tokens", "prefix"),
    [
        ('start: "abc"', [b"a", b"b"], b"ab"),
        ('start: "abc"', [b"b", b"c"], b""),
        ('start: "a" ("é" | "è")', [b"a", b"\xc3"], b"a\xc3"),
    ],
)
def test_a_vocabulary_that_cannot_spell_the_grammar_has_a_dead_end(
    source: str, tokens: list[bytes], prefix: bytes
) -> None:
    state: State | None = context_free(source, Vocabulary([*tokens, b""], [len(tokens)])).start()
    for byte in prefix:
        assert state is not None
        assert not state.must_end
        state = state.advance(bytes([byte]))
    assert state is not None
    assert not state.may_end
    with pytest.raises(DeadEnd, match="nothing may follow here") as caught:
        _ = state.must_end
    assert caught.value.hint == "Check that the model's vocabulary can spell every character of the grammar."


def test_a_trie_that_the_vocabulary_cannot_spell_has_a_dead_end() -> None:
    state = Trie(["ab"], Vocabulary([b"a"])).start().advance(b"a")
    assert state is not None
    with pytest.raises(DeadEnd):
        _ = state.must_end


def test_a_vocabulary_without_single_bytes_spells_with_its_tokens() -> None:
    constraint = context_free('start: "ab" "ba" "c"?', Vocabulary([b"ab", b"a", b"ba", b"bac", b"ca"]))
    assert constraint.start().mask().tolist() == [True, True, False, False, False]
    assert constraint.accepts(b"abba")
    assert constraint.accepts(b"abbac")
    assert not constraint.accepts(b"abbaca")
    assert not constraint.accepts(b"abb")


def test_a_text_that_the_vocabulary_cannot_spell_is_not_accepted() -> None:
    assert not context_free('start: "abc"', Vocabulary([b"a", b"b"])).accepts(b"abc")


def test_tokens_with_the_same_bytes_have_the_same_mask() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"ab", b"", b"ab", b"a"])
    assert context_free('start: "ab"', vocabulary).start().mask().tolist() == [
        True,
        False,
        True,
        False,
        True,
        True,
    ]
    assert Trie(["ab"], vocabulary).start().mask().tolist() == [True, False, True, False, True, True]


def test_tokens_with_invalid_utf8_are_not_allowed_by_a_grammar() -> None:
    vocabulary = Vocabulary([b"a", b"\xff", b"\xffa", b"\xff<end>", b"a\xff", b"\xc3"])
    state = context_free("start: /[^x]*/", vocabulary).start()
    assert state.mask().tolist() == [True, False, False, False, False, True]
    assert all(state.advance(token) is None for token in vocabulary.tokens[1:5])


def test_a_failure_of_the_grammar_engine_is_an_error() -> None:
    with pytest.raises(ConstraintError, match="the grammar engine failed"):
        CfgConstraint(Grammar({"start": ((Text("\ud800"),),)}), BYTES)


def test_a_trie_without_strings_is_rejected() -> None:
    with pytest.raises(ConstraintError, match="the set of strings is empty"):
        Trie([], BYTES)


def test_a_trie_of_the_empty_string_must_end_at_the_start() -> None:
    constraint = Trie([""], BYTES)
    assert constraint.start().must_end
    assert constraint.accepts(b"")
    assert not constraint.accepts(b"a")


def test_a_too_large_trie_exceeds_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trie, "MAX_NODES", 5)
    assert Trie(["abc", "abd", "abce"], BYTES).accepts(b"abce")
    with pytest.raises(LimitExceeded, match="more than 5 trie nodes"):
        Trie(["abc", "xyz"], BYTES)


def test_the_mask_of_a_trie_is_read_only() -> None:
    mask = Trie(["ab"], BYTES).start().mask()
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = True


def test_an_unconstrained_output_needs_text_after_the_lead() -> None:
    constraint = LeadConstraint(Unconstrained(BYTES), " ")
    assert not constraint.accepts(b"")
    assert not constraint.accepts(b" ")
    assert constraint.accepts(b" \xff")
    assert not constraint.accepts(b"ab")


def test_many_symbols_of_a_production_that_may_be_empty_exceed_the_limit() -> None:
    grammar = Grammar({"start": ((Ref("e"),) * 3_000,), "e": ((), (Text("x"),))})
    with pytest.raises(LimitExceeded, match="`start` has 3000 symbols that may be empty; the limit is 2000"):
        CfgConstraint(grammar, BYTES)


def chain(length: int, production: str = "{next}") -> str:
    rules = "\n".join(f"a{i}: {production.format(next=f'a{i + 1}')}" for i in range(length))
    return f'start: a0\n{rules}\na{length}: "x"'


@pytest.mark.parametrize(("production", "symbols"), [("{next}", 1), ('{next} | ""', 2)])
def test_the_longest_chain_of_rules_within_the_limits_does_not_overflow_the_stack(
    production: str, symbols: int
) -> None:
    """The engine has a limit of its own on symbols, which an empty alternative is too."""
    assert context_free(chain(Limits().rules // symbols - 2, production)).accepts(b"x")


def test_more_rules_than_the_limit_are_an_error() -> None:
    with pytest.raises(LimitExceeded, match="the grammar has 12 rules; the limit is 11"):
        context_free(chain(10), rules=11)


def test_the_number_of_characters_in_a_grammar_does_not_exceed_the_symbols_of_the_engine() -> None:
    words = [f"{i:05d}" for i in range(20_000)]
    assert context_free("start: " + " | ".join(f'"{word}"' for word in words)).accepts(b"19999")


@pytest.mark.parametrize("source", [CALENDAR, chain(5_000)], ids=["calendar", "chain"])
def test_a_grammar_that_compiles_in_a_child_process_is_used(source: str) -> None:
    assert context_free(source, isolate=True).start().mask().any()


def test_a_grammar_that_breaks_the_engine_in_a_child_process_is_an_error() -> None:
    with pytest.raises(LimitExceeded, match=r"crashed in a child process \(signal 11\)"):
        check_in_child(chain(200_000), len(BYTES), 30.0)


def test_a_grammar_that_does_not_compile_in_a_child_process_is_an_error() -> None:
    with pytest.raises(ConstraintError, match="does not compile in a child process"):
        check_in_child('start: "a', len(BYTES), 30.0)


def test_a_child_process_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "START_SECONDS", 0.0)
    with pytest.raises(LimitExceeded, match=r"did not compile the grammar within 0\.01 seconds"):
        check_in_child('start: "a"', len(BYTES), 0.01)
