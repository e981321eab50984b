"""Every command ends with a result or an error message for a domain folder in which anything was changed."""

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fewparse import FewparseError, Parser
from support import campaign
from support.cli_runner import fewparse
from support.domain_files import write_domain
from support.toy_model import LongContextToyModel

SETTINGS = """\
name = "letters"
description = "letters"
target = "program"
executor = "executor.py:execute"
normal_form = "executor.py:execute"
pool = 3
prompt = "home"
[retrieve]
examples = 2
retriever = "bm25"
order = "best-last"
fold = ["LETTER"]
[constraint]
kind = "grammar"
grammar = "grammar.lark"
dialect = "lark"
strings = "strings.jsonl"
start = "start"
merge = "typed"
scorer = "learned"
copy = []
[search]
decoder = "greedy"
width = 2
temperature = 0.5
rerank = 1.0
vote = true
max_tokens = 12
[tuned]
decoder = "greedy"
"""
FILES = {
    "grammar.lark": 'start: "a" LETTER* "c"\nLETTER: "bb" | "cc"\n',
    "grammar.scfg": 'start -> "x" b , "a" b "c"\nb -> "one" , "bb"\n',
    "home.toml": 'preamble = "P\\n"\nexample = "{utterance}\\t{output}\\n"\nquery = "{utterance}\\t"\n',
    "executor.py": "def execute(program):\n    return program.upper()\n",
    "test.jsonl": '{"utterance": "four", "program": "abbc"}\n',
    "strings.jsonl": '{"program": "abbc", "canonical": "x"}\n',
}
EXAMPLES = [
    {"utterance": u, "program": p, "canonical": u} for u, p in [("one", "ac"), ("two", "abbc"), ("3", "accc")]
]
SECRET = "content of another file"
VALUES = (
    *("0", "1", "-1", "2", "100", "1000000000000", "9223372036854775808", f"0x{'f' * 6000}", "1" * 4000),
    *("0.0", "nan", "inf", "-inf", "1e400", "-0.5", "true", "false", "1979-05-27", "07:32:00"),
    *('""', '" "', '".."', '"."', '"/"', '"/etc/passwd"', '"../x"', '"\\u0000"', '"\\u202e\\u001b[2J"', '"é"'),
    *(
        f'"{"x" * 300}"',
        f'"{"é" * 200}"',
        f'"{"x" * 20_000}"',
        '"a:b"',
        '"os:system"',
        '"x.py:f"',
        '"{utterance!r}"',
    ),
    *('"grammar.lark"', '"grammar.scfg"', '"lark"', '"scfg"', '"beam"', '"speculative"', '"all"', '"embedding"'),
    *(
        '"random"',
        '"lm"',
        '"trie"',
        '"induced"',
        '"none"',
        '"canonical"',
        '"lisp"',
        '"chatml"',
        '"domain"',
        '"LETTER"',
    ),
    *(
        "[]",
        "[1]",
        '["a"]',
        '["LETTER"]',
        '["start", "start"]',
        f"{'[' * 60}{']' * 60}",
        "{}",
        '{ program = "lisp" }',
    ),
    *("{ program = 1 }", "{ program = 5, canonical = 9 }", '{ "" = 1 }', "[{}]", f"{'{a=' * 40}1{'}' * 40}"),
)
TEXTS = (
    *(
        b"",
        b"\n",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"{",
        b"}",
        b'"',
        b"\\",
        b"[[",
        b"\r",
        b"\x1b[2J",
        b"\xc3\xa9",
    ),
    *(
        b"\\ud800",
        b"NaN",
        b"{utterance:>1000000000}",
        b"{utterance.__class__}",
        b"{output}",
        b"{context}",
        b"*",
        b"|",
    ),
    *(
        b"(" * 500,
        b"[" * 5000,
        b"a" * 50_000,
        b"\xe2\x80\xa8",
        b'"utterance": "x", ',
        b"start",
        b"LETTER",
        b": ",
        b"->",
    ),
)


def regular_files(folder: Path) -> list[Path]:
    """Return the files that may be changed: a change of a link would change another file."""
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())


def change_setting(folder: Path, rng: random.Random) -> None:
    """Give one key of domain.toml another value, or another key its value."""
    path = folder / "domain.toml"
    if path not in regular_files(folder):
        return
    lines = path.read_text(errors="replace").splitlines()
    index = rng.randrange(len(lines) or 1)
    if not lines or "=" not in lines[index]:
        lines.insert(
            index, f"{rng.choice(['x', 'name', 'fold', 'start', '[search', '[a.b]'])} = {rng.choice(VALUES)}"
        )
    else:
        key, _, value = lines[index].partition("=")
        lines[index] = f"{key}= {rng.choice(VALUES)}" if rng.random() < 0.9 else f"{key}x ={value}"
    path.write_text("\n".join(lines) + "\n")


def change_bytes(folder: Path, rng: random.Random) -> None:
    """Insert, overwrite or cut bytes of a file."""
    path = rng.choice(regular_files(folder) or [folder / "new"])
    content = path.read_bytes() if path.exists() else b""
    start = rng.randrange(len(content) + 1)
    end = start + rng.choice([0, 0, 1, 3, 1000])
    path.write_bytes(content[:start] + rng.choice(TEXTS) + content[end:])


def change_file(folder: Path, rng: random.Random) -> None:
    """Replace a file by nothing, another file, a folder, a pipe or a link."""
    path = rng.choice(sorted(folder.iterdir()))
    kind = rng.choice(["none", "other", "folder", "pipe", "link", "loop", "repeat"])
    content = path.read_bytes() if path in regular_files(folder) else b""
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()
    if kind == "other":
        path.write_text(rng.choice(list(FILES.values())))
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(folder.parent / "secret")
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "repeat":
        path.write_bytes(content * 3)


CHANGES: tuple[Callable[[Path, random.Random], None], ...] = (
    *(change_setting, change_setting, change_setting),
    *(change_bytes, change_bytes, change_file),
)


@campaign.sizes("count", 60, 3000)
def test_a_changed_folder_gives_a_result_or_an_error_message(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEWPARSE_EXECUTION_SECONDS", "2")
    model = LongContextToyModel()
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    for seed in range(count):
        rng = random.Random(seed)
        folder = write_domain(tmp_path / str(seed), SETTINGS, EXAMPLES, FILES)
        for _ in range(rng.choice([1, 1, 2, 4])):
            rng.choice(CHANGES)(folder, rng)
        code = rng.choice([[], [], ["--allow-code"]])
        for command in (["check", str(folder), "--model", "none", *code], ["grammar", "check", str(folder)]):
            ended = fewparse(*command)
            assert ended.code in (0, 1, 2), f"seed {seed}: {ended.err}"
            assert SECRET not in ended.out + ended.err, f"seed {seed}: content of a file outside the folder"
        try:
            with suppress(FewparseError):
                Parser.from_domain(folder, model, allow_code=bool(code), max_tokens=8).parse("one two")
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(folder)
