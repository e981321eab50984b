"""The documents agree with the code: commands, options, imports, links, paths and module tables."""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer

from document import FENCE, blocks_of
from fewparse.cli.main import app
from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.translation.translator import Translator

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fewparse"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(document.relative_to(ROOT)) for document in DOCUMENTS]
SHELL = {"console", "sh", "bash", "shell"}
MADE_BY_GUIDES = {"my_reranker", "executor"}  # modules that the reader of a guide writes
SHELL_OPERATORS = {"|", ">", ">>", "<", "2>", "&", "&&", "||", ";"}

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)


def blocks(document: Path) -> list[tuple[str, str]]:
    """Return the fenced blocks of a document with their languages."""
    return [(block.language, block.body) for block in blocks_of(document)]


def prose(document: Path) -> str:
    """Return a document without its fenced blocks."""
    return FENCE.sub("", document.read_text(encoding="utf-8"))


def commands(document: Path) -> Iterator[list[str]]:
    """Yield the commands in shell blocks: the lines with a `$` prompt if there are any, else all lines."""
    for language, body in blocks(document):
        if language not in SHELL:
            continue
        lines = body.replace("\\\n", " ").splitlines()
        if any(line.lstrip().startswith("$ ") for line in lines):
            lines = [line.lstrip().removeprefix("$ ") for line in lines if line.lstrip().startswith("$ ")]
        for line in lines:
            yield from simple_commands(line)


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the simple commands of a line, without redirections and assignments: `a | b > c` as `a`, `b`."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # output of a command, not a command
        return
    command: list[str] = []
    skipping = False
    for word in [*words, ";"]:
        if word in SHELL_OPERATORS:
            if command:
                yield command
            command = []
            skipping = word in {">", ">>", "<", "2>"}
        elif skipping:
            skipping = False
        elif command or not re.match(r"[A-Z_]+=", word):
            command.append(word)


def invocations(document: Path) -> list[list[str]]:
    """Return the arguments of every `fewparse` command in a document."""
    return [command[1:] for command in commands(document) if Path(command[0]).name == "fewparse"]


def check_invocation(arguments: list[str]) -> None:
    """Parse the arguments with the command-line parser, without running the command."""
    command: Any = typer.main.get_command(app)
    if arguments and arguments[0].endswith("-completion"):  # an option that acts while it is parsed
        assert arguments[0] in option_names(command)
        return
    name = "fewparse"
    while arguments and arguments[0] in getattr(command, "commands", {}):
        name, arguments = arguments[0], arguments[1:]
        command = command.commands[name]
    if hasattr(command, "commands"):
        assert arguments, f"{name} needs a command"
        assert arguments[0].startswith("-"), f"{name} has no command {arguments[0]!r}"
    with suppress(typer.Exit):  # --help and --version exit at once
        command.make_context(name, arguments)


