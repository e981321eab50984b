"""Typical mistakes of the first hour: the message says what is wrong and where, and what to do next.

All are found before a model is loaded, except a number that the grammar cannot say, which only a parse shows.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from fewparse.cli.domain import make_domain
from fewparse.domains.trust import trust_folder
from support.cli_runner import CommandResult, fewparse, without_model
from support.domain_files import trusted_starter

KITCHEN = "turn on the lamp in the kitchen"
PARSE, CHECK = ("parse", "./home", KITCHEN), ("check", "./home", "--model", "none")
LAMP = '{"utterance": "lamp on in the hall", "program": "(set (lamp hall) on)"}\n'
IF = '{"utterance": "if the lamp is on, stop the radio", "program": "(if (on lamp) (stop radio))"}\n'
OTHER = '{"utterance": "if the radio stops, lamp on", "program": "(if (stop radio) (on lamp))"}\n'
CALL = '{"utterance": "lamp on", "program": "lamp.on(hall)"}\n'
WRONG = '{"utterance": "lamp on", "program": "(set (lamp hal) on)"}\n'
SCFG = """\
start -> "turn " state " the " devise , "(set " devise " " state ")"
device -> "lamp"
state -> "on" | "off" , "on"
"""
INDUCED = ('kind = "grammar"', 'kind = "induced"')


class Mistake(NamedTuple):
    """A command, what its message contains, and what is written to files of a folder ./home before.

    A change is the new content of a file, a replacement in it, or None to delete it.
    """

    command: tuple[str, ...]
    messages: tuple[str, ...]
    changes: dict[str, str | tuple[str, str] | None] = {}  # noqa: RUF012 -- read only
    code: int = 1


MISTAKES = {
    # Names of domains, folders, models, targets, settings.
    "a misspelt path": Mistake(
        ("parse", "./hom", KITCHEN), ("error: there is no folder './hom'\n", "Did you mean ./home?"), code=2
    ),
    "a misspelt folder": Mistake(
        ("parse", "hom", KITCHEN), ("unknown domain 'hom'", "Did you mean ./home?"), code=2
    ),
    "a misspelt domain": Mistake(
        ("parse", "calender", KITCHEN),
        ("unknown domain 'calender'", "Did you mean calendar or overnight/"),
        code=2,
    ),
    "a file instead of its folder": Mistake(
        ("parse", "./home/domain.toml", KITCHEN),
        ("./home/domain.toml is not a folder", "the folder that contains its domain.toml"),
        code=2,
    ),
    "a misspelt model": Mistake(
        (*PARSE, "--model", "embeded"), ("unknown model 'embeded'", "Did you mean embedded[:NAME]?"), code=2
    ),
    "a misspelt target": Mistake(
        (*PARSE, "--target", "progam"), ("unknown target 'progam'", "Did you mean program?"), code=2
    ),
    "a target that the grammar does not have": Mistake(
        (*PARSE, "--target", "canonical"), ("lacks canonical utterances", "Use the target `program`"), code=2
    ),
    "a misspelt setting": Mistake(
        PARSE,
        ("domain.toml:", ": unknown key `search.widht`\n    widht = 5", "Did you mean width?"),
        {"domain.toml": ("width = ", "widht = ")},
    ),
    "a misspelt kind of constraint": Mistake(
        PARSE,
        ("domain.toml:", "`constraint.kind`: unknown constraint 'gramar'", "Did you mean grammar?"),
        {"domain.toml": ('kind = "grammar"', 'kind = "gramar"')},
    ),
    "a misspelt prompt": Mistake(
        PARSE,
        ("unknown prompt 'lips'", "Did you mean lisp?"),
        {"domain.toml": ('"lisp"', '"lips"')},
        code=2,
    ),
    # Files.
    "no settings": Mistake(
        PARSE, ("home: the folder has no domain.toml", "`fewparse new NAME`"), {"domain.toml": None}
    ),
    "no examples file": Mistake(
        PARSE,
        ("home/examples.jsonl: there is no such file", 'A line is an example: {"utterance": '),
        {"examples.jsonl": None},
    ),
    "no examples where some are needed": Mistake(
        PARSE,
        ("examples.jsonl: there are no examples, and the constraint `induced` needs some",),
        {"examples.jsonl": "", "domain.toml": INDUCED},
    ),
    "no examples to tune on": Mistake(
        ("tune", "./home"),
        ("0 examples are too few to tune a model", "at least 10"),
        {"examples.jsonl": ""},
        code=2,
    ),
    "no held-out examples": Mistake(
        ("eval", "./home"), ("no held-out examples (test.jsonl)", "--split train"), {"test.jsonl": None}, code=2
    ),
    "no grammar": Mistake(PARSE, ("grammar.lark: cannot be read: No such file",), {"grammar.lark": None}),
    "broken TOML": Mistake(PARSE, ("domain.toml:2:", "not valid TOML"), {"domain.toml": "\nname = home\n"}),
    "broken JSON": Mistake(
        PARSE,
        ("examples.jsonl:1:36: not valid JSON", '"program" 5}\n', "^\n"),
        {"examples.jsonl": '{"utterance": "lamp on", "program" 5}\n'},
    ),
    # Examples.
    "another name of a field": Mistake(
        PARSE,
        ("examples.jsonl:1:2: unknown key 'text'\n", "Did you mean utterance?"),
        {"examples.jsonl": LAMP.replace("utterance", "text")},
    ),
    "another name of the program": Mistake(
        PARSE,
        ("examples.jsonl:1:", "unknown key 'output'\n", "Did you mean program?"),
        {"examples.jsonl": LAMP.replace("program", "output")},
    ),
    "an example without a program": Mistake(
        PARSE,
        ("examples.jsonl:2:1: `program` is missing or empty", "A line is an example: "),
        {"examples.jsonl": LAMP + '{"utterance": "lamp on"}\n'},
    ),
    "an example outside the grammar": Mistake(
        PARSE,
        (
            "warning: home/examples.jsonl:2: the program (set (lamp hal) on) is not derived from character 15 on; "
            "expected 'hall'. No parse can return it (1 of 2 examples). See: fewparse check home\n",
        ),
        {"examples.jsonl": LAMP + WRONG},
    ),
    # Grammars.
    "a misspelt rule": Mistake(
        PARSE,
        ("grammar.lark:6:24: `ROOMS` is not defined", "Did you mean ROOM?"),
        {"grammar.lark": ('ROOM ")"', 'ROOMS ")"')},
    ),
    "a misspelt rule of a synchronous grammar": Mistake(
        ("grammar", "check", "home/grammar.scfg"),
        ("home/grammar.scfg:1:32: no rule is called `devise`\n    start -> ", "Did you mean device?"),
        {"grammar.scfg": SCFG},
    ),
    "a rule to copy that does not exist": Mistake(
        PARSE,
        ("unknown rule to copy 'NOT'", "Did you mean NOTE?"),
        {"domain.toml": ('["NOTE"]', '["NOT"]')},
        code=2,
    ),
    "a rule to copy without rules": Mistake(
        PARSE,
        ("domain.toml:", "`constraint.copy`: the constraint `trie` has no rules to copy\n    copy = "),
        {"domain.toml": ('kind = "grammar"', 'kind = "trie"')},
    ),
    "programs from which no grammar is induced": Mistake(
        PARSE,
        (
            "home/examples.jsonl:2: the program is not an S-expression: ",
            "    lamp.on(hall)\n           ^\n",
            "S-expressions only",
        ),
        {"examples.jsonl": LAMP + CALL, "domain.toml": INDUCED},
    ),
    "an induced grammar that is too narrow": Mistake(
        CHECK,
        (
            "error: test.jsonl:1: ill-formed: ",
            'note: constraint: merge = "loose" under [constraint] derives 1 of 1',
        ),
        {"examples.jsonl": IF, "test.jsonl": OTHER, "domain.toml": INDUCED, "executor.py": "execute = len\n"},
    ),
    "programs to induce from with another level": Mistake(
        ("grammar", "induce", "home/examples.jsonl", "--held-out", "home/test.jsonl"),
        ("covers 0 of 1 held-out programs", "--merge loose covers 1 of 1"),
        {"examples.jsonl": IF, "test.jsonl": OTHER},
        code=0,
    ),
    # Code.
    "an executor that cannot be loaded": Mistake(
        PARSE,
        ("executor.py cannot be loaded: ZeroDivisionError",),
        {"executor.py": "1 / 0\n"},
    ),
    "an executor that is not there": Mistake(
        PARSE, ("the executor executor.py has no function `run`",), {"domain.toml": (":execute", ":run")}
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_typical_mistake_is_explained(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = MISTAKES[name]
    ended = run(mistake, tmp_path, monkeypatch)
    for message in mistake.messages:
        assert message in ended.out + ended.err
    assert ended.code == mistake.code


def run(mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandResult:
    """Make the mistake in a new domain folder ./home, and run the command without a model."""
    folder = trusted_starter(tmp_path / "home")
    for file, change in mistake.changes.items():
        if isinstance(change, tuple):
            assert change[0] in (folder / file).read_text()
            change = (folder / file).read_text().replace(*change, 1)
        if change is None:
            (folder / file).unlink()
        else:
            (folder / file).write_text(change)
    monkeypatch.chdir(tmp_path)
    return fewparse(*mistake.command, env=without_model(tmp_path))


def test_a_number_that_the_grammar_cannot_say_is_pointed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust_folder(make_domain("home", tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    said = "set the blinds in the office to {} percent"
    ended = fewparse("parse", "./home", stdin=f"{said.format(900)}\n{said.format(90)}\n")
    too_large, _, sayable = ended.out.partition(said.format(90))
    note = "  note: the utterance says 900, which the grammar does not allow in the place of [0-9]+\n"
    assert re.search(rf"^{note}", too_large, re.MULTILINE)
    assert sayable.startswith("\n  (set (blinds office) (level 90))\n")
    assert "note: " not in sayable
