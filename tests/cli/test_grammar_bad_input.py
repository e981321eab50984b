"""Unusual grammars and texts give a result or a clear error, within the limits."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support.campaign import sizes
from support.cli_runner import QUICK, fewparse
from support.domain_files import write_domain

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
        translation: dict[str, object] = json.loads(line)
        return translation

    return translate


def test_a_cycle_has_infinitely_many_derivations_and_a_best_one(to_program: Translate) -> None:
    translation = to_program(CYCLE, "a")
    assert (translation["output"], translation["alternatives"]) == ("a", ["(a)", "((a))"])
    assert translation["derivations"] is None


def test_ten_thousand_characters_are_translated_with_left_recursion(to_program: Translate) -> None:
    text = "abcdefghij" * 1_000
    assert to_program(LEFT, text)["output"] == text


def test_ten_thousand_characters_exceed_the_limit_with_right_recursion(to_program: Translate) -> None:
    translation = to_program(RIGHT, "a" * 10_000)
    assert translation["output"] is None
    assert "more than 2000000 steps" in str(translation["error"])


def test_a_text_with_billions_of_derivations_is_translated(to_program: Translate) -> None:
    translation = to_program(SPLITS, "a" * 20)
    assert translation["output"] == "(" * 19 + "b" + "b)" * 19
    assert translation["derivations"] == 1767263190


def test_a_text_that_is_far_too_ambiguous_is_an_error(to_program: Translate) -> None:
    translation = to_program(SPLITS, "a" * 1_000)
    assert translation["output"] is None
    assert translation["error"]


@sizes("count", default=20_000, campaign=100_000)
def test_a_grammar_of_many_thousand_rules_is_used(to_program: Translate, count: int) -> None:
    rules = "".join(f'start -> "word {i}" , "(w{i})"\n' for i in range(count))
    assert to_program(rules, "word 17777")["output"] == "(w17777)"


INVALID: dict[str, tuple[bytes, str]] = {
    "a line of a megabyte": (b'start -> "' + b"x" * 1_000_000 + b'"\n', "at most 1,000,000 are allowed"),
    "not UTF-8": (b'start -> "\xff"\n', "not UTF-8 text (byte 11)"),
    "a bad regex": (b"start -> /[a-/\n", "grammar.scfg:1:"),
    "no start": (b'begin -> "a"\n', "start"),
    "an empty file": (b"", "start"),
    "nothing but a loop": (b'start -> "a" start\n', "the start symbol derives no text"),
}


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_grammar_is_an_error(kind: str, tmp_path: Path) -> None:
    source, message = INVALID[kind]
    path = tmp_path / "grammar.scfg"
    path.write_bytes(source)
    ended = fewparse("grammar", "check", str(path))
    assert ended.code == 1
    assert message in ended.out + ended.err


def test_a_parse_warns_of_names_that_type_tables_leave_without_productions(tmp_path: Path) -> None:
    settings = 'name = "half"\n[constraint]\ngrammar = "rules"\ndialect = "scfg"\n'
    (tmp_path / "rules").mkdir()
    grammar = 'start -> "yes"\nstart -> "no " reason\n'
    files = {"rules/start.scfg": grammar, "rules/types.csv": "", "rules/templates.csv": ""}
    write_domain(tmp_path, settings, [{"utterance": "sure", "program": "yes"}], files)
    ended = fewparse("parse", str(tmp_path), "of course", *QUICK)
    assert (ended.code, ended.out) == (0, "of course\n  yes\n")
    assert "warning: the grammar uses names without productions: reason\n" in ended.err
