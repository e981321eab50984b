"""The `.scfg` reader: the meaning of every form of rule."""

import json
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.errors import GrammarError
from fewparse.grammar.readers.scfg import read_scfg, read_scfg_text
from fewparse.grammar.rules import Chars, Production, Ref, Symbol, Text
from fewparse.grammar.synchronous import Location, PairedRule, Pairing, SynchronousGrammar
from support.campaign import sizes

BEGIN = "start -> #e\n"


def rules(source: str, name: str = "start") -> list[PairedRule]:
    return [rule for rule in read_scfg_text(source).rules if rule.name == name]


def only(source: str) -> PairedRule:
    (rule,) = rules(source)
    return rule


def symbols(*parts: str | Chars) -> Production:
    """Text is marked by a quote before it; anything else is a name."""
    return tuple(
        part if isinstance(part, Chars) else Text(part[1:]) if part[:1] == "'" else Ref(part) for part in parts
    )


def program(source: str) -> Production | None:
    return only(source).program


def test_empty_lines_and_comments_are_skipped() -> None:
    assert only('\n  \t\n# start -> "x"\n   # another !"old"\n#e\nstart -> "a"\n\n').program == symbols("'a")


def test_whitespace_around_a_line_is_ignored() -> None:
    assert only(' \t start -> "a" , "b" \r\n# comment\r\n').program == symbols("'b")


def test_no_space_is_needed_between_tokens() -> None:
    tight = 'start->"a"m|n"b"?,"P"f(m,n)\nf(x,y)2>x"+"y'
    wide = 'start  ->  "a"  m | n  "b" ? ,  "P"  f ( m , n )\n f ( x , y )  2>  x "+"\t y '
    assert read_scfg_text(tight) == read_scfg_text(wide)


def test_spaces_inside_quotes_stay_and_none_are_added() -> None:
    assert program('start -> "  a " "b" x , "P"') == symbols("'P")
    assert only('start -> "  a " "b" x , "P"').pairings[0].utterance == symbols("'  a ", "'b", "x")


def test_unusual_line_breaks_do_not_end_a_line() -> None:
    assert program('start -> "a\u2028b\x85c"') == symbols("'a\u2028b\x85c")


def test_strings_are_those_of_json() -> None:
    source = r'start -> "\" \\ \/ \b \f \n \r \t \u00e9 \uD83D\ude00 é 😀 / # | , ?"'
    assert program(source) == symbols("'\" \\ / \b \f \n \r \t é 😀 é 😀 / # | , ?")


def test_strings_keep_their_case() -> None:
    assert program('start -> "aB"') != program('start -> "ab"')


def test_neighbouring_strings_stay_separate() -> None:
    assert program('start -> "a" "b"') == symbols("'a", "'b")


@pytest.mark.parametrize("empty", ["#e", '""', '#e ""', '""?'])
def test_empty_items_contribute_no_symbol(empty: str) -> None:
    assert only(f"start -> {empty} , {empty}") == PairedRule("start", (), (Pairing((), ()),))
    assert program(f'start -> "a" {empty} "b"') == symbols("'a", "'b")


def test_a_regular_expression_is_a_character_class() -> None:
    digit, quoted = Chars(((48, 57),)), Chars(((34, 34),)).negated()
    assert program('start -> /[0-9]/ / / /[^"]/') == (digit, Chars(((32, 32),)), quoted)


def test_a_regular_expression_may_end_with_a_backslash_that_is_escaped() -> None:
    assert program(r"start -> /\\/") == (Chars(((92, 92),)),)


def test_a_regular_expression_that_matches_no_single_character_derives_nothing() -> None:
    assert program("start -> /ab/") == (Chars(()),)


def test_names_have_letters_digits_and_underscores() -> None:
    assert program("start -> a_1__B x9") == symbols("a_1__B", "x9")


def test_the_alternatives_of_a_synchronous_rule_share_its_program() -> None:
    source = 'start -> "hello " who | "hi " who | "hey" , " (Greet :to" who ")"'
    assert only(source) == PairedRule(
        "start",
        symbols("' (Greet :to", "who", "')"),
        (
            Pairing(symbols("'hello ", "who"), (None, 1, None)),
            Pairing(symbols("'hi ", "who"), (None, 1, None)),
            Pairing(symbols("'hey"), (None, None, None)),
        ),
    )


def test_a_mirrored_rule_is_the_same_on_both_sides() -> None:
    both = symbols(Chars(((48, 57),)), "'.", "start")
    assert only('start -> /[0-9]/ "." start') == PairedRule("start", both, (Pairing(both, (0, None, 2)),))


def test_an_utterance_only_rule_has_no_program() -> None:
    pairings = (Pairing(symbols("' please"), ()), Pairing((), ()), Pairing(symbols("x"), ()))
    assert rules(BEGIN + 'please 1> " please" | #e | x', "please") == [PairedRule("please", None, pairings)]


