"""Grammars and texts that no one should write, and someone will: an answer or a clear error, within bounds."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli_runner import QUICK, fewparse

RIGHT = "start -> /[a-z]/ start\nstart -> /[a-z]/\n"
LEFT = "start -> start /[a-z]/\nstart -> /[a-z]/\n"
CYCLE = 'start -> start , "(" start ")"\nstart -> "a"\n'
SPLITS = 'start -> start start , "(" start start ")"\nstart -> "a" , "b"\n'
Translate = Callable[[str, str], dict[str, object]]


@pytest.fixture
def to_program(tmp_path: Path) -> Translate:
    def translate(grammar: str, text: str) -> dict[str, object]:
        path = tmp_path / "grammar.scfg"
        path.write_text(grammar)
        ended = fewparse("grammar", "translate", str(path), "--to", "program", "--alternatives", "2", stdin=text)
        assert ended.code == 0, ended.err
        (line,) = ended.out.splitlines()
        answer: dict[str, object] = json.loads(line)
        return answer

    return translate


def test_a_cycle_has_no_end_of_derivations_and_a_best_one(to_program: Translate) -> None:
    answer = to_program(CYCLE, "a")
    assert (answer["output"], answer["alternatives"]) == ("a", ["(a)", "((a))"])
    assert answer["derivations"] is None


def test_ten_thousand_characters_are_answered_where_recursion_is_left(to_program: Translate) -> None:
    text = "abcdefghij" * 1_000
    assert to_program(LEFT, text)["output"] == text


@pytest.mark.slow
def test_ten_thousand_characters_are_refused_where_recursion_is_right(to_program: Translate) -> None:
    answer = to_program(RIGHT, "a" * 10_000)
    assert answer["output"] is None
    assert "more than 2000000 steps" in str(answer["error"])


def test_billions_of_derivations_are_answered(to_program: Translate) -> None:
    answer = to_program(SPLITS, "a" * 20)
    assert answer["output"] == "(" * 19 + "b" + "b)" * 19
    assert answer["derivations"] == 1767263190


@pytest.mark.slow
def test_what_is_far_too_ambiguous_is_refused(to_program: Translate) -> None:
    answer = to_program(SPLITS, "a" * 1_000)
    assert answer["output"] is None
    assert answer["error"]


@pytest.mark.slow
def test_a_hundred_thousand_rules_are_used(to_program: Translate) -> None:
    rules = "".join(f'start -> "word {i}" , "(w{i})"\n' for i in range(100_000))
    assert to_program(rules, "word 77777")["output"] == "(w77777)"


WRONG: dict[str, tuple[bytes, str]] = {
    "a line of a megabyte": (b'start -> "' + b"x" * 1_000_000 + b'"\n', "at most 1,000,000 are allowed"),
    "not UTF-8": (b'start -> "\xff"\n', "not UTF-8 text (byte 11)"),
    "a bad regex": (b"start -> /[a-/\n", "grammar.scfg:1:"),
    "no start": (b'begin -> "a"\n', "start"),
    "an empty file": (b"", "start"),
    "nothing but a loop": (b'start -> "a" start\n', "no text at all is derived"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_grammar_that_cannot_be_used_is_refused(wrong: str, tmp_path: Path) -> None:
    source, said = WRONG[wrong]
    path = tmp_path / "grammar.scfg"
    path.write_bytes(source)
    ended = fewparse("grammar", "check", str(path))
    assert ended.code == 1
    assert said in ended.out + ended.err


def test_a_parse_warns_of_names_without_productions(tmp_path: Path) -> None:
    (tmp_path / "domain.toml").write_text('name = "half"\n[constraint]\ngrammar = "grammar.scfg"\n')
    (tmp_path / "grammar.scfg").write_text('start -> "yes"\nstart -> "no " reason\n')
    (tmp_path / "examples.jsonl").write_text('{"utterance": "sure", "program": "yes"}\n')
    ended = fewparse("parse", str(tmp_path), "of course", *QUICK)
    assert (ended.code, ended.out) == (0, "of course\n  yes\n")
    assert "warning: the grammar uses names without productions: reason\n" in ended.err
