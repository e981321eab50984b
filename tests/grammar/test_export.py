"""An exported grammar has the same language in Lark and llama.cpp, which are run as oracles."""

import random
import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.errors import ConstraintError, LimitExceeded
from fewparse.grammar.export import left_recursion
from fewparse.grammar.export.left_recursion import (
    corners,
    cycles,
    reduce_left_recursion,
    split_repetition,
    strongly_connected_components,
)
from fewparse.grammar.export.notations import to_gbnf, to_lark
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import LAST_CODE_POINT, Chars, Grammar, Production, Ref, Text, nullable_names, trim
from support.earley import Recogniser
from support.llama_grammar import LlamaGrammar, functions
from support.random_grammars import ALPHABET, candidates, plain_grammars, seeds
from support.sample_grammars import ALPHABETS, CALENDAR, SAMPLES, lark_language, length_within, strings

on_many = settings(max_examples=150, deadline=None)
has_llama = pytest.mark.skipif(not functions(), reason="the shared object does not export llama.cpp's grammars")
SPECIAL = "\"\\/[]^-&|~#'`i. \n\r\t\f\0\x07\x7f\x85\xa0é€\u2028\ufeff\uffff😀\U0010ffff"


def one(char: str) -> tuple[int, int]:
    return ord(char), ord(char)


def lark_accepts(source: str, texts: Iterable[str]) -> list[bool]:
    accepts = lark_language(source)
    return [accepts(text) for text in texts]


def llama_accepts(source: str, texts: Iterable[str]) -> list[bool | None]:
    grammar = LlamaGrammar(source)
    verdicts = [grammar.accepts(text) for text in texts]
    grammar.close()
    return verdicts


def sentences_and_others(grammar: Grammar, rng: random.Random) -> list[str]:
    return [*candidates(grammar, rng), *strings("ab", 3), *ALPHABET]


def is_empty(grammar: Grammar) -> bool:
    return not trim(grammar).grammar.rules


def renamed(grammar: Grammar, names: dict[str, str]) -> dict[str, set[Production]]:
    def symbols(production: Production) -> Production:
        new = (Ref(names[s.name]) if isinstance(s, Ref) else s for s in production)
        return tuple(s for s in new if s != Text(""))

    return {names[name]: set(map(symbols, productions)) for name, productions in grammar.rules.items()}


@pytest.mark.parametrize("name", SAMPLES)
def test_lark_accepts_the_same_strings(name: str) -> None:
    grammar = read_grammar(SAMPLES[name])
    texts = list(strings(ALPHABETS[name], length_within(ALPHABETS[name], 400)))
    ours = Recogniser(grammar)
    assert lark_accepts(to_lark(grammar), texts) == [ours.accepts(text) for text in texts]


@has_llama
@pytest.mark.parametrize("name", SAMPLES)
def test_llama_cpp_accepts_the_same_strings(name: str) -> None:
    grammar = read_grammar(SAMPLES[name])
    texts = list(strings(ALPHABETS[name], length_within(ALPHABETS[name], 1_000)))
    ours = Recogniser(grammar)
    assert llama_accepts(to_gbnf(grammar), texts) == [ours.accepts(text) for text in texts]


@on_many
@given(plain_grammars().filter(lambda grammar: not is_empty(grammar)))
def test_the_ebnf_reader_reads_back_the_same_productions(grammar: Grammar) -> None:
    useful = trim(grammar).grammar
    again = read_grammar(to_lark(grammar))
    names = dict(zip(dict.fromkeys([useful.start, *useful.rules]), again.rules, strict=True))
    assert renamed(useful, names) == renamed(again, {name: name for name in again.rules})


@on_many
@given(plain_grammars().filter(lambda grammar: not is_empty(grammar)), seeds)
def test_lark_accepts_the_same_strings_of_any_grammar(grammar: Grammar, rng: random.Random) -> None:
    texts = [text for text in sentences_and_others(grammar, rng) if len(text) < 12]
    ours = Recogniser(grammar)
    assert lark_accepts(to_lark(grammar), texts) == [ours.accepts(text) for text in texts]


@has_llama
@settings(on_many, max_examples=200)
@given(plain_grammars().filter(lambda grammar: not is_empty(grammar)), seeds)
def test_llama_cpp_accepts_the_same_strings_of_any_grammar(grammar: Grammar, rng: random.Random) -> None:
    texts = [text for text in sentences_and_others(grammar, rng) if len(text) < 12]
    ours = Recogniser(grammar)
    for text, verdict in zip(texts, llama_accepts(to_gbnf(grammar), texts), strict=True):
        assert verdict in (None, ours.accepts(text)), text