def test_a_nonterminal_may_have_utterance_only_and_synchronous_rules() -> None:
    assert [rule.program for rule in rules('start 1> "a"\nstart -> "b" , "B"\nstart 1> "c"')] == [
        None,
        symbols("'B"),
    ]
    assert len(rules('start 1> "a"\nstart -> "b" , "B"\nstart 1> "c"')[0].pairings) == 2


def test_a_macro_is_replaced_by_its_body_with_its_arguments() -> None:
    source = 'start -> x y , pair(x, "-", y) "!"\npair(a, sep, b) 2> "(" a sep b ")"'
    assert only(source).program == symbols("'(", "x", "'-", "y", "')", "'!")
    assert only(source).pairings == (Pairing(symbols("x", "y"), (None, 0, None, 1, None, None)),)


@pytest.mark.parametrize("definition", ['k 2> "K"', 'k() 2> "K"'])
def test_a_macro_without_parameters_is_called_with_parentheses(definition: str) -> None:
    assert program(f'start -> "a" , k()\n{definition}') == symbols("'K")


def test_a_name_without_parentheses_is_a_nonterminal_even_if_a_macro_has_it() -> None:
    assert program('start -> "a" , k\nk 2> "K"') == symbols("k")
    assert program('start -> "a" , f(k)\nf(x) 2> x\nk 2> "K"') == symbols("k")


def test_calls_nest_and_macros_call_macros_defined_later() -> None:
    source = 'start -> "a" , f(g("x"), f(n, #e,))\nf(a, b) 2> "[" a g(b) "]"\ng(a) 2> "<" a ">"'
    assert program(source) == symbols("'[", "'<", "'x", "'>", "'<", "'[", "n", "'<", "'>", "']", "'>", "']")


def test_parameters_belong_to_their_own_macro() -> None:
    source = "start -> #e , f(x, y)\nf(y, x) 2> g(x, y) z\ng(x, z) 2> x y z"
    assert program(source) == symbols("y", "y", "x", "z")


def test_a_parameter_that_is_used_twice_doubles_the_symbol_and_only_one_has_a_partner() -> None:
    rule = only('start -> "a" n , f(n)\nf(x) 2> x "+" x')
    assert rule.program == symbols("n", "'+", "n")
    assert rule.pairings[0].links == (1, None, None)


def test_a_parameter_that_is_not_used_drops_its_argument() -> None:
    assert program('start -> #e , f(n, "a")\nf(x, y) 2> y') == symbols("'a")


def test_a_macro_body_may_have_regular_expressions_and_optional_symbols() -> None:
    grammar = read_scfg_text('start -> who? , f()\nf 2> /a/ who? "x"')
    assert grammar.rules[0].program == symbols(Chars(((97, 97),)), "maybe___nt_who", "'x")


def test_a_macro_is_not_a_rule() -> None:
    assert {rule.name for rule in read_scfg_text(BEGIN + 'f(x) 2> x "a"').rules} == {"start"}


@pytest.mark.parametrize(
    ("rule", "links"),
    [
        ('m " of " n , "(" n "," m ")"', (None, 2, None, 0, None)),
        ("n n , n n", (0, 1)),
        ("n m n , m n n", (1, 0, 2)),
        ("n , n n", (0, None)),
        ("n n , n", (0,)),
        ("n , m", (None,)),
        ('"n" , n', (None,)),
        ('n "x" , "x" n', (None, 0)),
        ("/[a-c]/ x /[a-c]/ , /[a-c]/ /[a-c]/ x", (0, 2, 1)),
        ("/[ab]/ , /[ba]/", (None,)),
        ("/[ab]/ /[ba]/ , /[ba]/ /[ab]/", (1, 0)),
        ('"\\"" / / body , "\\"" body', (None, 2)),
        ('#e n "" m , m #e n', (1, 0)),
        ('x? n "x"? , "x"? x? x', (2, 0, None)),
    ],
)
def test_the_nth_symbol_of_a_name_is_linked_to_the_nth_of_that_name(rule: str, links: tuple[int | None]) -> None:
    assert only(f"start -> {rule}").pairings[0].links == links


def optional(source: str, name: str) -> list[tuple[Production | None, tuple[Pairing, ...]]]:
    return [(rule.program, rule.pairings) for rule in rules(source, name)]


def test_an_optional_symbol_on_both_sides_is_present_or_absent_together() -> None:
    source = 'start -> "a" who? , who? "b"'
    assert only(source).program == symbols("maybe___nt_who", "'b")
    assert only(source).pairings == (Pairing(symbols("'a", "maybe___nt_who"), (1, None)),)
    assert optional(source, "maybe___nt_who") == [
        (symbols("who"), (Pairing(symbols("who"), (0,)),)),
        ((), (Pairing((), ()),)),
    ]


