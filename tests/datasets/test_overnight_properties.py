"""Properties of the Overnight executor: it agrees with a naive oracle, and never raises or hangs."""

from random import Random

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from fewparse.datasets.overnight.executor import Denotation, denote
from fewparse.datasets.overnight.values import text_of
from support.campaign import examples
from support.overnight_oracle import FuelExhausted, Oracle
from support.overnight_small import PEOPLE, SMALL, SMALL_WORLD, random_lambdas, random_program

ORACLE = Oracle(SMALL)
SEEDS = st.integers(0, 2**32 - 1)
DEEP = 10_000
WORDS = [
    "call",
    "lambda",
    "var",
    "string",
    "number",
    "x",
    "y",
    "2",
    "listValue",
    "concat",
    "en.person",
    "!type",
    "é",
]


def expected(program: str) -> str:
    try:
        return ORACLE.denote(program)
    except FuelExhausted:
        assume(False)
        raise


@examples(300)
@given(SEEDS)
def test_a_random_program_has_the_denotation_of_the_oracle(seed: int) -> None:
    program = random_program(Random(seed))
    assert denote(program, SMALL_WORLD).text == expected(program)


@examples(200)
@given(SEEDS, st.integers(2, 5))
def test_lambdas_are_equivalent_to_textual_substitution(seed: int, size: int) -> None:
    program = f"(call listValue {random_lambdas(Random(seed), size)})"
    assert denote(program, SMALL_WORLD).text == expected(program)


@examples(150)
@given(SEEDS, st.data())
def test_an_edited_program_has_the_denotation_of_the_oracle(seed: int, data: st.DataObject) -> None:
    program = random_program(Random(seed))
    at = data.draw(st.integers(0, len(program)))
    word = data.draw(st.sampled_from(["", "(", ")", " ", "x", "()", "(var x)", "(lambda x (var x))"]))
    changed = program[:at] + word + program[at + data.draw(st.integers(0, 5)) :]
    assert denote(changed, SMALL_WORLD).text == expected(changed)


def assert_well_formed(denotation: Denotation) -> None:
    assert isinstance(denotation, Denotation)
    if denotation.error is None:
        assert list(denotation.values) == sorted(denotation.values, key=text_of)
        assert denotation.text.startswith("(list")
    else:
        assert (denotation.values, denotation.text) == ((), "error")
        assert 0 < len(denotation.error) < 250


@given(st.text())
@example("")
@example("\ud800")
@example("(call listValue \ud800)")
@example("(call listValue (string \x00))")
def test_any_text_has_a_denotation(text: str) -> None:
    assert_well_formed(denote(text, SMALL_WORLD))
    assert_well_formed(denote(f"(call listValue {text})", SMALL_WORLD))


@examples(100)
@given(st.lists(st.sampled_from(["(", ")", *WORDS])).map(" ".join))
def test_any_sequence_of_brackets_and_words_has_a_denotation(sequence: str) -> None:
    assert_well_formed(denote(sequence, SMALL_WORLD))


TREES = st.recursive(
    st.sampled_from(WORDS), lambda inner: st.lists(inner).map(lambda items: f"({' '.join(items)})")
)


@examples(100)
@given(TREES)
def test_any_tree_of_words_has_a_denotation(tree: str) -> None:
    assert_well_formed(denote(tree, SMALL_WORLD))
    assert_well_formed(denote(f"(call listValue {tree})", SMALL_WORLD))


def nested(opening: str, inside: str) -> str:
    return opening * DEEP + inside + ")" * DEEP


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (f"(call listValue {nested('(call reverse ', '(string p)')})", "(list (string p))"),
        (f"(call listValue {nested('(call reverse ', '(call reverse (string p))')})", "(list (string !p))"),
        (nested("(call listValue ", "en.person.ann"), "(list (name en.person.ann))"),
        (nested("((lambda x (call listValue (var x))) ", "en.person.ann"), "(list (name en.person.ann))"),
        ("((lambda x " * DEEP + "(call listValue (var x))" + ") (number 1))" * DEEP, "(list (number 1))"),
        ("((lambda x " * DEEP + "(call listValue (var x))" + ") (var x))" * DEEP, "error"),
        (nested("(call filter ", f"{PEOPLE} (string vip)"), "error"),
        ("(" * DEEP, "error"),
        (")" * DEEP, "error"),
        (nested("(", ""), "error"),
        (nested("(lambda x ", "(var x)"), "error"),
    ],
    ids=str.split("even odd listvalue arguments bodies unbound arity open closed empty lambdas"),
)
def test_the_depth_of_programs_is_not_limited(program: str, text: str) -> None:
    assert_well_formed(denote(program, SMALL_WORLD))
    assert denote(program, SMALL_WORLD).text == text


def test_an_argument_can_pass_through_ten_thousand_variables() -> None:
    program = f"(call listValue (var x{DEEP}))"
    for number in range(DEEP, 0, -1):
        program = (
            f"((lambda x{number} {program}) (var x{number - 1}))" if number > 1 else f"((lambda x1 {program}) a.b)"
        )
    assert denote(program, SMALL_WORLD).text == "(list (name a.b))"


SELF = "(lambda x ((var x) (var x)))"
SELF_CALL = "(lambda x (call concat ((var x) (var x)) ((var x) (var x))))"


@pytest.mark.parametrize("program", [f"({SELF} {SELF})", f"(call listValue ({SELF_CALL} {SELF_CALL}))"])
def test_a_program_that_does_not_terminate_is_stopped(program: str) -> None:
    assert denote(program, SMALL_WORLD).error == "too many steps"


def doubled(times: int) -> str:
    program = f"(call listValue (var x{times}))"
    for number in range(times, 0, -1):
        argument = f"(call concat (call concat (var x{number - 1}) {PEOPLE}) (var x{number - 1}))"
        program = f"((lambda x{number} {program}) {argument})"
    return f"((lambda x0 {program}) (call singleton en.person.ann))"


def test_a_list_that_doubles_too_often_exceeds_the_step_limit() -> None:
    assert len(denote(doubled(10), SMALL_WORLD).values) == 2**10 + 4 * (2**10 - 1)
    assert denote(doubled(40), SMALL_WORLD).error == "too many steps"


def test_an_argument_is_evaluated_only_once() -> None:
    program = "(call listValue (call .size (var x40)))"
    for number in range(40, 0, -1):
        used = f"(call filter (var x{number - 1}) (string friend) (string =) (var x{number - 1}))"
        program = f"((lambda x{number} {program}) {used})"
    assert denote(f"((lambda x0 {program}) {PEOPLE})", SMALL_WORLD).text == "(list (number 1 count))"
