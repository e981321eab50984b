"""The normal form of Lispress removes insignificant differences between programs, and keeps all others."""

import gzip
import json
import random
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.datasets.smcalflow.lispress import normal_form
from fewparse.errors import GrammarError
from support.data import SMCALFLOW

DATA = SMCALFLOW

SAME = {
    "whitespace": ("( F\n:a( g  x )\t)", "(F :a (g x))"),
    "whitespace at the ends of a string": ('(F :a "  lunch ")', '(F :a "lunch")'),
    "whitespace at the ends of a typed string": ('#(PersonName " Ann\t")', '#(PersonName "Ann")'),
    "escapes in a string": (r'(f "caf\u00e9\/")', '(f "café/")'),
    "the order of keyword arguments": ("(F :b (B) :a (A))", "(F :a (A) :b (B))"),
    "the order of keyword arguments of a generic type": (
        "(Constraint[Event] :b (B) :a (A))",
        "(Constraint[Event] :a (A) :b (B))",
    ),
    "a repeated keyword left out": ("(F :a (A) (B))", "(F :a (A) :a (B))"),
    "a repeated keyword left out among others": ("(F :b (B) (C) :a (A))", "(F :a (A) :b (B) :b (C))"),
    "a keyword without a value": ("(F :a (A) :b)", "(F :a (A))"),
    "the type of a number": ("#(Number 2)", "2"),
    "the type of a string": ('#(String "a b")', '"a b"'),
    "the type of a boolean": ("#(Boolean true)", "true"),
    "the notation of a number": ("(f 2 -3 +4 .5 1e2)", "(f 2.0 -3.0 4.0 0.5 100.0)"),
    "the second decimal": ("(f 1.24)", "(f 1.25)"),
    "the notation of a number with another type": ("#(Celsius 2)", "#(Celsius 2.0)"),
    "the sign of zero": ("-0.04", "0"),
    "the notation of a field access": ('(get (f x) #(Path "start"))', "(:start (f x))"),
    "the notation of nested field access": ('(get (:b x) #(Path " a "))', '(:a (get x #(Path "b")))'),
    "brackets around a single name": ("(f Now)", "(f (Now))"),
    "the names of variables": ("(let (x7 (A)) (f x7 x7))", "(let (event (A)) (f event event))"),
    "the order of variables": ("(let (x0 (A) x1 (B)) (f x0 x1 x1 x0))", "(let (x0 (B) x1 (A)) (f x1 x0 x0 x1))"),
    "a variable that is used once": ("(let (x0 (A)) (f x0))", "(f (A))"),
    "the place of a let": ("(f (let (x0 (A)) (g x0 x0)))", "(let (x0 (A)) (f (g x0 x0)))"),
    "a do in a do": ("(do (do (A) (B)) (C))", "(do (A) (B) (C))"),
    "a do with one statement": ("(do (A))", "(A)"),
    "a variable that is not used": ("(let (x0 (A)) (B))", "(do (A) (B))"),
}
DIFFERENT = {
    "whitespace within a string": ('"a b"', '"a  b"'),
    "letter case of keywords": ("(F :a (A))", "(F :A (A))"),
    "letter case of strings": ('"Lunch"', '"lunch"'),
    "letter case of functions": ("(F)", "(f)"),
    "the order of positional arguments": ("(f (A) (B))", "(f (B) (A))"),
    "the order of arguments of operators": ("(?= (A) (B))", "(?= (B) (A))"),
    "keywords in a call of a lower-case function": ("(f :a (A) :b (B))", "(f :b (B) :a (A))"),
    "the order if an argument has no keyword": ("(F (C) :a (A) :b (B))", "(F (C) :b (B) :a (A))"),
    "the order of arguments with one keyword": ("(F :a (A) :a (B))", "(F :a (B) :a (A))"),
    "a repeated argument": ("(F :a (A) :a (A))", "(F :a (A))"),
    "the order if the capital is not A to Z": ("(É :a (A) :b (B))", "(É :b (B) :a (A))"),
    "a keyword": ("(F (A))", "(F :a (A))"),
    "other types": ('#(Month "MAY")', '"MAY"'),
    "number and string": ("2", '"2"'),
    "boolean and string": ("true", '"true"'),
    "the type of a value with another type": ('#(Number "2")', "#(Number 2)"),
    "list and string": ("#(List[Path] [])", '#(List[Path] "[]")'),
    "the first decimal": ("1.2", "1.3"),
    "the sign": ("-2", "2"),
    "numbers above the range of doubles": ("1e400", "1e500"),
    "long integer and number": ("2L", "2"),
    "fields": ("(:start x)", "(:end x)"),
    "a path that is not a plain word": ('(get x #(Path "a b"))', '(get x #(Path "ab"))'),
    "which variable is used": ("(let (x0 (A) x1 (B)) (f x0 x0 x1 x1))", "(let (x0 (A) x1 (B)) (f x0 x1 x0 x1))"),
    "one shared node and two equal nodes": ("(let (x0 (A)) (f x0 x0))", "(f (A) (A))"),
    "the order of a do": ("(do (A) (B))", "(do (B) (A))"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_programs_that_differ_only_in_this_have_the_same_normal_form(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_programs_that_differ_in_this_have_different_normal_forms(one: str, other: str) -> None:
    assert normal_form(one) != normal_form(other)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ('(F :b #(Number 1.25) :a #(String " x "))', '(F :a "x" :b 1.2)'),
        ("(let (x5 (A)) (F :b (g x5) :a x5))", "(let (x0 (A)) (F :a x0 :b (g x0)))"),
        ("(let (x5 (A) x3 (g x5 x5)) (f x3 x3))", "(let (x0 (A) x1 (g x0 x0)) (f x1 x1))"),
        ("(f (let (x0 (A)) (g x0 x0)) (let (x0 (B)) (g x0 x0)))", "(let (x0 (A) x1 (B)) (f (g x0 x0) (g x1 x1)))"),
        ("(f (do (A) (B)) 1)", "(do (A) (f (B) 1.0))"),
        ('(get x #(Path "a.b"))', '(get (x) #(Path "a.b"))'),
        ("(f nan inf Infinity)", "(f (nan) (inf) (Infinity))"),
        ("()", "()"),
        ("(f '(do (A) 1) '(let x))", "(f '(do (A) 1.0) '(let (x)))"),
        ("((f x) 1)", "((f (x)) 1.0)"),
        (r'"\q "', r'"\q "'),
        ("#(Odd (A 1))", "#(Odd (A 1.0))"),
    ],
)
def test_the_normal_form_of_a_program(program: str, expected: str) -> None:
    assert normal_form(program) == expected


@pytest.mark.parametrize("number", ["9" * 5_000, "-" + "9" * 400, "1e-400", "1e308", "0." + "0" * 5_000 + "1"])
def test_the_size_of_numbers_is_not_limited(number: str) -> None:
    once = normal_form(f"(f {number})")
    assert normal_form(once) == once


@pytest.mark.parametrize(
    ("program", "column", "problem"),
    [
        ("(f (g x)", 1, "this ( is never closed"),
        ("(f x))", 6, "this ) has no matching ("),
        ("(f) (g)", 5, "a second one starts here"),
        ("", 1, "the program is empty"),
        ('(f "a)', 4, "this string is never closed"),
        ("(f x0)", 4, "the variable x0 is not bound by a let"),
        ("(f (let (x1 x2) x1))", 13, "the variable x2 is not bound by a let"),
        ("(let (x0) x0)", 1, "a let needs pairs"),
        ("(let (x0 (A)))", 1, "a let needs pairs"),
        ("(let x0 x0)", 1, "a let needs pairs"),
        ("let", 1, "a let needs pairs"),
        ("(let ((f) (A)) (B))", 7, "this is not a variable name"),
        ("(let (2 (A)) (B))", 7, "this is not a variable name"),
    ],
)
def test_a_text_that_is_not_lispress_is_an_error(program: str, column: int, problem: str) -> None:
    with pytest.raises(GrammarError, match=rf":1:{column}: .*") as caught:
        normal_form(program)
    assert problem in str(caught.value)


def test_depth_and_length_are_not_limited() -> None:
    deep = "(f " * 20_000 + "(x)" + ")" * 20_000
    assert normal_form(deep) == deep
    gets = "(get " * 3_000 + "(x)" + ' #(Path "p"))' * 3_000
    assert normal_form(gets) == "(:p " * 3_000 + "(x)" + ")" * 3_000
    lets = "".join(f"(let (x{i} (A)) " for i in range(3_000)) + "(B)" + ")" * 3_000
    assert normal_form(lets) == "(do" + " (A)" * 3_000 + " (B))"
    long = "(do" + " (f :a 1.0)" * 20_000 + ")"
    assert normal_form(long) == long


# Abstract programs, each of which can be written in many equivalent ways.

TEXTS = st.text(st.sampled_from('aé \\"()'), max_size=4).map(str.strip)
LEAVES = st.one_of(
    st.tuples(st.just("number"), st.integers(-30, 30)),
    st.tuples(st.just("text"), TEXTS),
    st.tuples(st.just("truth"), st.booleans()),
    st.tuples(st.just("typed"), st.sampled_from(["Month", "Path"]), TEXTS),
)


def programs_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    return st.one_of(
        st.tuples(st.just("call"), st.sampled_from(["f", "?=", "to.g"]), st.lists(inner, max_size=3)),
        st.tuples(st.just("struct"), st.sampled_from(["F", "List.Nil", "Set[F]"]), fields),
        st.tuples(st.just("field"), st.sampled_from(["start", "end2"]), inner),
    )


PROGRAMS = st.recursive(LEAVES, programs_of, max_leaves=12)
RNGS = st.randoms(use_true_random=False)


def written(program: Any, rng: random.Random) -> str:
    """Write a program in a random equivalent way."""

    def whitespace(minimum: int = 1) -> str:
        return "".join(rng.choices(" \t\n", k=rng.randint(minimum, 2)))

    def text(value: str) -> str:
        return json.dumps(whitespace(0) + value, ensure_ascii=rng.random() < 0.5)[:-1] + whitespace(0) + '"'

    def typed(name: str, value: str) -> str:
        return f"#({whitespace(0)}{name}{whitespace()}{value}{whitespace(0)})"

    def form(*items: str) -> str:
        return f"({whitespace(0)}{whitespace().join(items)}{whitespace(0)})"

    match program:
        case "number", tenths:
            number = rng.choice([f"{tenths / 10}", f"{tenths / 10:.3f}", f"{tenths}e-1"])
            return rng.choice([number, typed("Number", number)])
        case "text", value:
            return rng.choice([text(value), typed("String", text(value))])
        case "truth", truth:
            return rng.choice([str(truth).lower(), typed("Boolean", str(truth).lower())])
        case "typed", name, value:
            return typed(name, text(value))
        case "field", name, inner:
            got = written(inner, rng)
            return rng.choice([form(f":{name}", got), form("get", got, typed("Path", text(name)))])
        case "struct", name, fields:
            arguments = [(f":{key}", written(value, rng)) for key, value in fields.items()]
            rng.shuffle(arguments)
            items = [item for argument in arguments for item in argument]
        case "call", name, values:
            items = [written(value, rng) for value in values]
    return form(name, *items) if items or rng.random() < 0.5 else name


@given(PROGRAMS, RNGS, RNGS)
def test_equivalent_texts_have_the_same_normal_form(
    program: Any, one: random.Random, other: random.Random
) -> None:
    normal = normal_form(written(program, one))
    assert normal_form(written(program, other)) == normal
    assert normal_form(normal) == normal


@given(PROGRAMS, RNGS)
def test_a_program_with_one_change_has_another_normal_form(program: Any, rng: random.Random) -> None:
    other = changed(program, rng)
    assert normal_form(written(program, rng)) != normal_form(written(other, rng))


def changed(program: Any, rng: random.Random) -> Any:
    """Return the program with one random change."""
    match program:
        case "number", tenths:
            return "number", tenths + 1
        case "text", value:
            return "text", value + "z"
        case "truth", truth:
            return "truth", not truth
        case "typed", name, value:
            return "typed", name + "s", value
        case "field", name, inner:
            return rng.choice([("field", name + "s", inner), ("field", name, changed(inner, rng))])
        case "struct", name, fields:
            if not fields or rng.random() < 0.2:
                return "struct", name + "s", fields
            key = rng.choice(sorted(fields))
            rest = {k: value for k, value in fields.items() if k != key}
            new = {**rest, "z": fields[key]}, {**fields, key: changed(fields[key], rng)}, rest
            return "struct", name, rng.choice(new)
        case "call", name, values:
            if not values or rng.random() < 0.2:
                return "call", name + "s", values
            if values != values[::-1] and rng.random() < 0.5:
                return "call", name, values[::-1]
            i = rng.randrange(len(values))
            return "call", name, [*values[:i], changed(values[i], rng), *values[i + 1 :]]


# A graph: for each node, the indices of earlier nodes that are its arguments. The last node is the root.

GRAPHS = st.integers(1, 7).flatmap(
    lambda count: st.tuples(
        *(st.lists(st.integers(0, max(0, i - 1)), max_size=3 if i else 0) for i in range(count))
    )
)


def reachable(graph: tuple[list[int], ...]) -> list[int]:
    """Return the nodes reachable from the root in a postorder that differs from their numbering."""
    order: list[int] = []

    def visit(i: int) -> None:
        for argument in reversed(graph[i]):
            visit(argument)
        if i not in order:
            order.append(i)

    visit(len(graph) - 1)
    return order


def let(graph: tuple[list[int], ...], order: list[int], bound: set[int], prefix: str) -> str:
    """Write a program in which the `bound` nodes are named by a let and all others are nested."""

    def step(i: int) -> str:
        return f"(f{i}{''.join(' ' + place(argument) for argument in graph[i])})"

    def place(i: int) -> str:
        return f"{prefix}{9 - i}" if i in bound else step(i)

    bindings = " ".join(f"{prefix}{9 - i} {step(i)}" for i in order if i in bound)
    return f"(let ({bindings}) {place(len(graph) - 1)})"


@given(GRAPHS, st.sampled_from(["x", "name", "X"]))
def test_unshared_bindings_and_the_order_and_names_of_bindings_do_not_matter(
    graph: tuple[list[int], ...], prefix: str
) -> None:
    order = reachable(graph)
    uses = [argument for i in order for argument in graph[i]]
    shared = {i for i in order if uses.count(i) > 1}
    normal = normal_form(let(graph, order, shared, "x"))
    assert normal_form(let(graph, sorted(order), set(order), prefix)) == normal
    assert normal_form(normal) == normal
    assert normal.count("(f") == len(order)
    assert ("(let" in normal) == bool(shared)


ATOMS = st.sampled_from(
    ["a", "F", ":k", ":m", "x0", "x1", "2", "1.25", "-0.01", '" t "', "true", "let", "do", "get"]
)
FORMS = ["(", "#(", "'(", "(F ", "(f ", "(do ", "(:k ", "(let (x0 a) ", "(let (x1 (F) x0 x1) ", "#(Path ", "(get "]


@given(
    st.recursive(
        ATOMS | st.just('#(Path "p")'),
        lambda inner: st.builds(
            lambda opening, items: f"{opening}{' '.join(items)})",
            st.sampled_from(FORMS),
            st.lists(inner, max_size=4),
        ),
        max_leaves=25,
    )
)
def test_the_normal_form_is_idempotent(program: str) -> None:
    try:
        normal = normal_form(program)
    except GrammarError:
        return
    assert normal_form(normal) == normal


@given(st.text(st.sampled_from("()\"\\#'^:. xF01eL\n"), max_size=14))
def test_any_text_has_a_normal_form_or_is_a_grammar_error(text: str) -> None:
    try:
        normal = normal_form(text)
    except GrammarError:
        return
    assert normal_form(normal) == normal


def test_keyword_arguments_may_be_in_any_order() -> None:
    arguments = [":d (D)", ":a 1", ':c "c"', ":b (b (x))"]
    assert {normal_form(f"(F {' '.join(order)})") for order in permutations(arguments)} == {
        '(F :a 1.0 :b (b (x)) :c "c" :d (D))'
    }


@pytest.mark.skipif(not DATA.is_dir(), reason="the SMCalFlow dataset was not found: set FEWPARSE_DATA")
def test_real_programs_have_distinct_normal_forms() -> None:
    lines = gzip.decompress((DATA / "dev_all.jsonl.gz").read_bytes()).decode("utf-8").splitlines()
    programs = {json.loads(line)["program"] for line in lines}
    normal = {normal_form(program) for program in programs}
    assert len(normal) == len(programs) > 6_000
    assert all(normal_form(form) == form for form in normal)
