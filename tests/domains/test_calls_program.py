"""Programs of calls: both notations are read and written without loss."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.domains.calls.program import Call, execute, read_program, write_program
from fewparse.errors import InvalidProgram

names = st.text(st.characters(codec="utf-8"), min_size=1)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
calls = st.builds(Call, names, st.dictionaries(names, values, max_size=3))


@given(program=st.lists(calls, min_size=1, max_size=3))
@pytest.mark.parametrize("notation", ["call", "json"])
def test_what_is_written_is_read_again(notation: Any, program: list[Call]) -> None:
    assert read_program(write_program(program, notation, several=True)) == (program, True)
    assert read_program(write_program(program[:1], notation, several=False)) == (program[:1], False)


def test_the_notations_are_short() -> None:
    call = Call("get_weather", {"city": "Paris", "days": 3, "units": ["C", {"a": None}]})
    assert write_program([call], "call", False) == 'get_weather(city="Paris", days=3, units=["C", {"a": null}])'
    assert write_program([call], "json", False) == (
        '{"name":"get_weather","arguments":{"city":"Paris","days":3,"units":["C",{"a":null}]}}'
    )
    stop = Call("stop", {})
    assert write_program([stop, stop], "call", True) == "[stop(), stop()]"
    assert write_program([stop], "json", True) == '[{"name":"stop","arguments":{}}]'


def test_only_names_that_are_not_plain_words_are_quoted() -> None:
    assert write_program([Call("math.sqrt", {"x-y[0]": 1})], "call", False) == "math.sqrt(x-y[0]=1)"
    assert write_program([Call("get weather", {"a=b": 1, "": 2})], "call", False) == '"get weather"("a=b"=1, ""=2)'
    assert write_program([Call("größe", {"日": 1})], "call", False) == "größe(日=1)"


def test_spaces_between_the_parts_do_not_matter_and_the_last_of_equal_keys_counts() -> None:
    assert read_program('f(a={"x": 1, "x": 2})') == ([Call("f", {"a": {"x": 2}})], False)
    spaced = ' [ f ( a = [ 1 ] , "b c" = "x" ) , g( ) ] '
    assert read_program(spaced) == ([Call("f", {"a": [1], "b c": "x"}), Call("g", {})], True)


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("", 0, "no name before `(`"),
        ("f", 1, "no `(` here"),
        ("f(a)", 3, "no `=` here"),
        ("f(a=)", 4, "not JSON"),
        ("f(a=True)", 4, "not JSON"),
        ("f(a='x')", 4, "not JSON"),
        ("f(a=1 b=2)", 6, "no `)` here"),
        ("f(a=1, a=2)", 7, "the argument 'a' twice"),
        ("f(a=NaN)", 4, "NaN is not a number of JSON"),
        ("f(a=[1e400])", 4, "the number 1e400 is too large"),
        ("f() g()", 4, "continues after its end"),
        ("[f(), g()", 9, "no `]` here"),
        ("[]", 1, "no name before `(`"),
        ('{"name": "f"}', 0, "not {"),
        ('{"name": "f", "arguments": {}, "x": 1}', 0, "not {"),
        ('{"name": "f", "arguments": [1]}', 0, "not {"),
        ('{"name": "f", "arguments": {}', 29, "not JSON"),
        ("f(a=" + "[" * 100_000 + ")", 4, "nested too deeply"),
    ],
)
def test_a_mistake_is_reported_with_its_offset(text: str, at: int, message: str) -> None:
    with pytest.raises(InvalidProgram) as caught:
        read_program(text)
    assert message in caught.value.message
    assert caught.value.at == at


def test_the_answer_of_a_program_is_the_call_as_json() -> None:
    assert execute('f(a="x")') == {"name": "f", "arguments": {"a": "x"}}
    assert execute("[f(), g(b=1)]") == [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"b": 1}}]