@settings(on_many, max_examples=200)
@given(plain_grammars().filter(lambda grammar: not is_empty(grammar)), seeds)
def test_reduced_grammars_are_left_recursive_only_in_repetition(grammar: Grammar, rng: random.Random) -> None:
    made = reduce_left_recursion(grammar)
    nullable = nullable_names(made)
    unrolled, loops = dict(made.rules), []
    for number, (name, *others) in enumerate(cycles(corners(made, nullable))):
        assert not others
        initial, repeated = split_repetition(name, made.rules[name])
        loops.append(f"repeated {number}")
        unrolled |= {name: initial, loops[-1]: repeated}
    without = Grammar(unrolled, made.start)
    assert not nullable_names(without) & set(loops)
    assert not cycles({**corners(without, nullable), **dict.fromkeys(loops, ())})
    ours, theirs = Recogniser(grammar), Recogniser(made)
    texts = sentences_and_others(grammar, rng)
    assert [theirs.accepts(text) for text in texts] == [ours.accepts(text) for text in texts]


def literals(char: str) -> Grammar:
    return Grammar({"start": ((Text(f"{char}a{char}{char}"),), (Text("b"), Text(char)))})


@pytest.mark.parametrize("char", SPECIAL)
def test_a_literal_may_contain_any_character(char: str) -> None:
    texts = [f"{char}a{char}{char}", f"b{char}", "a", char, f"x{ord(char):02x}", f"\\{char}", "n", "bn", "ba"]
    expected = [True, True] + [False] * 7
    assert lark_accepts(to_lark(literals(char)), texts) == expected
    assert renamed(read_grammar(to_lark(literals(char))), {"start": "start"}) == {
        "start": set(literals(char).rules["start"])
    }
    if functions():
        assert llama_accepts(to_gbnf(literals(char)), texts) == expected


@settings(on_many, max_examples=60)
@given(st.lists(st.tuples(st.characters(), st.characters()), min_size=1, max_size=4), st.booleans())
def test_a_class_may_contain_any_characters(pairs: list[tuple[str, str]], negated: bool) -> None:
    check_class(Chars.of(sorted((ord(a), ord(b))) for a, b in pairs), negated)  # type: ignore[misc]


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("char", SPECIAL)
def test_a_class_may_contain_special_characters(char: str, negated: bool) -> None:
    beside = [one(char), one("a"), (ord("x"), ord("z"))]
    ends = [(ord(char), min(LAST_CODE_POINT, ord(char) + 5)), (max(0, ord(char) - 3), ord(char))]
    for ranges in (beside, beside[:1], ends[:1], ends[1:]):
        check_class(Chars.of(ranges), negated)


def check_class(chars: Chars, negated: bool) -> None:
    chars = chars.negated() if negated else chars.negated().negated()
    grammar = Grammar({"start": ((Text("("), chars, Text(")")),)})
    ends = {code + more for low, high in chars.ranges for code in (low, high) for more in (-1, 0, 1)}
    characters = {chr(c) for c in ends if 0 <= c <= LAST_CODE_POINT and not 0xD800 <= c <= 0xDFFF} | set(SPECIAL)
    texts = [f"({char})" for char in sorted(characters)]
    expected = [text[1] in chars for text in texts]
    assert read_grammar(to_lark(grammar)).rules == grammar.rules
    assert lark_accepts(to_lark(grammar), texts) == expected
    if functions():
        assert llama_accepts(to_gbnf(grammar), texts) == expected


def test_a_class_of_all_characters_is_written() -> None:
    check_class(Chars(()), negated=True)


def test_surrogates_are_excluded() -> None:
    half = Chars(((0xD700, 0xD900),))
    grammar = Grammar({"start": ((half,), (Text("a\ud800"),), (Chars(((0xD800, 0xD900),)), Text("b")))})
    assert read_grammar(to_lark(grammar)).rules == {"start": ((Chars(((0xD700, 0xD7FF),)),),)}
    assert to_gbnf(grammar) == "root ::= [휀-\\ud7ff]\n"


