"""Python functions: their type hints become schemas, and calls are executed with converted arguments."""

import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fewparse.domains.calls.declarations import Declarations
from fewparse.domains.calls.docstrings import read_docstring
from fewparse.domains.calls.grammar import function_grammar
from fewparse.domains.calls.python_functions import PythonCalls, module_folder, read_python
from fewparse.domains.calls.signatures import describe
from fewparse.errors import FewparseError, SourceError, UnknownName, UsageError

MODULE = "support.assistant"
WEATHER = (
    'get_weather(place: {"city": string, "country"?: string}, day: string (date), unit?: "C" | "F", '
    'tags?: string[] | null, style?: {"verbose"?: boolean, "words"?: integer} | null, kind?: "short" | "long") - '
    "Get the weather. place: Where it is; day: When it is, on which day; tags: What to mention"
)
WAIT = "wait(seconds: number) - Wait. seconds: how long"


def lines(name: str) -> list[str]:
    """Return the descriptions of the functions of an object."""
    return describe(read_python(name)[0]).split("\n")


def test_type_hints_and_docstrings_become_declarations() -> None:
    assert lines(f"{MODULE}:get_weather") == [WEATHER]
    assert lines(f"{MODULE}:wait") == [WAIT]
    assert lines(f"{MODULE}:plant") == [
        'plant(tree: {"value": integer, "children"?: Node[]}, where: array) - Plant a tree. tree: What to plant; '
        "where: A number and a letter"
    ]
    assert lines(f"{MODULE}:ask") == ["ask(question: any, loud?: any)"]
    assert lines(f"{MODULE}:note") == [
        "note(text: string) - Write a note next to this module, which is an effect."
    ]


@pytest.mark.parametrize(
    ("name", "functions"),
    [
        ("", ["get_weather", "wait", "plant", "note", "ask"]),
        (":Counter", ["add", "hello"]),
        (":counter", ["add", "hello"]),
        (":counter.add", ["add"]),
        (":FUNCTIONS", ["get_weather", "wait"]),
        (":BY_NAME", ["weather", '"hold on"']),
    ],
)
def test_an_object_has_functions(name: str, functions: list[str]) -> None:
    assert [line.partition("(")[0] for line in lines(MODULE + name)] == functions


def test_the_schemas_are_those_of_pydantic_and_can_be_enforced() -> None:
    declarations = read_python(MODULE)[0]
    for function in declarations.functions:
        function_grammar(function, declarations)
    weather = schema_of(declarations, "get_weather")
    valid = {"place": {"city": "Paris"}, "day": "2024-02-29", "style": {"words": 3}, "tags": ["a", "a"]}
    jsonschema.validate(valid, weather)
    for change in ({"place": "Paris"}, {"style": {"words": 99}}, {"kind": "medium"}, {"unit": "K"}, {"else": 1}):
        assert not jsonschema.Draft202012Validator(weather).is_valid({**valid, **change})
    assert not jsonschema.Draft202012Validator(schema_of(declarations, "note")).is_valid({"text": "x", "more": 1})


def schema_of(declarations: Declarations, name: str) -> dict[str, Any]:
    """Return the schema of the arguments of a function."""
    return declarations.schema_of(declarations.by_name[name])


