"""Values of the Overnight language: literals, types, degrees, equality and text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.datasets.overnight.values import (
    TRUE,
    Date,
    Entity,
    Number,
    Text,
    Time,
    Value,
    degree,
    is_numeric,
    number_text,
    read_expression,
    read_value,
    text_of,
    type_of,
)
from fewparse.errors import ExecutionError
from support.overnight_oracle import number_text as exact_number_text


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        ("en.block.block1", Entity("en.block.block1"), "(name en.block.block1)"),
        ("(number 3)", Number(3.0), "(number 3)"),
        ("(number 3 en.inch)", Number(3.0, "en.inch"), "(number 3 en.inch)"),
        ("(number -2.5e1 point)", Number(-25.0, "point"), "(number -25 point)"),
        ("(number .5)", Number(0.5), "(number 0.500)"),
        ("(number +1.)", Number(1.0), "(number 1)"),
        ("(date 2015 -1 -1)", Date(2015, -1, -1), "(date 2015 -1 -1)"),
        ("(time 10 0)", Time(10, 0), "(time 10 0)"),
        ("(time +010 00)", Time(10, 0), "(time 10 0)"),
    ],
)
def test_a_value_is_read_and_written(written: str, value: Value, text: str) -> None:
    assert read_value(read_expression(written)) == value
    assert text_of(value) == text


@pytest.mark.parametrize(
    "written",
    [
        *("(number NaN)", "(number inf)", "(number 0x10)", "(number 1_000)", "(number 1e999)", "(number ٣)"),
        *("(number)", "(number a)", "(number 1 a b)", "(number (number 1))", "(number 1d)"),
        *("(date 2015 1)", "(date 2015 1 2 3)", "(date 2015 1 x)", "(date 2147483648 1 1)", "(date 1.0 1 1)"),
        *("(time 1)", "(time 1 2 3)", "(time 1 (x))", f"(time {'9' * 5000} 1)", "(time -2147483649 0)"),
        *("(boolean true)", "(list)", "(list a)", "(name en.x)", "()", "((a))"),
    ],
)
def test_other_expressions_are_not_literals(written: str) -> None:
    with pytest.raises(ExecutionError):
        read_value(read_expression(written))


def test_values_of_different_kinds_or_units_are_not_equal() -> None:
    alike: list[Value] = [
        Entity("x"),
        Text("x"),
        Number(3.0),
        Number(3.0, "point"),
        Number(3.0, "assist"),
        Time(3, 0),
    ]
    assert len(set(alike)) == len(alike)
    assert Date(2015, 1, 2) != Date(2015, -1, -1)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Entity("en.block.block1"), "en.block"),
        (Entity("en.block"), "en"),
        (Entity("en.city.bejing"), "en.city"),
        (Entity("en.city.rome._old"), "en.city"),
        (Number(1.0, "en.inch"), "en.inch_number"),
        (Number(1.0), "fb:en.unitless_number"),
        (Number(1.0, "count"), "count_number"),
        (Date(1, 2, 3), "en.date"),
        (Time(1, 2), "en.time"),
        (TRUE, "en.boolean"),
    ],
)
def test_the_type_of_a_value_depends_on_the_value_alone(value: Value, kind: str) -> None:
    assert type_of(value) == kind


@pytest.mark.parametrize("value", [Entity("dotless"), Entity(".x"), Entity("en._x"), Entity("_x"), Text("en.x.y")])
def test_the_type_of_a_value_without_one_is_an_error(value: Value) -> None:
    with pytest.raises(ExecutionError, match="has no type"):
        type_of(value)


def test_numbers_dates_and_times_are_numeric() -> None:
    assert [is_numeric(kind) for kind in ("point_number", "en.date", "en.time")] == [True] * 3
    assert [is_numeric(kind) for kind in ("en.boolean", "en.person", "number")] == [False] * 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Number(2.5, "point"), 2.5),
        (Date(2004, -1, -1), 20040000.0),
        (Date(2015, 1, 2), 20150102.0),
        (Date(-1, -1, 7), 7.0),
        (Time(13, 59), 13.0),
    ],
)
def test_degrees_ignore_units_missing_parts_and_minutes(value: Value, expected: float) -> None:
    assert degree(value) == expected


@pytest.mark.parametrize("value", [Entity("en.x.y"), TRUE, Text("x")])
def test_other_values_have_no_degree(value: Value) -> None:
    with pytest.raises(ExecutionError, match="has no degree"):
        degree(value)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((0.0, "0"), (-0.0, "0"), (-7.0, "-7"), (2147483647.0, "2147483647"), (-2147483648.0, "-2147483648")),
        *((2147483648.0, "2147483648.000"), (-2147483649.0, "-2147483649.000"), (1e23, "1" + "0" * 23 + ".000")),
        *((0.0005, "5.00e-04"), (-0.0005, "-5.00e-04"), (0.00012345, "1.23e-04"), (0.000125, "1.25e-04")),
        *((0.00012350, "1.24e-04"), (0.00099999, "1.00e-03"), (5e-324, "5.00e-324"), (0.001, "0.001")),
        *(
            (1.0005, "1.001"),
            (2.0015, "2.002"),
            (-1.0005, "-1.001"),
            (0.3333333333333333, "0.333"),
            (0.0025, "0.003"),
        ),
        (1.9999, "2.000"),
    ],
)
def test_numbers_are_rounded_half_up_in_their_shortest_decimal_expansion(number: float, text: str) -> None:
    assert number_text(number) == text


@given(
    st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-9999, 99999).map(lambda n: n / 2000))
)
def test_the_text_of_any_number_equals_that_of_exact_fractions(number: float) -> None:
    assert number_text(number) == exact_number_text(number)
