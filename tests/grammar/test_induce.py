"""An induced grammar derives all examples, more with each merge level, and only well-formed programs."""

import gzip
import json
import random
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.constrain.copy_spans import free_text
from fewparse.datasets.overnight.world import WORLDS
from fewparse.domains.load import load_domain
from fewparse.errors import GrammarError, UsageError
from fewparse.grammar.induction.induce import MergeLevel, coverage, induce
from fewparse.grammar.induction.sexpr import compact, read_program
from fewparse.grammar.parsing.chart import ChartParser
from fewparse.grammar.rules import Chars, Grammar, Ref, Symbol, Text, trim
from support.campaign import sizes
from support.data import DATA
from support.earley import Recogniser

LEVELS: tuple[MergeLevel, ...] = get_args(MergeLevel)
SAMPLES = 60

MEALS = [
    "(order (dish soup) (number 2) (string to_go))",
    "(order (dish salad) (number 1))",
    "(find (price (dish soup)) (string <) (number 12))",
    "(find (price (dish stew)) (string >) (price (dish salad)))",
    "(find (cook (dish stew)) (string =) en.person.anna)",
    "(boss en.person.anna)",
]

WORDS = [
    "a",
    "b",
    "en.x.a",
    "en.x.b",
    "en.y.c",
    "k1",
    "k2",
    "7",
    "-7",
    "2.5",
    "2024-05-06",
    "09:30",
    ":",
    "#",
    "<",
]
TEXTS = ['"hi there"', '"(("', '""', r'"a \" b"', r'"\\"', '"new\nline"']
ATOMS = st.sampled_from([*WORDS, *TEXTS])
HEADS = st.sampled_from(
    [["f"], ["g"], ["h-1"], ["call", "f"], ["call", "g"], ["call"], [":get"], ["?~="], ["X[Y]"], []]
)
OPENINGS = st.sampled_from(["(", "(", "(", "#(", "'("])


