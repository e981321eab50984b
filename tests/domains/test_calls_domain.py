"""Domains of function calls: the folder, the constraint in both notations, examples and execution."""

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fewparse import Domain, Judge, Parser, load_domain
from fewparse.domains.calls.declarations import Declarations, read_declarations
from fewparse.domains.calls.folder import CallsDomain, enforceable
from fewparse.domains.calls.program import read_program
from fewparse.domains.calls.sources import Source, read_source
from fewparse.domains.check import check_domain
from fewparse.errors import DomainError, ExecutionError, FewparseError, UsageError
from fewparse.testing import CONSTRAINT_LAWS
from fewparse.testing.constraints import end_of_walk, random_walk
from fewparse.vocabulary import BYTES
from support.data import DATA
from support.domain_files import to_json_lines
from support.toy_model import LongContextToyModel

POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "get_weather",
        "description": "Weather of a city.",
        "parameters": {
            "type": "dict",
            "properties": {
                "city": {"type": "string", "description": "Its name"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "unit": {"type": "string", "enum": ["C", "F"]},
            },
            "required": ["city"],
        },
    },
    {"name": "get_weather_map", "parameters": {"properties": {"at": POINT, "layers": {"type": "array"}}}},
    {"name": "stop everything", "parameters": {"properties": {"größe": {"type": ["null", "boolean"]}}}},
    {"name": "stop"},
]
FORMS = [(notation, several) for notation in ("call", "json") for several in (False, True)]
every_form = pytest.mark.parametrize(("notation", "several"), FORMS)


