"""Domains whose programs are JSON or calls, from the command line: check, parse, eval."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fewparse import load_domain
from fewparse.evaluate.metrics import Judge
from support.cli_runner import QUICK, fewparse
from support.domain_files import write_domain
from support.function_call_items import item_rows

SCHEMA = {
    "type": "object",
    "properties": {
        "item": {"enum": ["tea", "coffee", "cake"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 20},
        "note": {"type": "string", "maxLength": 12},
    },
    "required": ["item", "count"],
    "additionalProperties": False,
}
ORDERS = {
    "two teas please": '{"count": 2, "item": "tea"}',
    "a coffee": '{"item":"coffee","count":1}',
    "three cakes": '{\n "item": "cake",\n "count": 3.0}',
}
TEST = '{"utterance": "two coffees", "program": "{\\"count\\": 2, \\"item\\": \\"coffee\\"}"}\n'
SETTINGS = 'name = "orders"\n[constraint]\nkind = '


def order_domain(folder: Path, kind: str, schema: Any = SCHEMA, orders: dict[str, str] = ORDERS) -> Path:
    """Write a domain of orders in JSON."""
    settings = f'{SETTINGS}"{kind}"\n' + ('schema = "order.schema.json"\n' if kind == "json-schema" else "")
    examples = [{"utterance": utterance, "program": program} for utterance, program in orders.items()]
    files = {"order.schema.json": json.dumps(schema), "test.jsonl": TEST}
    return write_domain(folder / kind, settings, examples, files)


@pytest.mark.parametrize("kind", ["json-schema", "json-object"])
def test_json_is_checked_parsed_and_evaluated(kind: str, tmp_path: Path) -> None:
    folder = str(order_domain(tmp_path, kind))
    checked = fewparse("check", folder)
    assert checked.code == 0
    assert checked.out.startswith("orders: passed (3 examples, 1 held-out examples)\n")
    parsed = json.loads(fewparse("parse", folder, "two coffees", "--json", *QUICK).out)
    program = json.loads(parsed["program"])
    assert parsed["program"] == json.dumps(program, separators=(",", ":"), ensure_ascii=False)
    assert isinstance(program, dict)
    if kind == "json-schema":
        jsonschema.validate(program, SCHEMA)
        assert list(program)[:2] == ["item", "count"]
    evaluated = fewparse("eval", folder, *QUICK)
    assert evaluated.code == 0, evaluated.err
    assert "compared by normal form; the constraint accepts 1 of 1 gold outputs" in " ".join(evaluated.out.split())


@pytest.mark.parametrize(
    ("program", "correct"),
    [
        ('{"count":2.0,"item":"coffee"}', True),
        ('{"item":"coffee","count":2,"note":""}', False),
        ('{"item":"coffee","count":true}', False),
        ('{"item":"coffee"', False),
    ],
)
def test_json_is_compared_by_its_value(program: str, correct: bool, tmp_path: Path) -> None:
    judge = Judge(load_domain(order_domain(tmp_path, "json-object")))
    assert judge.is_correct(program, '{"item":"coffee","count":2}') is correct


def test_an_example_that_is_not_valid_is_an_error_with_line_and_caret(tmp_path: Path) -> None:
    folder = order_domain(tmp_path, "json-schema", orders=ORDERS | {"no tea": '{"item": "tea", "count": 0}'})
    checked = fewparse("check", str(folder))
    assert checked.code == 1
    message, shown, caret, *_ = checked.err.splitlines()
    assert "examples.jsonl:4: the program is not valid under the schema at $.count" in message
    assert shown[caret.index("^")] == "0"


def test_a_schema_that_cannot_be_enforced_is_refused_with_its_place(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"tags": {"type": "array", "contains": {"const": 1}}}}
    checked = fewparse("check", str(order_domain(tmp_path, "json-schema", schema, {"x": "{}"})))
    assert checked.code == 1
    assert "order.schema.json:1:" in checked.err
    assert "#/properties/tags/contains: that an array contains an item cannot be enforced" in checked.err


def test_calls_of_the_dataset_are_checked_and_evaluated(tmp_path: Path) -> None:
    environment = {"FEWPARSE_DATA": str(tmp_path / "data")}
    (tmp_path / "simple.jsonl").write_text("".join(json.dumps(row) + "\n" for row in item_rows(8)))
    imported = fewparse("data", "import", "function-calls", str(tmp_path), env=environment)
    assert imported.code == 0, imported.err
    checked = fewparse("check", "function-calls/simple", env=environment)
    assert (checked.code, checked.err) == (0, "")
    evaluated = fewparse("eval", "function-calls/simple", "--limit", "1", *QUICK, env=environment)
    assert evaluated.code == 0, evaluated.err
    assert "compared by accepted values" in " ".join(evaluated.out.split())
    assert "the constraint accepts 1 of 1 gold outputs" in " ".join(evaluated.out.split())