def test_an_optional_text_is_named_by_its_text() -> None:
    text = ' "so" ,'
    assert optional(f"start -> {json.dumps(text)}?", f"maybe___t_{text}") == [
        ((Text(text),), (Pairing((Text(text),), (None,)),)),
        ((), (Pairing((), ()),)),
    ]


def test_an_optional_symbol_of_utterances_only_has_no_program() -> None:
    source = 'start -> "a" "please"? , "P"\nx 1> "please"?'
    pairings = (Pairing(symbols("'please"), ()), Pairing((), ()))
    assert optional(source, "maybe___t_please") == [(None, pairings)]


def test_an_optional_symbol_of_programs_only_is_left_undefined() -> None:
    source = 'start -> "a" , who? "b"'
    assert only(source).program == symbols("maybe___nt_who", "'b")
    assert optional(source, "maybe___nt_who") == []


def test_an_optional_symbol_is_synchronous_everywhere_if_it_is_in_one_rule() -> None:
    source = "start -> who? , who?\nx -> who? , #e\ny -> #e , who?\nz 1> who?"
    assert [program for program, _ in optional(source, "maybe___nt_who")] == [symbols("who"), ()]


def test_a_name_and_an_equal_text_are_different_optional_symbols() -> None:
    assert program('start -> a? "a"?') == symbols("maybe___nt_a", "maybe___t_a")


def test_the_name_of_an_optional_symbol_is_fresh() -> None:
    source = 'start -> a? maybe___nt_a\nmaybe___nt_a -> "mine"'
    assert program(source) == symbols("maybe___nt_a_2", "maybe___nt_a")
    assert len(rules(source, "maybe___nt_a")) == 1
    assert len(rules(source, "maybe___nt_a_2")) == 2


def test_an_optional_symbol_of_an_unused_macro_makes_no_rule() -> None:
    assert len(read_scfg_text(BEGIN + "x -> who? , #e\nf 2> who?").rules) == 3
    assert optional(BEGIN + "x -> who? , #e\nf 2> who?", "maybe___nt_who")[0][0] is None


def test_rules_with_the_same_program_are_grouped_in_order_of_appearance() -> None:
    source = 'start -> "a" , "P"\nstart -> "b" , "Q"\nx -> "a" , "P"\nstart -> "c" | "a" , p()\np 2> "P"'
    grammar = read_scfg_text(source)
    assert [(rule.name, rule.program, len(rule.pairings)) for rule in grammar.rules] == [
        ("start", symbols("'P"), 2),
        ("start", symbols("'Q"), 1),
        ("x", symbols("'P"), 1),
    ]
    assert [pairing.utterance for pairing in grammar.rules[0].pairings] == [symbols("'a"), symbols("'c")]


def test_one_utterance_with_two_programs_stays_ambiguous() -> None:
    assert [rule.program for rule in rules('start -> "a" , "P"\nstart -> "a" , "Q"')] == [
        symbols("'P"),
        symbols("'Q"),
    ]


def test_exact_duplicates_merge() -> None:
    once = 'start -> n "a" , n\nx 1> "b"\n'
    assert read_scfg_text(once * 3) == read_scfg_text(once)


def test_differently_spelled_regular_expressions_keep_their_own_links() -> None:
    first, second = only("start -> /[ab]/ , /[ab]/\nstart -> /[ba]/ , /[ab]/").pairings
    assert first.utterance == second.utterance
    assert (first.links, second.links) == ((0,), (None,))


def test_an_undefined_name_is_allowed() -> None:
    assert read_scfg_text('start -> nobody , "P"').side("utterance").rules == {"start": (symbols("nobody"),)}


def test_the_start_may_have_another_name() -> None:
    assert read_scfg_text('begin -> "a"', start="begin").start == "begin"


def test_the_start_may_have_utterances_only() -> None:
    assert only('start 1> "a"').program is None


def test_locations_are_the_first_definitions() -> None:
    grammar = read_scfg([("a.scfg", '# x\nx -> "a"\n'), ("b.scfg", '\nx -> "b"\nstart 1> x?\nf 2> "c"')])
    assert grammar.locations == {"x": Location("a.scfg", 2), "start": Location("b.scfg", 3)}
    assert str(grammar.locations["x"]) == "a.scfg:2"


def test_a_file_ends_its_last_line() -> None:
    assert len(read_scfg([("a", 'start -> "a"'), ("b", 'start -> "b"')]).rules) == 2


def as_sets(grammar: SynchronousGrammar) -> set[tuple[str, Production | None, frozenset[Pairing]]]:
    return {(rule.name, rule.program, frozenset(rule.pairings)) for rule in grammar.rules}


