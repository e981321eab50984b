"""`fewparse new --from-openapi`, `--from-functions`, `--from-json`: functions become calls."""

import json
from pathlib import Path

import pytest

from support.cli_runner import CommandResult, fewparse

TOOLS = [
    {"name": "turn_on", "parameters": {"properties": {"room": {"type": "string", "enum": ["kitchen", "hall"]}}}},
    {"name": "code", "parameters": {"properties": {"pin": {"type": "string", "pattern": "[0-9]{4}"}}}},
]
SPEC = """\
openapi: 3.1.0
info: {title: Lamps, version: "1"}
servers: [{url: "https://lamps.example"}]
paths:
  /lamps/{id}:
    delete: {operationId: remove, parameters: [{name: id, in: path, required: true, schema: {type: integer}}]}
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A file with two tools, one of which needs a pattern."""
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return path


def new(folder: Path, *arguments: str) -> CommandResult:
    """Run `fewparse new`."""
    return fewparse("new", "mine", "--in", str(folder), *arguments)


def execute(folder: Path, program: str) -> CommandResult:
    """Execute a program."""
    return fewparse("execute", str(folder), stdin=f"{program}\n")


def test_a_keyword_that_the_notation_cannot_enforce_is_refused_with_two_ways_out(
    tools: Path, tmp_path: Path
) -> None:
    ended = new(tmp_path / "mine", "--from-json", str(tools))
    assert (ended.code, ended.out) == (1, "")
    assert "code.pin.pattern: a grammar cannot enforce this keyword" in ended.err
    assert "--notation json" in ended.err
    assert "--skip-unsupported" in ended.err
    assert not (tmp_path / "mine").exists()
    skipped = new(tmp_path / "mine", "--from-json", str(tools), "--skip-unsupported")
    assert skipped.code == 0
    assert skipped.err.startswith("warning: left out: code.pin.pattern")
    assert execute(tmp_path / "mine", "code()").out == '{"arguments": {}, "name": "code"}\n'
    in_json = new(tmp_path / "json", "--from-json", str(tools), "--notation", "json", "--several-calls")
    assert (in_json.code, in_json.err) == (0, "")
    assert "several_calls = true" in (tmp_path / "json" / "domain.toml").read_text()


def test_a_new_folder_is_checked_and_parses_without_examples(tools: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    ended = new(folder, "--from-json", str(tools), "--skip-unsupported")
    assert ended.out.splitlines() == [
        f"Created {folder}. Try it:",
        f'  fewparse parse {folder} "what you would say"',
        f"What to do next: {folder / 'README.md'}",
    ]
    checked = fewparse("check", str(folder), "--model", "none")
    assert (checked.code, "mine: passed (0 examples)" in checked.out) == (0, True)
    parsed = fewparse("parse", str(folder), "switch on the light in the hall", "--json", "--decoder", "greedy")
    assert parsed.code == 0
    found = json.loads(parsed.out)
    assert found["answer"]["name"] in ("turn_on", "code")
    assert found["program"].startswith(found["answer"]["name"] + "(")


def test_an_operation_is_answered_by_its_request(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    assert new(tmp_path / "mine", "--from-openapi", str(tmp_path / "spec.yaml")).code == 0
    ended = execute(tmp_path / "mine", "remove(id=7)")
    assert json.loads(ended.out) == {
        "method": "DELETE",
        "url": "https://lamps.example/lamps/7",
        "query": [],
        "headers": {},
        "body": None,
    }


def test_python_functions_run_only_with_execute(tmp_path: Path) -> None:
    assert new(tmp_path / "mine", "--from-functions", "support.assistant:Counter").code == 0
    quick = (str(tmp_path / "mine"), "add three to it", "--json", "--decoder", "greedy")
    without = json.loads(fewparse("parse", *quick).out)
    assert without["program"]
    assert (without["answer"], without["answer_error"]) == (None, None)
    executed = json.loads(fewparse("parse", *quick, "--execute").out)
    assert executed["program"] == without["program"]
    assert executed["answer"] is not None
    assert execute(tmp_path / "mine", "add(number=3)").out == "3\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from-json", "no.json"), "no.json: cannot be read: No such file"),
        (("--from-openapi", "no.yaml"), "no.yaml: cannot be read: No such file"),
        (("--from-functions", "no_such_module:f"), "there is no module no_such_module"),
        (("--from-functions", "json:nothing"), "unknown object of json 'nothing'"),
        (("--from-functions", "math:pi"), "math:pi has no functions"),
        (("--from-json", "a", "--from-openapi", "b"), "--from-openapi and --from-json are given"),
        (("--notation", "call"), "are for domains made from functions"),
        (("--several-calls",), "are for domains made from functions"),
        (("--from-json", "no.json", "--notation", "lisp"), "unknown notation 'lisp'"),
    ],
)
def test_bad_input_is_an_error_and_makes_no_folder(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = new(tmp_path / "mine", *arguments)
    assert ended.code in (1, 2)
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "mine").exists()


def test_an_existing_folder_is_not_changed(tools: Path, tmp_path: Path) -> None:
    ended = fewparse("new", "mine", "--in", str(tmp_path), "--from-json", str(tools))
    assert ended.code == 2
    assert "exists already" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["tools.json"]
