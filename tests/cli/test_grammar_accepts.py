"""`fewparse grammar accepts`: schemas, grammar files, domains, and strange lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import fewparse

SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}, "n": {"type": "integer"}}}
CLOSED = SCHEMA | {"required": ["a"], "additionalProperties": False}


def written(folder: Path, content: str | bytes, name: str = "x.schema.json") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def verdicts(source: str, lines: bytes) -> list[Any]:
    ended = fewparse("grammar", "accepts", source, stdin=lines)
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def test_there_is_one_verdict_for_each_line(tmp_path: Path) -> None:
    lines = [
        (b'{"a":"x"}', True),
        (b' {"n" : 1.0, "a": "\xc3\xa9"} ', True),
        (b"", False),
        (b'{"a":""}', False),
        (b'{"a":"x"', False),
        (b'{"a":"x","a":"y"}', False),
        (b"\xff\xfe", False),
        (b'{"a":"a\x00b"}', False),
        (b"NaN", False),
        (b'{"a":"x","n":1e400}', False),
        (b"[" * 50_000, False),
        (b'{"a":"' + b"x" * 20_000 + b'"}', True),
        (b'{"a":"last, without a line break"}', True),
    ]
    found = verdicts(written(tmp_path, json.dumps(CLOSED)), b"\n".join(line for line, _ in lines))
    assert [verdict["accepted"] for verdict in found] == [accepted for _, accepted in lines]
    assert all(verdict["error"] for verdict in found if not verdict["accepted"])


def test_the_place_and_what_is_expected_there_are_reported(tmp_path: Path) -> None:
    (verdict,) = verdicts(written(tmp_path, json.dumps(CLOSED)), b'{"a": "x", "n": true}')
    assert (verdict["position"], verdict["expected"]) == (16, ["integer"])


@pytest.mark.parametrize(
    ("schema", "accepted"), [("true", True), ("{}", True), ('{"not": {"type": "null"}}', False)]
)
def test_schemas_of_all_values(tmp_path: Path, schema: str, accepted: bool) -> None:
    (verdict,) = verdicts(written(tmp_path, schema), b"null\n")
    assert verdict["accepted"] is accepted


@pytest.mark.parametrize(
    "schema",
    [b"false", b"", b"[1", b"\xff", b'{"$ref": "http://example.org/x"}', b'{"$ref": "#"}', b'{"pattern": "("}'],
)
def test_a_schema_that_cannot_be_used_is_an_error(tmp_path: Path, schema: bytes) -> None:
    ended = fewparse("grammar", "accepts", written(tmp_path, schema), stdin="1\n")
    assert (ended.code, ended.out) == (1, "")
    assert "x.schema.json" in ended.err


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (verdict,) = verdicts(written(tmp_path, b'\xef\xbb\xbf{"type": "null"}'), b"null")
    assert verdict["accepted"]


def test_grammar_files_and_domains(tmp_path: Path) -> None:
    grammar = written(tmp_path, 'start: "(go " /[a-z]+/ ")"\n', "g.lark")
    accepted, early = verdicts(grammar, b"(go home)\n(go ")
    assert accepted["accepted"]
    assert (early["accepted"], early["position"]) == (False, 4)
    found = verdicts("calendar", b'(when (meeting "product sync"))\n(when\n')
    assert [verdict["accepted"] for verdict in found] == [True, False]