def test_the_order_of_files_has_no_effect() -> None:
    files = [
        ("a", 'start -> x "a"? | y , f(x) "a"?\nx -> "x"'),
        ("b", 'f(z) 2> g(z) "b"\nstart -> y , f(x) "a"?\nx 1> "c"'),
        ("c", "g(z) 2> z y\ny -> #e , #e"),
    ]
    assert len({frozenset(as_sets(read_scfg(order))) for order in permutations(files)}) == 1


@sizes("count", default=20_000, campaign=100_000)
def test_many_thousand_rules_are_read(count: int) -> None:
    source = BEGIN + "\n".join(f'n{i} -> "w{i}" x , x "p{i}"' for i in range(1, count))
    grammar = read_scfg_text(source)
    assert len(grammar.rules) == count
    last = count - 1
    assert grammar.rules[-1] == PairedRule(
        f"n{last}", symbols("x", f"'p{last}"), (Pairing(symbols(f"'w{last}", "x"), (1, None)),)
    )


def test_calls_may_nest_deeply() -> None:
    depth = 50_000
    grammar = read_scfg_text(f'start -> #e , {"f(" * depth}n{")" * depth}\nf(x) 2> "a" x')
    assert grammar.rules[0].program == (*(Text("a"),) * depth, Ref("n"))


NAMES = st.from_regex(r"[a-zA-Z][_a-zA-Z0-9]{0,3}", fullmatch=True)
TEXTS = st.one_of(
    st.sampled_from(['"', "\\", "/", "#", "# e", "->", ",", "|", "?", "\\u0041", "(", " "]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
)
CLASSES = {"/[0-9]/": Chars(((48, 57),)), "/ /": Chars(((32, 32),)), '/[^"]/': Chars(((34, 34),)).negated()}
SYMBOLS = st.one_of(NAMES.map(Ref), TEXTS.map(Text), st.sampled_from(sorted(CLASSES)))
SIDES = st.lists(SYMBOLS, max_size=5)
RULES = st.tuples(NAMES, st.sampled_from(["->", "=", "1>"]), st.lists(SIDES, min_size=1, max_size=3), SIDES)
WHITESPACE = st.sampled_from(["", "", " ", "\t", "  ", "\u00a0", " \r"])


def written(symbol: Ref | Text | str, data: st.DataObject) -> str:
    if isinstance(symbol, Text):
        return json.dumps(symbol.text, ensure_ascii=data.draw(st.booleans()))
    return symbol.name if isinstance(symbol, Ref) else symbol


def expected_links(utterance: list[Ref | Text | str], target: list[Ref | Text | str]) -> tuple[int | None, ...]:
    links: list[int | None] = []
    for index, symbol in enumerate(target):
        partners = [i for i, other in enumerate(utterance) if other == symbol and not isinstance(other, Text)]
        before = target[:index].count(symbol)
        links.append(partners[before] if before < len(partners) else None)
    return tuple(links)


def produced(side: list[Ref | Text | str]) -> Production:
    found: list[Symbol] = [CLASSES[symbol] if isinstance(symbol, str) else symbol for symbol in side]
    return tuple(found)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(RULES, max_size=6), st.data())
def test_any_grammar_is_read_as_it_was_generated(
    drawn: list[tuple[str, str, list[list[Ref | Text | str]], list[Ref | Text | str]]], data: st.DataObject
) -> None:
    lines = [BEGIN.strip()]
    expected: dict[tuple[str, Production | None], dict[Pairing, None]] = {("start", ()): {Pairing((), ()): None}}
    for name, form, utterances, meaning in drawn:
        sides = utterances[:1] if form == "=" else utterances
        target = {"->": meaning, "=": sides[0], "1>": None}[form]
        tokens = [name, "1>" if form == "1>" else "->"]
        for i, side in enumerate(sides):
            tokens += ["|"] * (i > 0) + ([written(s, data) for s in side] or ["#e"])
        if form == "->":
            tokens += [",", *([written(s, data) for s in meaning] or ["#e"])]
        line = data.draw(WHITESPACE)
        for token in tokens:
            joins = line[-1:].isalnum() or line[-1:] == "_"
            space = data.draw(WHITESPACE)
            line += (space or " " * (joins and (token[0].isalnum()))) + token
        lines.append(line + data.draw(WHITESPACE))
        for side in sides:
            pairing = Pairing(produced(side), () if target is None else expected_links(side, target))
            key = (name, None if target is None else produced(target))
            expected.setdefault(key, {})[pairing] = None
    grammar = read_scfg_text("\n".join(lines))
    assert grammar.rules == tuple(PairedRule(name, p, tuple(pairings)) for (name, p), pairings in expected.items())


def test_an_empty_list_of_sources_has_no_start() -> None:
    with pytest.raises(GrammarError, match="<grammar>: no rule is called `start`"):
        read_scfg([])
