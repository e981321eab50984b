"""`fewparse execute`: programs to denotations, without a model."""

from pathlib import Path

import pytest

from support.cli_runner import CommandResult, fewparse, without_model
from support.domain_files import trusted_starter

ASK, NOTE = "(ask (radio kitchen))", '(note "x")'


def with_executor(folder: Path, source: str) -> Path:
    trusted_starter(folder)
    (folder / "executor.py").write_text(source)
    return folder


def test_each_program_gets_one_line_with_its_denotation(tmp_path: Path) -> None:
    ended = fewparse("execute", "starter", stdin=f"{ASK}\n{NOTE}\n", env=without_model(tmp_path))
    assert ended == CommandResult(0, 'on\n{"noted": "x"}\n', "")


def test_a_program_that_fails_has_an_error_line_in_its_place_and_the_exit_code_is_1() -> None:
    ended = fewparse("execute", "starter", stdin=f"{ASK}\n(nonsense)\n{NOTE}")
    assert ended.out.splitlines() == ["on", "error: not a program of this language: (nonsense)", '{"noted": "x"}']
    assert (ended.code, ended.err) == (1, "")


def test_a_line_that_is_not_utf8_has_an_error_line_in_its_place() -> None:
    ended = fewparse("execute", "starter", stdin=b"\xff\n" + ASK.encode())
    assert ended.out.splitlines() == ["error: not UTF-8 text (byte 1 of the line)", "on"]
    assert ended.code == 1


def test_empty_input_succeeds_without_output() -> None:
    assert fewparse("execute", "calendar") == CommandResult(0, "", "")


def test_line_breaks_in_a_denotation_become_spaces(tmp_path: Path) -> None:
    folder = with_executor(tmp_path / "lines", 'def execute(program): return "one\\ntwo"\n')
    assert fewparse("execute", str(folder), stdin="x\ny\n").out == "one two\none two\n"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("{1, 2}", "Object of type set is not JSON serializable"),
        ("float('nan')", "Out of range float values are not JSON compliant"),
        ("1 / 0", "division by zero"),
        ("execute(program)", "maximum recursion depth exceeded"),
    ],
)
def test_any_error_of_an_executor_is_an_error_line(answer: str, problem: str, tmp_path: Path) -> None:
    folder = with_executor(tmp_path / "wrong", f"def execute(program): return {answer}\n")
    ended = fewparse("execute", str(folder), stdin="x\n")
    assert ended.out.startswith(f"error: {problem}")
    assert ended.code == 1


def test_the_error_without_an_executor_shows_the_setting(tmp_path: Path) -> None:
    folder = trusted_starter(tmp_path / "without-executor")
    settings = (folder / "domain.toml").read_text()
    (folder / "domain.toml").write_text(settings.replace("executor =", "# executor ="))
    ended = fewparse("execute", str(folder), stdin="x\n")
    assert (ended.code, ended.out) == (2, "")
    assert "the domain starter has no executor" in ended.err
    assert 'executor = "executor.py:execute"' in ended.err