@every_document
def test_every_command_in_a_document_exists(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in invocations(document):
        check_invocation(arguments)


@pytest.mark.parametrize(
    "arguments", ["parse calendar x --no-such-option", "pars calendar", "parse", "models fetch"]
)
def test_the_check_of_commands_rejects_an_invalid_command(arguments: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such option|no command|missing"):
        check_invocation(arguments.split())


def test_the_synchronous_rules_in_the_documents_are_valid() -> None:
    shown = [block for document in DOCUMENTS for block in blocks_of(document) if block.language == "scfg"]
    sources = [block.body for block in shown if block.title is None]  # others are files that are used
    assert sources
    for source in sources:
        grammar = read_scfg_text(source)
        assert Translator(grammar).to_program("set the lamp to 30 please").best == "(set 3 lamp)"
        assert Translator(grammar).to_utterance("(on receiver)", 2).texts == (
            "turn on the radio",
            "switch the radio on",
        )


@every_document
def test_every_make_target_in_a_document_exists(document: Path) -> None:
    targets = re.findall(r"^([a-z][\w%-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    words = {word for command in commands(document) if command[0] == "make" for word in command[1:]}
    for word in words:
        if re.fullmatch(r"[a-z][\w-]*", word):
            assert any(re.fullmatch(target.replace("%", ".+"), word) for target in targets), word


def test_the_readme_has_the_commands_to_install_to_ask_a_database_and_to_develop() -> None:
    shown = [" ".join(command[:2]) for command in commands(ROOT / "README.md")]
    database = ["pip install", "fewparse new", "fewparse parse"]
    assert shown == ["pip install", *database, "make demo", "make test"]


@every_document
def test_every_relative_link_resolves(document: Path) -> None:
    text = prose(document)
    links = re.findall(r"\]\(<?([^)\s>]+)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_document
def test_every_path_of_the_repository_in_a_document_exists(document: Path) -> None:
    paths = re.findall(r"(?<![\w/.~-])((?:benchmarks|docs|src|tests)/[\w./-]*\w)", prose(document))
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []


def option_names(command: Any) -> set[str]:
    """Return the options of a command and of its subcommands."""
    found = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return found.union({"--help"}, *(option_names(sub) for sub in getattr(command, "commands", {}).values()))


@every_document
def test_every_option_in_a_document_exists(document: Path) -> None:
    if document.name == "CHANGELOG.md":  # names removed options too
        return
    code = " ".join(re.findall(r"`([^`]+)`", prose(document)))
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", code))
    assert options <= option_names(typer.main.get_command(app))


@every_document
def test_python_in_a_document_is_valid_and_its_imports_resolve(document: Path) -> None:
    for language, body in blocks(document):
        if language == "python":
            for node in ast.walk(ast.parse(body)):
                if isinstance(node, ast.ImportFrom) and node.module not in MADE_BY_GUIDES:
                    module = importlib.import_module(str(node.module))
                    assert [name.name for name in node.names if not hasattr(module, name.name)] == []


@pytest.mark.parametrize("guide", sorted((ROOT / "docs" / "guides").glob("*.md")), ids=lambda guide: guide.stem)
def test_the_code_of_a_guide_is_what_its_test_runs(guide: Path) -> None:
    test = ROOT / "tests" / "guides" / f"test_{guide.stem.replace('-', '_')}.py"
    assigned = [node for node in ast.parse(test.read_text()).body if isinstance(node, ast.Assign)]
    constants = [node.value.value for node in assigned if isinstance(node.value, ast.Constant)]
    files = {text.strip() for text in constants if isinstance(text, str)}
    lines = {ast.unparse(node.value) for node in assigned if ast.unparse(node.targets[0]) == "LINE"}
    shown = {body.strip() for _, body in blocks(guide)}
    assert files
    assert files <= shown
    assert lines <= {body.replace('"', "'") for body in shown}


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").glob("*.svg")), ids=lambda picture: picture.name)
def test_every_picture_is_well_formed_and_used(picture: Path) -> None:
    ElementTree.parse(picture)
    assert any(f"{picture.name})" in prose(document) for document in DOCUMENTS)


def section(document: Path, heading: str) -> str:
    """Return the text below a heading, up to the next heading of the same or a higher level."""
    level = heading.partition(" ")[0]
    _, found, rest = f"\n{prose(document)}".partition(f"\n{heading}\n")
    assert found, f"{document.name} has no {heading!r}"
    return re.split(rf"\n#{{1,{len(level)}}} ", rest)[0]


def rows(text: str) -> list[list[set[str]]]:
    """Return the names in backticks in each cell of the rows of a table whose first cell has one."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[set(re.findall(r"`([^`]+)`", cell)) for cell in line.strip("|").split("|")] for line in lines]


def test_the_module_tables_name_every_module_and_no_other() -> None:
    text = section(ROOT / "CONTRIBUTING.md", "## Packages and modules")
    named: dict[str, list[str]] = {}
    for part in text.split("\n### ")[1:]:
        title, _, table = part.partition("\n")
        package = "" if title == "Top level" else title.strip("`/")
        named[package] = sorted(name for first, *_ in rows(table) for name in first)
    modules: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        package = file.parent.relative_to(PACKAGE).as_posix().strip(".")
        if file.stem != "__init__" and package != "domains/starter":
            modules.setdefault(package, []).append(file.stem)
    assert named == {package: sorted(names) for package, names in modules.items()}