def forms(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    keyworded = st.tuples(st.sampled_from([":k", ":l", ":m"]), inner).map(" ".join)
    arguments = st.lists(inner | keyworded | st.just(":flag"), max_size=3)
    return st.builds(
        lambda opening, head, arguments: f"{opening}{' '.join([*head, *arguments])})", OPENINGS, HEADS, arguments
    )


PROGRAMS = st.lists(st.recursive(ATOMS, forms, max_leaves=8), min_size=1, max_size=6)


def language(programs: Iterable[str], merge: MergeLevel) -> ChartParser:
    return ChartParser(induce(programs, merge).grammar)


# The oracle: a reader of its own, and the signatures with which each function was called.


def tree(text: str) -> Any:
    tokens = re.findall(r'"(?:\\.|[^"\\])*"|[#\'^]?\(|\)|[^\s()"]+', text, re.DOTALL)
    stack: list[list[Any]] = [[]]
    for token in tokens:
        if token == ")":
            done = stack.pop()
            stack[-1].append(done)
        elif token.endswith("(") and token[0] in "(#'^":
            stack.append([token])
        else:
            stack[-1].append(token)
    assert len(stack) == len(stack[0]) == 1, f"not one balanced program: {text}"
    return stack[0][0]


def usages(text: str) -> set[tuple[str, tuple[str, ...]]]:
    """Return the functions of a program with their arguments: `_` for a value, keywords as they are."""

    def plain(item: Any) -> bool:
        return isinstance(item, str) and not item.startswith('"')

    found = set()
    agenda = [tree(text)]
    while agenda:
        node = agenda.pop()
        if isinstance(node, str):
            continue
        opening, *items = node
        length = 1 if items and plain(items[0]) else 0
        length = 2 if items[:1] == ["call"] and len(items) > 1 and plain(items[1]) else length
        keywords = [plain(item) and item.startswith(":") and len(item) > 1 for item in items]
        arguments = tuple(item if is_keyword else "_" for item, is_keyword in zip(items, keywords, strict=True))
        found.add((" ".join([opening, *items[:length]]), arguments[length:]))
        agenda += items
    return found


def is_licensed(
    examples: set[tuple[str, tuple[str, ...]]], head: str, arguments: tuple[str, ...], merge: MergeLevel
) -> bool:
    """Return whether a function was called like this; if open, with known keywords and as many values."""
    if (head, arguments) in examples:
        return True
    known = {a for h, others in examples if h == head for a in others if a != "_"}
    keywords = [a for a in arguments if a != "_"]
    fixed = arguments.count("_") - len(keywords)
    counts = {others.count("_") - sum(a != "_" for a in others) for h, others in examples if h == head}
    return merge == "open" and set(keywords) <= known and len(set(keywords)) == len(keywords) and fixed in counts


# A sampler that is independent of the one under test.


class Sampler:
    def __init__(self, grammar: Grammar, seed: int) -> None:
        self.grammar = grammar
        self.rng = random.Random(seed)
        self.heights: dict[str, int] = {}
        growing = True
        while growing:
            growing = False
            for name, productions in grammar.rules.items():
                known = [h for p in productions if (h := self.height(p)) is not None]
                if known and self.heights.get(name) != 1 + min(known):
                    self.heights[name] = 1 + min(known)
                    growing = True

    def height(self, production: Sequence[Symbol]) -> int | None:
        heights = [self.heights.get(s.name) for s in production if isinstance(s, Ref)]
        return None if None in heights else max((h for h in heights if h is not None), default=0)

    def sentence(self, budget: int = 14) -> str:
        pieces: list[str] = []
        agenda: list[tuple[Symbol, int]] = [(Ref(self.grammar.start), budget)]
        while agenda:
            symbol, left = agenda.pop()
            if isinstance(symbol, Text):
                pieces.append(symbol.text)
            elif isinstance(symbol, Chars):
                low, high = self.rng.choice(symbol.ranges)
                pieces.append(chr(self.rng.randint(low, min(high, low + 90))))
            else:
                productions = self.grammar.rules[symbol.name]
                heights = [self.height(p) or 0 for p in productions]
                fitting = [p for p, h in zip(productions, heights, strict=True) if h < left or h == min(heights)]
                agenda += [(s, left - 1) for s in reversed(self.rng.choice(fitting))]
        return "".join(pieces)


def assert_laws_hold(programs: Sequence[str], samples: int, seed: int = 0) -> None:
    """Check the laws that hold for any examples."""
    grammars = {merge: induce(programs, merge).grammar for merge in LEVELS}
    parsers = {merge: ChartParser(grammar) for merge, grammar in grammars.items()}
    examples = {usage for program in programs for usage in usages(compact(read_program(program)))}
    sentences: dict[MergeLevel, list[str]] = {}
    for merge, grammar in grammars.items():
        assert not coverage(grammar, programs).missed, merge
        sampler = Sampler(grammar, seed)
        sentences[merge] = [sampler.sentence() for _ in range(samples)]
        for sentence in sentences[merge]:
            assert compact(read_program(sentence)) == sentence
            for head, arguments in usages(sentence):
                assert is_licensed(examples, head, arguments, merge), (merge, head, arguments, sentence)
        names = list(grammar.rules)
        assert all(re.fullmatch("[a-z][a-z0-9_]*|[A-Z]+", name) and "__" not in name for name in names), names
        bodies = [frozenset(grammar.rules[name]) for name in names if name != "start"]
        assert len(set(bodies)) == len(bodies)
        assert trim(grammar) == (grammar, (), ())
    for narrow, wide in pairwise(LEVELS):
        for sentence in sentences[narrow]:
            assert parsers[wide].accepts(sentence), (narrow, wide, sentence)


@settings(max_examples=120)
@given(PROGRAMS, st.integers(0, 3))
def test_the_laws_hold_for_any_examples(programs: list[str], seed: int) -> None:
    examples = [program for program in programs if not re.fullmatch(r":\S+", program)]
    if examples:
        assert_laws_hold(examples, 6, seed)


def test_the_laws_hold_for_the_bundled_calendar() -> None:
    assert_laws_hold([example.program for example in load_domain("calendar").examples][::4], SAMPLES)


@pytest.mark.parametrize("merge", LEVELS)
def test_an_independent_parser_agrees(merge: MergeLevel) -> None:
    grammar = induce(MEALS, merge).grammar
    chart, oracle = ChartParser(grammar), Recogniser(grammar)
    rng = random.Random(1)
    sampler = Sampler(grammar, 1)
    for _ in range(SAMPLES):
        sentence = sampler.sentence()
        at = rng.randrange(len(sentence))
        assert oracle.accepts(sentence)
        for corrupted in (sentence[:at] + sentence[at + 1 :], sentence[:at] + "(" + sentence[at:]):
            assert oracle.accepts(corrupted) == chart.accepts(corrupted)


@pytest.mark.parametrize(
    ("program", "level"),
    [
        ("(order (dish salad) (number 99))", "strict"),
        ("(find (price (dish stew)) (string <) (price (dish salad)))", "strict"),
        ("(order (dish soup) (number 99) (string to_go))", "strict"),
        ("(order (dish salad) (number 99) (string to_go))", "typed"),
        ("(find (price (dish soup)) (string =) (number 1))", "strict"),
        ("(order (dish stew) (number 1))", "typed"),
        ("(find (number 3) (string =) (price (dish stew)))", "typed"),
        ("(boss en.person.anna)", "strict"),
        ("(find (dish stew) (string =) en.person.anna)", "loose"),
        ("(boss en.person.ben)", None),
        ("(find (price (dish soup)) (string to_go) (number 1))", "loose"),
        ("(order (dish salad))", None),
        ("(order (dish salad) (number 1) (string to_go) (number 1))", None),
        ("(order (dish salad) (number two))", None),
        ("(order (dish salad) (number -2))", None),
        ("(order (dish salad) (number 1)", None),
        ("(order (dish pizza) (number 1))", None),
        ("(dish soup)", None),
    ],
)
def test_each_level_derives_the_programs_it_should(program: str, level: MergeLevel | None) -> None:
    accepting = [merge for merge in LEVELS if language(MEALS, merge).accepts(program)]
    assert accepting == list(LEVELS[LEVELS.index(level) :] if level else ())


def test_names_after_a_dot_are_generalised_if_examples_vary() -> None:
    examples = ["(of en.person.anna en.city.rome)", "(of en.person.ben en.city.rome)", "(at my.home)"]
    closed, opened = language(examples, "loose"), language(examples, "open")
    for program in ("(of en.person.carl en.city.rome)", "(of en.person.anna en.city.oslo-2_x)"):
        assert opened.accepts(program)
        assert not closed.accepts(program)
    for program in ("(of en.person.carl.x en.city.rome)", "(of en.person. en.city.rome)", "(at my.office)"):
        assert not opened.accepts(program)


def test_numbers_in_constants_are_generalised_if_examples_vary() -> None:
    opened = language(["(on May-3)", "(on May-14)", "(on June-1)", "(at 9:05am)", "(at 10:30am)"], "open")
    assert all(map(opened.accepts, ["(on May-31)", "(at 11:15am)"]))
    assert not any(map(opened.accepts, ["(on June-2)", "(on May-)", "(at May-3)", "(on May-3a)"]))


def test_keywords_are_optional_at_the_open_level_unless_all_examples_have_them() -> None:
    examples = ["(event :what a :when 1)", "(event :what b :where c :who d)", "(event :what b :when 2 :where c)"]
    opened = language(examples, "open")
    assert all(map(opened.accepts, ["(event :what a)", "(event :what a :when 1 :where c :who d)"]))
    wrong = ["(event)", "(event :when 1)", "(event :what a :what b)", "(event :when 1 :what a)", "(event :what)"]
    assert not any(map(opened.accepts, wrong))
    assert not language(examples, "loose").accepts("(event :what a)")


def test_at_least_one_keyword_is_required_if_all_examples_have_one() -> None:
    opened = language(["(f :a 1)", "(f :b 2)"], "open")
    assert opened.accepts("(f :a 1 :b 2)")
    assert not opened.accepts("(f)")
    assert language(["(f :a 1)", "(f)", "(f :b 2)"], "open").accepts("(f)")


def test_keywords_in_contradictory_orders_are_not_merged() -> None:
    opened = language(["(f :a 1 :b 2)", "(f :b 2 :a 1)", "(f :a 1 :b 2 :c 3)"], "open")
    assert opened.accepts("(f :b 2 :a 1)")
    assert not opened.accepts("(f :b 2 :a 1 :c 3)")


@pytest.mark.parametrize(
    ("given_literals", "derived", "rejected"),
    [
        (["1", "20"], ["7", "003"], ["-1", "1.5", "", "x"]),
        (["1", "-1"], ["7", "-7"], ["1.5", "--1", "-"]),
        (["1.5"], ["-2.25"], ["1", "1.", ".5"]),
        (["1.5", "2"], ["1", "0.1"], ["1.", "-1"]),
        (["2024-05-06"], ["1999-12-31"], ["1999-13", "1999-99-99", "1999"]),
        (["09:30"], ["23:59"], ["9:30", "23:60", "2359"]),
        (['"a"'], ['"it is (so)"', '"é"'], ['""', '"a', 'a"b"', r'"a\"b"', '"a\nb"']),
        (['"a"', '""'], ['""', '"b"'], ['"', '"""']),
        ([r'"a \"b\""'], [r'"\\"', r'"a\\ \" b"', '"plain"'], ['""', '"\\"', r'"\n"', '"a"b"']),
        ([r'"\n"'], [r'"a\nb\"c"'], [r'"\t"', '"\\"']),
    ],
)
@pytest.mark.parametrize("merge", LEVELS)
def test_literals_are_generalised_to_the_classes_seen(
    merge: MergeLevel, given_literals: list[str], derived: list[str], rejected: list[str]
) -> None:
    parser = language([f"(f {literal})" for literal in given_literals], merge)
    assert all(parser.accepts(f"(f {literal})") for literal in [*given_literals, *derived])
    assert not [literal for literal in rejected if parser.accepts(f"(f {literal})")]


def test_the_rule_of_quoted_text_can_be_used_for_copying() -> None:
    for literal in ('"a"', r'"a \" b"'):
        chars = free_text(induce([f"(f {literal})"]).grammar, "TEXT").plain
        assert "é" in chars
        assert not any(char in chars for char in '"\\\n')


def test_an_applied_name_identifies_the_function() -> None:
    examples = ["(call f x y)", "(call g z)"]
    assert not language(examples, "loose").accepts("(call g x y)")
    applied = induce(["(apply f x y)", "(apply g z)"], "loose", apply_heads=["apply"]).grammar
    assert not coverage(applied, ["(apply f x y)"]).missed
    assert coverage(applied, ["(apply g x y)"]).missed


def test_an_operator_that_is_a_form_never_becomes_a_bare_word() -> None:
    examples = ["((lambda s (f (var s))) x)", "(f (lambda s (f x)))", "(f x)"]
    parser = language(examples, "open")
    assert parser.accepts("((lambda s (f (lambda s (f x)))) x)")
    assert not parser.accepts("(x x)")


def test_spacing_is_normalised() -> None:
    grammar = induce(["  ( f\n   a  (g) )", "(f(g)(g))"]).grammar
    assert ChartParser(grammar).accepts("(f a (g))")
    assert not ChartParser(grammar).accepts("(f  a (g))")
    assert coverage(grammar, ["( f a(g) )", "(f b (g))", "(f (g)\n(g))"]).missed == ("(f b (g))",)


def test_the_result_counts_functions_constants_and_literals() -> None:
    induced = induce(MEALS)
    assert (induced.programs, induced.functions, induced.constants) == (6, 8, 8)
    assert induced.literals == ("NATURAL",)
    assert coverage(induced.grammar, MEALS).share == 1


def test_rules_have_readable_names() -> None:
    programs = ['(FindEvent :byName (?= #(String "a")))', "(FindEvent :byName (>= 2 x))", "(start (start a))"]
    names = induce(programs).grammar.rules
    assert {"start", "find_event", "find_event_by_name", "string", "greater_equal", "quoted", "TEXT"} <= set(names)


@pytest.mark.parametrize("merge", LEVELS)
def test_the_depth_of_programs_is_not_limited(merge: MergeLevel) -> None:
    deep = "(f " * 100_000 + "x" + ")" * 100_000
    parser = language([deep], merge)
    assert parser.accepts("(f (f x))")


def test_a_program_that_is_not_an_s_expression_is_reported_with_its_location() -> None:
    message = r"program 2: the program is not an S-expression: this \( is never closed\n    \(b \(c\)\n    \^"
    with pytest.raises(GrammarError, match=message) as caught:
        induce(["(a)", "(b (c)"])
    assert "S-expressions only" in str(caught.value.hint)
    with pytest.raises(GrammarError, match=r"pairs\.jsonl:7: .*: a keyword alone is not a program"):
        induce([" :a"], locate=lambda number: f"pairs.jsonl:{number + 6}")


def test_no_examples_and_unknown_levels_are_errors() -> None:
    with pytest.raises(UsageError, match="without programs"):
        induce([])
    with pytest.raises(UsageError, match="Did you mean loose"):
        induce(["(a)"], "lose")  # type: ignore[arg-type]


# Real programs.


def shared_programs(path: str) -> list[str]:
    file = DATA / path
    if not file.exists():
        pytest.skip(f"{path} is not available")
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
    return [json.loads(line)["program"] for line in text.splitlines()]


@pytest.mark.parametrize("domain", ["basketball", "socialnetwork"])
def test_the_laws_hold_for_overnight(domain: str) -> None:
    assert_laws_hold(shared_programs(f"overnight/{domain}.train.jsonl.gz")[:200], SAMPLES)


def test_the_laws_hold_for_lispress() -> None:
    assert_laws_hold(shared_programs("smcalflow/train_300.jsonl")[:100], SAMPLES)


@sizes("step", default=5, campaign=1)
def test_two_hundred_examples_cover_overnight(step: int) -> None:
    shares: dict[MergeLevel, list[float]] = {}
    for domain in WORLDS:
        given_programs = shared_programs(f"overnight/{domain}.train.jsonl.gz")[:200]
        test_programs = shared_programs(f"overnight/{domain}.test.jsonl.gz")[::step]
        for merge in LEVELS:
            grammar = induce(given_programs, merge).grammar
            shares.setdefault(merge, []).append(coverage(grammar, test_programs).share)
    means = [sum(shares[merge]) / len(WORLDS) for merge in LEVELS]
    assert means == sorted(means)
    assert means[LEVELS.index("typed")] > 0.95
    assert means[-1] > 0.98