def test_names_become_legal_and_stay_distinct() -> None:
    names = ["start", "Big Name", "big_name", "BIG-NAME", "_", "9lives", "été", "root", "größe", "__x__"]
    rules = {name: ((Text(str(number)),),) for number, name in enumerate(names)}
    grammar = Grammar({"the start": tuple((Ref(name),) for name in names), **rules}, "the start")
    digits = [*map(str, range(len(names))), "99"]
    expected = [True] * len(names) + [False]
    lark, gbnf = to_lark(grammar), to_gbnf(grammar)
    assert lark_accepts(lark, digits) == expected
    assert "big_name: " in lark
    assert lark.startswith("start: start_2 | big_name | big_name_2 | big_name_3 | rule | rule_9lives")
    assert all(re.fullmatch("[a-z][a-z0-9_]*", line.partition(":")[0]) for line in lark.splitlines())
    assert gbnf.startswith("root ::= start | Big-Name | big-name |")
    if functions():
        assert llama_accepts(gbnf, digits) == expected


def test_many_clashing_names_are_numbered_quickly() -> None:
    names = [chr(0x4E00 + number) for number in range(20_000)]
    grammar = Grammar({"start": tuple((Ref(name),) for name in names), **dict.fromkeys(names, ((Text("a"),),))})
    assert "\nrule_20000: " in to_lark(grammar)


def test_repetition_becomes_a_star() -> None:
    assert to_gbnf(read_grammar('start: item ("," item)*\nitem: /[a-z]+/')) == (
        'root ::= item start-2\nstart-1 ::= "," item\nstart-2 ::= start-1*\nitem-4 ::= [a-z]+\nitem ::= item-4\n'
    )
    assert to_gbnf(read_grammar('start: start "-" one | start "+" one | one | "0"\none: "1"')) == (
        'root ::= (one | "0") ("-" one | "+" one)*\none ::= "1"\n'
    )


def test_a_long_rule_has_a_line_for_each_alternative() -> None:
    grammar = Grammar({"start": tuple((Text("x" * number),) for number in range(30))})
    texts = ["x" * number for number in range(31)]
    assert to_lark(grammar).count("\n") == to_gbnf(grammar).count("\n") == 30
    assert lark_accepts(to_lark(grammar), texts) == [True] * 30 + [False]
    if functions():
        assert llama_accepts(to_gbnf(grammar), texts) == [True] * 30 + [False]


def test_a_grammar_of_the_empty_string_is_written() -> None:
    grammar = Grammar({"start": ((), (Text(""),), (Ref("start"), Ref("start")))})
    assert lark_accepts(to_lark(grammar), ["", "a"]) == [True, False]
    assert to_gbnf(grammar) == 'root ::= ""\n'


@pytest.mark.parametrize("write", [to_lark, to_gbnf])
def test_a_grammar_that_derives_nothing_is_rejected(write: object) -> None:
    assert callable(write)
    with pytest.raises(ConstraintError, match="derives no string"):
        write(Grammar({"start": ((Text("a"), Ref("start")),)}))


def test_the_calendar_has_the_same_language_everywhere() -> None:
    grammar = read_grammar(CALENDAR)
    program = '(create "Lunch?" (with Anna (team sales)) (on Monday) (at 12:30pm) (for (hours 1)) (in Atlas))'
    rng = random.Random(5)
    texts = [program, "(count (rooms (at-least 12) (floor 3) (has video) (free (at 1pm))))"]
    texts += [text[:at] + rng.choice("1a)( ") + text[at + 1 :] for text in texts for at in range(0, len(text), 3)]
    ours = Recogniser(grammar)
    expected = [ours.accepts(text) for text in texts]
    assert set(expected) == {True, False}
    assert lark_accepts(to_lark(grammar), texts[:12]) == expected[:12]
    if functions():
        assert llama_accepts(to_gbnf(grammar), texts) == expected


def chain(length: int) -> dict[str, tuple[Production, ...]]:
    """A left-recursive cycle of nonterminals."""
    return {
        f"n{at}": ((Ref(f"n{(at + 1) % length}"), Text("a")), (Text("b"), Text(str(at)))) for at in range(length)
    }


def test_a_long_cycle_does_not_exceed_the_recursion_limit() -> None:
    grammar = Grammar(chain(5_000), "n0")
    assert len(strongly_connected_components(corners(grammar, set()))) == 1
    assert to_gbnf(grammar).count(" ::= ") == 5_001


def test_a_grammar_that_grows_too_large_without_left_recursion_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(left_recursion, "MAX_SYMBOLS", 10_000)
    start = tuple((Text(name), Ref(name)) for name in chain(100))
    with pytest.raises(LimitExceeded, match="without left recursion"):
        to_gbnf(Grammar({"start": start, **chain(100)}))