def make(folder: Path, tools: Any = TOOLS, notation: Any = "call", several: bool = False) -> Path:
    """Write a domain folder for a list of tools."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tools.json").write_text(json.dumps(tools))
    CallsDomain("tools", read_source("json", str(folder / "tools.json")), notation, several).write(folder / "made")
    return folder / "made"


def with_examples(folder: Path, *programs: str) -> Path:
    """Write examples with these programs."""
    rows = ({"utterance": f"request {i}", "program": program} for i, program in enumerate(programs))
    (folder / "examples.jsonl").write_text(to_json_lines(rows))
    return folder


def check_program(program: str, declarations: Declarations, several: bool) -> None:
    """Check a program as its user would: it parses, names an existing function, and has valid arguments."""
    calls, is_list = read_program(program)
    assert is_list == several
    for call in calls:
        schema = declarations.schema_of(declarations.by_name[call.name])
        assert schema["additionalProperties"] is False
        jsonschema.Draft202012Validator(schema).validate(call.arguments)


@every_form
@pytest.mark.parametrize("law", CONSTRAINT_LAWS, ids=lambda law: law.__name__)
def test_law(law: Any, notation: str, several: bool, tmp_path: Path) -> None:
    domain = load_domain(make(tmp_path, TOOLS, notation, several))
    for seed in range(2):
        law(domain.constraint(BYTES, "program"), seed)


@every_form
def test_random_walks_end_in_valid_calls(notation: str, several: bool, tmp_path: Path) -> None:
    folder = make(tmp_path, TOOLS, notation, several)
    constraint = load_domain(folder).constraint(BYTES, "program")
    declarations = read_declarations(folder / "functions.json")
    reached = set()
    for seed in range(40):
        last = end_of_walk(constraint, random.Random(seed))
        check_program(last.text.decode(), declarations, several)
        reached |= {call.name for call in read_program(last.text.decode())[0]}
    assert reached == set(declarations.by_name)


@every_form
def test_an_output_is_completed_from_everywhere(notation: str, several: bool, tmp_path: Path) -> None:
    folder = make(tmp_path, TOOLS, notation, several)
    constraint = load_domain(folder).constraint(BYTES, "program")
    declarations = read_declarations(folder / "functions.json")
    walk = list(random_walk(constraint, random.Random(3)))
    for step in walk:
        ending = constraint.ending(step.text)
        assert ending is not None
        check_program((step.text + ending).decode(), declarations, several)


def test_the_grammar_and_the_constraint_accept_the_same_programs(tmp_path: Path) -> None:
    domain = load_domain(make(tmp_path, TOOLS, "call", several=True))
    constraint = domain.constraint(BYTES, "program")
    assert constraint.accepts(b'[get_weather(city="Paris", days=3), stop()]')
    for text in (
        "stop()",
        "[]",
        "[stop(),stop()]",
        "[stop(x=1)]",
        "[get_weather(days=3)]",
        '[get_weather(city="a", days=15)]',
    ):
        assert not constraint.accepts(text.encode())
    assert check_domain(domain).passed
    assert domain.language is not None


def test_the_folder_has_settings_functions_and_no_examples(tmp_path: Path) -> None:
    folder = make(tmp_path)
    names = {"domain.toml", "functions.json", "examples.jsonl", "README.md"}
    assert {path.name for path in folder.iterdir()} == names
    assert r'"program": "get_weather(city=\"\")"' in (folder / "README.md").read_text()
    domain = load_domain(folder)
    domain.check()
    assert domain.examples == ()
    assert domain.description().split("\n")[:2] == [
        "Write a call as name(argument=value), with values as in JSON.",
        'get_weather(city: string, days?: integer, unit?: "C" | "F") - Weather of a city. city: Its name',
    ]
    parse = Parser.from_domain(domain, LongContextToyModel(), max_tokens=60).parse("what is the weather")
    assert parse.program is not None
    check_program(parse.program, read_declarations(folder / "functions.json"), several=False)
    assert parse.answer == {"name": read_program(parse.program)[0][0].name, "arguments": parse.answer["arguments"]}
    assert "get_weather(city: string" in parse.prompt.text


@every_form
def test_examples_in_either_notation_are_written_as_the_domain_does(
    notation: str, several: bool, tmp_path: Path
) -> None:
    folder = make(tmp_path, TOOLS, notation, several)
    written = {"name": "get_weather", "arguments": {"unit": "C", "city": "Paris"}}
    with_examples(folder, json.dumps(written), 'get_weather( unit="C" ,city="Paris")')
    domain = load_domain(folder)
    assert len({example.program for example in domain.examples}) == 1
    program = domain.examples[0].program
    assert domain.constraint(BYTES, "program").accepts(program.encode())
    expected = {
        ("call", False): 'get_weather(city="Paris", unit="C")',
        ("call", True): '[get_weather(city="Paris", unit="C")]',
        ("json", False): '{"name":"get_weather","arguments":{"city":"Paris","unit":"C"}}',
        ("json", True): '[{"name":"get_weather","arguments":{"city":"Paris","unit":"C"}}]',
    }
    assert program == expected[notation, several]
    assert check_domain(domain).passed


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("get_weather(", "has no name before `=`"),
        ("get_wether()", "calls 'get_wether', which is not a function of the domain"),
        ("get_weather()", "'city' is a required property"),
        ('get_weather(city="a", town="b")', "'town' was unexpected"),
        ('get_weather(city="a", days=15)', "15 is greater than the maximum of 14"),
        ("[stop(), stop()]", "has several calls, and the domain allows one"),
        ('get_weather(city="\\ud800")', "lone surrogate"),
    ],
)
def test_an_invalid_example_is_reported_with_its_line(program: str, message: str, tmp_path: Path) -> None:
    folder = with_examples(make(tmp_path), "stop()", program)
    with pytest.raises(DomainError) as caught:
        load_domain(folder)
    assert message in caught.value.message
    assert caught.value.line == 2


@every_form
def test_what_can_be_generated_is_its_own_canonical_program(notation: str, several: bool, tmp_path: Path) -> None:
    domain = load_domain(make(tmp_path, TOOLS, notation, several))
    constraint = domain.constraint(BYTES, "program")
    for seed in range(10):
        last = end_of_walk(constraint, random.Random(seed))
        canonical = domain.constraint_kind.canonical_program(last.text.decode())
        assert constraint.accepts(canonical.encode())
        assert domain.constraint_kind.canonical_program(canonical) == canonical


def test_texts_can_be_copied_from_the_utterance(tmp_path: Path) -> None:
    folder = make(tmp_path)
    settings = folder / "domain.toml"
    settings.write_text(settings.read_text().replace('# copy = ["TEXT"]', 'copy = ["TEXT"]'))
    domain = load_domain(folder)
    domain.check()
    constraint = domain.constraint(BYTES, "program", 'weather in "New York" please')
    for city, copied in (("New York", True), ("York", True), ("Paris", False), ("New Yo", False)):
        assert constraint.accepts(f'get_weather(city="{city}")'.encode()) is copied
    assert constraint.accepts(b"stop()")
    assert constraint.accepts(b'get_weather(city="\\"New York\\"")')
    settings.write_text(settings.read_text().replace('notation = "call"', 'notation = "json"'))
    with pytest.raises(UsageError, match="notation `json` has no rules"):
        load_domain(folder).check()


def test_a_keyword_that_cannot_be_enforced_is_refused_with_its_path_or_left_out(tmp_path: Path) -> None:
    pattern, unique = {"type": "string", "pattern": "a+"}, {"type": "array", "items": {}, "uniqueItems": True}
    odd = [
        {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}, "b": pattern}}},
        {"name": "g", "parameters": {"properties": {"a": pattern}, "required": ["a"]}},
        {"name": "h", "parameters": {"properties": {"a": unique}, "required": ["a"]}},
        {"name": "i", "parameters": {"properties": {"a": {"enum": []}}, "required": ["a"]}},
    ]
    (tmp_path / "tools.json").write_text(json.dumps(odd))
    declarations = read_declarations(tmp_path / "tools.json")
    with pytest.raises(FewparseError, match=r"^f\.b\.pattern: "):
        enforceable(declarations, "call", skip=False)
    kept, left_out = enforceable(declarations, "call", skip=True)
    assert [(function.name, list(function.arguments)) for function in kept.functions] == [("f", ["a"])]
    assert [reason.split(": ")[0] for reason in left_out] == ["f.b.pattern", "g.a.pattern", "h.a.uniqueItems", "i"]
    in_json, _ = enforceable(declarations, "json", skip=True)
    assert [(f.name, list(f.arguments)) for f in in_json.functions if f.name != "h"] == [
        ("f", ["a", "b"]),
        ("g", ["a"]),
    ]
    only = Declarations(declarations.functions[1:2], declarations.definitions)
    with pytest.raises(UsageError, match="no function can be used"):
        enforceable(only, "call", skip=True)


def test_parameters_may_have_alternatives(tmp_path: Path) -> None:
    properties = {"id": {"type": "integer"}, "name": {"type": "string"}, "all": {"type": "boolean"}}
    either = [{"required": ["id"]}, {"required": ["name"]}]
    tools = [{"name": "find", "parameters": {"type": "object", "properties": properties, "anyOf": either}}]
    constraint = load_domain(make(tmp_path, tools)).constraint(BYTES, "program")
    for text in ("find(id=1)", 'find(name="x")', 'find(id=1, name="x", all=true)'):
        assert constraint.accepts(text.encode())
    for text in ("find()", "find(all=true)"):
        assert not constraint.accepts(text.encode())


def test_python_functions_run_only_on_request(tmp_path: Path) -> None:
    source = read_source("functions", "support.assistant:note")
    CallsDomain("notes", source).write(tmp_path / "notes")
    domain = load_domain(with_examples(tmp_path / "notes", 'note(text="x")'))
    assert not domain.executes
    assert check_domain(domain).passed
    judge = Judge(domain)
    assert judge.criterion == "normal form"
    assert judge.is_correct('note( text = "x" )', 'note(text="x")')
    assert not judge.is_correct('note(text="y")', 'note(text="x")')
    notes = Path(__file__).parents[1] / "support" / "notes.txt"
    assert not notes.exists()
    try:
        assert domain.execute('note(text="written")') == str(notes)
        assert notes.read_text() == "written"
    finally:
        notes.unlink(missing_ok=True)
    with pytest.raises(ExecutionError, match="text"):
        domain.execute("note()")


def test_an_operation_is_answered_by_its_request(tmp_path: Path) -> None:
    paths = {"/pets/{id}": {"delete": {"operationId": "drop", "parameters": [PARAMETER]}}}
    (tmp_path / "spec.json").write_text(
        json.dumps({"openapi": "3.1.0", "info": {"title": "Pets"}, "paths": paths})
    )
    CallsDomain("pets", read_source("openapi", str(tmp_path / "spec.json"))).write(tmp_path / "pets")
    domain = load_domain(tmp_path / "pets")
    assert domain.table.description.startswith("Pets. Write a call")
    assert domain.execute("drop(id=3)")["url"] == "/pets/3"
    assert Judge(domain).is_correct("drop( id=3 )", "drop(id=3)")


PARAMETER = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}


def test_a_description_with_odd_characters_is_valid_in_the_settings(tmp_path: Path) -> None:
    odd = 'quotes " and \\ and \x7f and \x00 and\nlines and 日本'
    source = read_source("functions", "support.assistant:wait")
    CallsDomain("odd", Source("json", "x", source.declarations, odd)).write(tmp_path / "odd")
    assert "日本" in load_domain(tmp_path / "odd").table.description


def test_a_thousand_functions_are_possible(tmp_path: Path) -> None:
    parameters = {
        "properties": {f"argument_{i}": {"type": "string"} for i in range(6)},
        "required": ["argument_3"],
    }
    tools = [{"name": f"function_{i}", "description": "d " * 20, "parameters": parameters} for i in range(1000)]
    domain = load_domain(make(tmp_path, tools))
    domain.check()
    constraint = domain.constraint(BYTES, "program")
    assert constraint.start().mask().sum() == 1
    assert constraint.accepts(b'function_999(argument_0="a", argument_3="b")')
    assert not constraint.accepts(b'function_999(argument_0="a")')
    parser = Parser.from_domain(domain, LongContextToyModel(), max_tokens=60)
    assert len(parser.prompt("call function 7")[1].messages[0].content.split("\n")) <= 32


@pytest.mark.parametrize("name", ["simple", "multiple"])
def test_the_functions_of_the_benchmark_are_enforced(name: str, tmp_path: Path) -> None:
    path = DATA / "function-calls" / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip("the function calls were not found: set FEWPARSE_DATA")
    items = [json.loads(line) for line in path.read_text().splitlines()]
    for item in items:
        (tmp_path / "tools.json").write_text(json.dumps(item["functions"]))
        declarations = read_declarations(tmp_path / "tools.json")
        assert enforceable(declarations, "call", skip=False) == (declarations, [])
    for number, item in enumerate(items[:: len(items) // 10]):
        domain = load_domain(make(tmp_path / str(number), item["functions"], ("call", "json")[number % 2]))
        declarations = domain_declarations(domain)
        last = end_of_walk(domain.constraint(BYTES, "program"), random.Random(number))
        check_program(last.text.decode(), declarations, several=False)


def domain_declarations(domain: Domain) -> Declarations:
    """Return the functions of a domain."""
    return read_declarations(domain.folder / "functions.json")


@pytest.mark.parametrize("notation", ["call", "json"])
def test_a_call_with_invalid_arguments_is_not_executed(notation: str, tmp_path: Path) -> None:
    domain = load_domain(make(tmp_path, notation=notation))
    assert domain.execute('get_weather(city="Bern", days=14)')["arguments"] == {"city": "Bern", "days": 14}
    with pytest.raises(ExecutionError, match=r"at \$\.days: 15 is greater than the maximum of 14"):
        domain.execute('get_weather(city="Bern", days=15)')
    with pytest.raises(ExecutionError, match="'get_wether', which is not a function") as caught:
        domain.execute('get_wether(city="Bern")')
    assert "get_weather" in str(caught.value)
