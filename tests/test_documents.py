"""What the documents say is so: commands exist, links lead somewhere, the map of the rooms is complete."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer

from fewparse.cli.main import app
from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.translation.translator import Translator
from support.cli_runner import COMMAND

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [str(document.relative_to(ROOT)) for document in DOCUMENTS]
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SHELL = {"console", "sh", "bash", "shell"}
AFTER = {"|", ">", ">>", "<", "2>", "&", "&&", "||", ";"}


def blocks(document: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a document with their languages."""
    return FENCE.findall(document.read_text(encoding="utf-8"))


def commands(document: Path) -> Iterator[list[str]]:
    """The commands in blocks of a shell: behind `$` where the block has such lines, else every line."""
    for language, body in blocks(document):
        if language not in SHELL:
            continue
        lines = body.replace("\\\n", " ").splitlines()
        if any(line.lstrip().startswith("$ ") for line in lines):
            lines = [line.lstrip().removeprefix("$ ") for line in lines if line.lstrip().startswith("$ ")]
        for line in lines:
            yield from simple_commands(line)


def simple_commands(line: str) -> Iterator[list[str]]:
    """`a | b > c` as `a` and `b`: words up to a sign of the shell, without variables set in front."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # output of a command, not a command
        return
    command: list[str] = []
    skipping = False
    for word in [*words, ";"]:
        if word in AFTER:
            if command:
                yield command
            command = []
            skipping = word in {">", ">>", "<", "2>"}
        elif skipping:
            skipping = False
        elif command or not re.match(r"[A-Z_]+=", word):
            command.append(word)


def invocations(document: Path) -> list[list[str]]:
    """The arguments of every `fewparse` that a document runs."""
    return [command[1:] for command in commands(document) if Path(command[0]).name == "fewparse"]


def check_invocation(arguments: list[str]) -> None:
    """Read the arguments as the command would, without running anything."""
    command: Any = typer.main.get_command(app)
    name = "fewparse"
    while arguments and arguments[0] in getattr(command, "commands", {}):
        name, arguments = arguments[0], arguments[1:]
        command = command.commands[name]
    if hasattr(command, "commands"):
        assert arguments, f"{name} needs a command"
        assert arguments[0].startswith("-"), f"{name} has no command {arguments[0]!r}"
    with suppress(typer.Exit):  # --help and --version leave at once
        command.make_context(name, arguments)


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_command_in_a_document_is_a_real_one(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in invocations(document):
        check_invocation(arguments)


@pytest.mark.parametrize(
    "arguments", ["parse calendar x --no-such-option", "pars calendar", "parse", "models fetch"]
)
def test_the_check_of_commands_refuses_what_is_not_one(arguments: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such option|no command|missing"):
        check_invocation(arguments.split())


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_the_commands_of_a_document_work_one_after_the_other(
    document: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    environment = {**os.environ, "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}"}
    for dataset in ("overnight", "smcalflow"):
        if any(dataset in body for language, body in blocks(document) if language == "console"):
            environment["FEWPARSE_DATA"] = str(request.getfixturevalue(f"{dataset}_data"))
    for language, body in blocks(document):
        if language == "console":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", body],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout.strip()


def test_the_synchronous_rules_in_the_documents_can_be_read() -> None:
    sources = [body for document in DOCUMENTS for language, body in blocks(document) if language == "scfg"]
    assert sources
    for source in sources:
        grammar = read_scfg_text(source)
        assert Translator(grammar).to_program("set the lamp to 30 please").best == "(set 3 lamp)"
        assert Translator(grammar).to_utterance("(on receiver)", 2).texts == (
            "turn on the radio",
            "switch the radio on",
        )


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_make_target_in_a_document_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    said = {word for command in commands(document) if command[0] == "make" for word in command[1:]}
    assert {word for word in said if re.fullmatch(r"[a-z][\w-]*", word)} <= targets


def test_the_readme_begins_with_the_two_commands() -> None:
    (_, first), *_ = blocks(ROOT / "README.md")
    assert [" ".join(c) for line in first.splitlines() for c in simple_commands(line)] == [
        "make demo",
        "make test",
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(<?([^)\s>]+)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    relative = [link.partition("#")[0] for link in links if not re.match(r"[a-z]+:|#", link)]
    assert [link for link in relative if not (document.parent / link).exists()] == []


def test_the_map_of_the_rooms_names_every_room_and_no_other() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## The rooms")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    package = ROOT / "src" / "fewparse"
    hidden = {"__init__.py", "py.typed", "__pycache__"}
    rooms = {path.name + "/" * path.is_dir() for path in package.iterdir() if path.name not in hidden}
    assert named == rooms
