"""Grammars and programs that are small as files and huge in effect end in an answer or an error."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse.errors import LimitExceeded
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.readers.expressions import MAX_SIZE
from support.cli_runner import fewparse

HAN = "".join(chr(0x4E00 + 2 * i) for i in range(9000))


def chain(length: int, rule: str, last: str, start: str) -> str:
    """A grammar in which each rule uses the next one."""
    return start + "".join(rule.format(i, i + 1) for i in range(length)) + last.format(length)


GRAMMARS = {
    "nested counts.lark": "start: /(a{2000}){2000}/",
    "nested optional counts.lark": "start: /(a{0,2000}){0,2000}/",
    "many counts.lark": "start: " + " ".join(f'"a{i}"~1..9000' for i in range(300)),
    "nested ranges of counts.lark": "start: " + "(" * 6 + '"a"' + "~1..50)" * 6,
    "a huge range of counts.lark": 'start: "a"~1..1000000000',
    "a count of 5,000 digits.lark": 'start: "a"~' + "9" * 5000,
    "a regular count of 5,000 digits.lark": "start: /a{" + "9" * 5000 + "}/",
    "a repeated class of many ranges.lark": f"start: /[{HAN}]{{9000}}/",
    "all characters in both cases.lark": "start: " + " ".join([r"/[\U00000001-\U0010ffff]/i"] * 40),
    "deep groups.lark": "start: " + "(" * 100_000 + '"a"' + ")" * 100_000,
    "deep options.lark": "start: " + "[" * 100_000 + '"a"' + "]" * 100_000,
    "deep regular groups.lark": "start: /" + "(" * 100_000 + "a" + ")" * 100_000 + "/",
    "unclosed groups.lark": "start: " + "(" * 100_000,
    "many signs.lark": 'start: "a"' + "?" * 100_000,
    "many regular counts.lark": "start: /a" + "{2}" * 1000 + "/",
    "a long literal.lark": 'start: "' + "a" * 5_000_000 + '"',
    "a long literal in both cases.lark": 'start: "' + "a" * 1_000_000 + '"i',
    "a long regular expression.lark": "start: /" + "a" * 1_000_000 + "/",
    "a chain.lark": chain(5000, "a{}: a{}\n", 'a{}: "x"\n', "start: a0\n"),
    "a chain of brackets.lark": chain(5000, 'a{}: "(" a{} ")"\n', 'a{}: "x"\n', "start: a0\n"),
    "a chain of choices.lark": chain(5000, 'a{0}: a{1} | a{1} "y" |\n', 'a{}: "x"\n', "start: a0\n"),
    "a cycle.lark": chain(5000, 'a{0}: a{1} | "x" a{1}\n', 'a{}: a0 | "x"\n', "start: a0\n"),
    "doubling.lark": chain(2000, "a{0}: a{1} a{1}\n", 'a{}: "x"\n', "start: a0\n"),
    "optional symbols.lark": "start: " + " ".join("[a]" for _ in range(3000)) + " start\na: start",
    "a chain.scfg": chain(5000, "a{0} -> a{1} , a{1}\n", 'a{} -> "x" , "y"\n', "start -> a0 , a0\n"),
    "a chain of spaces.scfg": chain(
        5000, 'a{0} -> a{1} "z" , a{1} "w"\n', 'a{} -> " x" , " y"\n', "start -> a0 , a0\n"
    ),
    "doubling.scfg": chain(2000, "a{0} -> a{1} a{1} , a{1} a{1}\n", 'a{} -> "x" , "y"\n', "start -> a0 , a0\n"),
    "macros.scfg": 'start -> "a" , m0("x")\n' + chain(60, "m{0}(x) 2> m{1}(x) m{1}(x)\n", "m{}(x) 2> x\n", ""),
    "deep macro calls.scfg": 'start -> "a" , ' + "m(" * 30_000 + '"x"' + ")" * 30_000 + "\nm(x) 2> x\n",
    "an ambiguous rule.scfg": 'start -> s , s\ns -> s s , s s\ns -> "x" , "x"\ns -> #e , #e\n',
    "many regular expressions.scfg": "start -> "
    + " ".join(f"/[^a{chr(0x100 + i)}]|{chr(0x200 + i)}/" for i in range(300)),
}
COMMANDS: dict[str, list[str]] = {
    "check": [],
    "stats": [],
    "export": ["--as", "gbnf"],
    "render": ["-n", "2"],
    "tree": ["x"],
    "translate": ["--to", "program"],
}


def run_command(name: str, command: str, folder: Path) -> None:
    path = folder / name
    path.write_text(GRAMMARS[name] + "\n")
    stdin = "x\n" if command == "translate" else ""
    ended = fewparse("grammar", command, str(path), *COMMANDS[command], stdin=stdin)
    assert ended.code in (0, 1, 2), f"{command}: {ended.err[:500]}"


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_grammar_ends_in_an_answer_or_an_error(name: str, tmp_path: Path) -> None:
    run_command(name, list(COMMANDS)[list(GRAMMARS).index(name) % len(COMMANDS)], tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", GRAMMARS)
def test_every_command_ends_in_an_answer_or_an_error(name: str, command: str, tmp_path: Path) -> None:
    run_command(name, command, tmp_path)


PROGRAMS: dict[str, Callable[[], str]] = {
    "deep": lambda: "(" * 100_000 + "x" + ")" * 100_000,
    "deep calls": lambda: "(f " * 100_000 + "x" + ")" * 100_000,
    "deep calls of many functions": lambda: "".join(f"(f{i} " for i in range(20_000)) + "x" + ")" * 20_000,
    "many functions": lambda: "\n".join(f"(f{i} (g{i} x{i}))" for i in range(20_000)),
    "many arguments": lambda: "(f " + "x " * 100_000 + ")",
    "many keywords": lambda: "(f " + " ".join(f":k{i} x" for i in range(50_000)) + ")",
    "many words": lambda: "(f " + "x " * 5_000_000 + ")",
    "a long string": lambda: '(f "' + "x" * 10_000_000 + '")',
    "unclosed": lambda: "(" * 100_000,
}


@pytest.mark.parametrize("merge", ["strict", "typed", "open"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_induction_ends_in_a_grammar_or_an_error(name: str, merge: str, tmp_path: Path) -> None:
    path = tmp_path / "programs.txt"
    path.write_text(PROGRAMS[name]())
    ended = fewparse("grammar", "induce", str(path), "--merge", merge)
    assert ended.code in (0, 1), ended.err[:500]


def test_a_grammar_that_grows_too_large_is_named_with_size_and_limit() -> None:
    with pytest.raises(
        LimitExceeded, match=f"beyond {MAX_SIZE:,} symbols, characters and ranges \\(at `start`\\)"
    ):
        read_grammar(f"start: /[{HAN}]{{9000}}/")
    with pytest.raises(LimitExceeded, match="`start` is nested more than 100 levels deep"):
        read_grammar('start: "a"' + "?" * 1000)


def test_tables_with_odd_cells_are_errors(tmp_path: Path) -> None:
    (tmp_path / "s.scfg").write_text('start -> a , a\na -> "x" , "y"\n')
    tables = ("\0", "f,\0,x", "x" * 5_000_000, "," * 500_000, '"' * 1_000_001, "\n" * 100_000, "f,\\")
    for types, templates in (*((table, "") for table in tables), *(("f,Result", table) for table in tables)):
        (tmp_path / "types.csv").write_text(types)
        (tmp_path / "templates.csv").write_text(templates)
        ended = fewparse("grammar", "stats", str(tmp_path))
        assert ended.code in (0, 1, 2), ended.err[:500]
