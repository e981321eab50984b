"""The guide "add an executor": a function, in a file of a folder or in Python."""

from pathlib import Path
from typing import Any

import pytest

from fewparse import load_domain
from fewparse.errors import ExecutionError
from support.domain_files import write_domain
from support.letters_domain import EXAMPLES, GRAMMAR, SETTINGS

FILE = '''\
"""Execute programs of letters: count them."""

from collections import Counter


def execute(program: str) -> dict[str, int]:
    """Return how often each letter occurs; a program that repeats no letter has no answer."""
    counts = Counter(program)
    if max(counts.values()) == 1:
        raise ValueError("no letter occurs twice")
    return dict(counts)
'''
SETTING = 'executor = "executor.py:execute"'
USE = """\
from fewparse import Domain
from executor import execute

letters = Domain("letters", [("one", "abc"), ("two", "abbc")], 'start: "a" "b"* "c"', executor=execute)
letters.execute("abbc")  # {'a': 1, 'b': 2, 'c': 1}
"""


def in_python(folder: Path) -> Any:
    (folder / "executor.py").write_text(FILE)
    used: dict[str, Any] = {}
    exec(USE, used)
    return used["letters"]


def in_a_folder(folder: Path) -> Any:
    examples = [{"utterance": u, "program": p} for u, p in EXAMPLES]
    name, _, tables = SETTINGS.partition("\n")
    files = {"executor.py": FILE, "grammar.lark": GRAMMAR}
    return load_domain(write_domain(folder, f"{name}\n{SETTING}\n{tables}", examples, files))


@pytest.mark.parametrize("make", [in_python, in_a_folder])
def test_it_answers_programs(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    domain = make(tmp_path)
    assert domain.execute("abbc") == {"a": 1, "b": 2, "c": 1}
    with pytest.raises(ExecutionError, match="no letter occurs twice"):
        domain.execute("abc")