def test_calls_have_converted_arguments_and_json_results() -> None:
    call = PythonCalls(MODULE)
    assert call('get_weather(place={"city": "Rome"}, day="2024-02-29", unit="F", tags=["b", "a"])') == {
        "place": {"city": "Rome", "country": "FR"},
        "day": "2024-02-29",
        "unit": "F",
        "tags": ["a", "b"],
        "style": None,
        "kind": "short",
    }
    assert call('[ask(question="hi", loud=true), wait(seconds=0.5)]') == ["HI", 0.5]
    tree = '{"value": 1, "children": [{"value": 2}]}'
    assert call(f'plant(tree={tree}, where=[1, "a"])') == {
        "value": 1,
        "children": [{"value": 2, "children": []}],
    }
    counter = PythonCalls(f"{MODULE}:Counter")
    assert [counter("add(number=2)"), counter("add()"), counter('hello(name="x")')] == [2, 3, "hello x"]
    with pytest.raises(ValueError, match="there is no function nothing"):
        call("nothing()")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.such.module:f", "there is no module no.such.module"),
        ("support.no_such_module", "there is no module support.no_such_module"),
        ("my file.py:f", "'my file.py' is not the name of a module"),
        ("tools.py:f", "'tools.py' is not the name of a module"),
        ("", "'' is not the name of a module"),
        (f"{MODULE}:NUMBER", "NUMBER has no functions"),
        (f"{MODULE}:NeedsArguments", "cannot be made without arguments"),
        (f"{MODULE}:LAMBDAS", "has no name"),
    ],
)
def test_an_object_without_functions_is_a_usage_error(name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_python(name)
    assert message in caught.value.message


def test_an_unknown_object_is_reported_with_the_nearest_names() -> None:
    with pytest.raises(UnknownName, match="get_weather"):
        read_python(f"{MODULE}:get_wether")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("several", "several: the parameter *numbers: int cannot be passed by name"),
        ("positional", "positional: the parameter number: int cannot be passed by name"),
        ("custom", "custom: a parameter has no JSON Schema"),
        ("callback", "callback: "),
        ("TWICE", "'wait': two functions have this name"),
    ],
)
def test_a_function_that_cannot_be_declared_is_an_error(name: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_python(f"{MODULE}:{name}")
    assert message in caught.value.message


@pytest.mark.parametrize(
    "source", ["1 / 0", "raise SystemExit(3)", "import no_such_module_at_all", "def f(:", "exit()"]
)
def test_a_module_that_fails_is_a_usage_error(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "failing_module.py").write_text(source)
    with pytest.raises(UsageError, match="the module failing_module cannot be imported"):
        read_python("failing_module")


def test_a_module_of_the_working_directory_is_found_and_its_folder_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    package = tmp_path / "my_tools" / "deep"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def f(x: int): ...")
    (package / "more.py").write_text("from json import dumps\ndef g(): ...\ndef _h(): ...")
    assert lines("my_tools.deep") == ["f(x: integer)"]
    assert lines("my_tools.deep.more") == ["g()"]
    assert module_folder("my_tools.deep:f") == module_folder("my_tools.deep.more") == tmp_path
    assert module_folder("json") is None


def test_functions_that_cannot_be_declared_are_left_out_on_request() -> None:
    sys.modules["support.assistant"].MIXED = [several_of(), *functions()]  # type: ignore[attr-defined]
    declarations, left_out = read_python(f"{MODULE}:MIXED", skip=True)
    assert [function.name for function in declarations.functions] == ["get_weather", "wait"]
    assert "cannot be passed by name" in left_out[0]


def several_of() -> Any:
    """Return a function that cannot be declared."""
    return sys.modules[MODULE].several


def functions() -> list[Any]:
    """Return functions that can be declared."""
    found: list[Any] = sys.modules[MODULE].FUNCTIONS
    return found


def test_docstrings_of_all_styles_are_read() -> None:
    google = (
        "Do it\nwell.\n\nMore.\n\nArgs:\n    a: First\n        part.\n    *b (int): Second.\n\nReturns:\n    c: d"
    )
    assert read_docstring(google) == ("Do it well.", {"a": "First part.", "b": "Second."})
    numpy = (
        "Do it.\n\nParameters\n----------\na : int\n    First\n    part.\nb\n    Second.\n\nReturns\n-------\nc"
    )
    assert read_docstring(numpy) == ("Do it.", {"a": "First part.", "b": "Second."})
    sphinx = "Do it.\n:param a: First\n   part.\n:param int b: Second.\n:returns: c"
    assert read_docstring(sphinx) == ("Do it.", {"a": "First part.", "b": "Second."})
    assert read_docstring("") == ("", {})


def test_a_wrong_argument_of_a_call_is_an_error_of_the_program() -> None:
    with pytest.raises(Exception, match="place"):
        PythonCalls(MODULE)('get_weather(day="2024-01-01")')
    with pytest.raises(FewparseError):
        PythonCalls(MODULE)("get_weather(")
