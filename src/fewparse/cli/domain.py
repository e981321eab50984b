"""`fewparse new`, `fewparse check` and `fewparse execute`: domain folders."""

import os
import re
import shlex
import shutil
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from fewparse.cli import new_calls, new_database, options
from fewparse.cli.answers import is_table, show_answer
from fewparse.cli.console import FAILED, echo, input_lines, opened_model, out, warn
from fewparse.cli.settings import settings_in_effect, show_settings
from fewparse.cli.trust import code_allowed, warn_of_code
from fewparse.domains.check import check_domain
from fewparse.domains.load import find_domain, load_domain
from fewparse.domains.trust import trust_folder
from fewparse.errors import DatabaseError, FewparseError, ModelError, UsageError
from fewparse.example import answer_text
from fewparse.files import exists, os_reason, user_path
from fewparse.grammar.analysis.lint import Finding, Level
from fewparse.lm.load import EMBEDDED
from fewparse.text import to_json
from fewparse.vocabulary import Vocabulary

NO_MODEL = "none"
README = "README.md"
STYLES: dict[Level, str] = {"error": "bold red", "warning": "yellow", "note": "dim"}


AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Run the code of a folder that is not trusted (see `fewparse trust`).")
]


def execute(
    domain: options.Domain,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, with `answer` or `error`.")
    ] = False,
    data: options.Data = None,
    allow_code: AllowCode = False,
) -> None:
    """Execute the programs on standard input: one denotation per line, `error: ...` for one that fails.

    The answer of a query is a table.
    """
    loaded = find_domain(domain, data, code_allowed(domain, allow_code))
    if loaded.executor is None:
        raise UsageError(
            f"the domain {loaded.name} has no executor",
            'Name one in its domain.toml: executor = "executor.py:execute", or a [database].',
        )
    failed = False
    for _, line in input_lines():
        try:
            if isinstance(line, FewparseError):
                raise line
            show_denotation(loaded.execute(line), as_json)
        except DatabaseError:  # no other program can be executed either
            raise
        except FewparseError as error:
            failed = True
            message = " ".join(error.message.splitlines())
            echo(to_json({"answer": None, "error": message}) if as_json else f"error: {message}")
    if failed:
        raise typer.Exit(FAILED)


def show_denotation(answer: Any, as_json: bool) -> None:
    """Print the answer of a program, on one line unless it is a table."""
    if as_json:
        echo(to_json({"answer": answer, "error": None}))
    elif is_table(answer):
        show_answer(answer)
    else:
        echo(" ".join(answer_text(answer).splitlines()))


def new(
    name: Annotated[str, typer.Argument(help="Name of the new domain.")],
    folder: Annotated[
        Path | None,
        typer.Option("--in", help="Folder to create (default: a folder of that name in the current one)."),
    ] = None,
    from_database: new_database.FromDatabase = None,
    schemas: new_database.Schemas = None,
    tables: new_database.Tables = None,
    examples: new_database.Examples = None,
    seed: new_database.Seed = None,
    from_openapi: new_calls.FromOpenapi = None,
    from_functions: new_calls.FromFunctions = None,
    from_json: new_calls.FromJson = None,
    notation: new_calls.NotationName = None,
    several_calls: new_calls.SeveralCalls = False,
    skip_unsupported: new_calls.SkipUnsupported = False,
) -> None:
    """Create a domain folder: of a database, of the functions of an API, or a small language to start from."""
    path = user_path(folder or name)
    database = new_database.chosen_database(from_database, schemas, tables, examples, seed)
    calls = new_calls.chosen_source(
        from_openapi, from_functions, from_json, notation, several_calls, skip_unsupported
    )
    if database is not None and calls is not None:
        raise UsageError("a database and functions are given; a domain has one source")
    source = database or calls
    if source is not None:
        check_new(name, path)
        next_step = source.make(name, path)
    else:
        path = make_domain(name, path)
        next_step = f'fewparse parse {as_argument(path)} "turn on the lamp in the kitchen"'
    try:
        trust_folder(path)
    except UsageError as error:
        warn(str(error))
    echo(f"Created {path}. Try it:\n  {next_step}")
    if exists(path / README):
        echo(f"What to do next: {path / README}")


def as_argument(path: Path) -> str:
    """Return a path as an argument that is not taken for the name of a domain."""
    return shlex.quote(str(path) if path.is_absolute() or path.parts[:1] == ("..",) else f".{os.sep}{path}")


def check_new(name: str, folder: Path) -> None:
    """Raise `UsageError` if a domain cannot have this name, or the folder exists already."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise UsageError(f"{name!r} is not a valid name for a domain", "Use letters, digits, - and _.")
    if exists(folder):
        raise UsageError(f"{folder} exists already", "Choose another name, or another folder with --in.")


def make_domain(name: str, folder: Path) -> Path:
    """Copy the starter domain to a new folder under a new name; existing files are never overwritten."""
    folder = user_path(folder)
    check_new(name, folder)
    starter = Path(str(resources.files("fewparse.domains"))) / "starter"
    try:
        shutil.copytree(starter, folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        for file, old, new in (("domain.toml", '"starter"', f'"{name}"'), ("README.md", "# starter", f"# {name}")):
            text = (folder / file).read_text(encoding="utf-8")
            (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be created: {os_reason(error)}") from None
    return folder


def check(
    domain: options.Domain,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 on warnings as well as on errors.")
    ] = False,
    model: Annotated[
        str,
        typer.Option(
            help="Model whose tokens must spell all outputs: embedded[:NAME] | gguf:PATH | hf:PATH_OR_NAME | none."
        ),
    ] = EMBEDDED,
    target: options.Target = None,
    adapter: options.Adapter = None,
    grammar: options.Grammar = None,
    copy: options.Copy = None,
    data: options.Data = None,
    allow_code: AllowCode = False,
) -> None:
    """Check a domain: its grammar against its examples, round trips, ambiguity, copy spans, leaks, vocabulary.

    Then the settings in effect are shown, and where each comes from. The exit
    code is 1 if there is an error.
    """
    loaded = load_domain(domain, data, grammar=grammar, copy=copy, allow_code=code_allowed(domain, allow_code))
    loaded.check()
    if loaded.executes:
        warn_of_code(loaded)
    vocabulary, unknown = find_vocabulary(model)
    report = check_domain(loaded, vocabulary)
    given = {"target": target, "adapter": adapter, "grammar": grammar}
    settings = settings_in_effect(loaded, EMBEDDED if model == NO_MODEL else model, given)
    failed = not report.passed or (strict and any(finding.level == "warning" for finding in report.findings))
    if as_json:
        executed = loaded.executes and loaded.allow_code
        effective = {name: {"value": value, "from": origin} for name, value, origin in settings}
        found = {**report.as_dict(), "executed": executed, "vocabulary_unknown": unknown, "settings": effective}
        echo(to_json(found))
    else:
        show_findings(report.findings)
        if unknown:
            out.print(f"note: the vocabulary was not checked: {unknown}", style="dim", markup=False)
        checked = ", ".join(f"{count} {what}" for what, count in report.checked.items())
        out.print(f"{report.domain}: {'failed' if failed else 'passed'} ({checked})", markup=False)
        show_settings(settings)
    if failed:
        raise typer.Exit(FAILED)


def find_vocabulary(model: str) -> tuple[Vocabulary | None, str | None]:
    """Return the vocabulary of a model, or the reason why it is unknown."""
    if model == NO_MODEL:
        return None, "no model was named"
    try:
        with opened_model(model) as opened:
            return opened.vocabulary, None
    except ModelError as error:
        if model != EMBEDDED:
            raise
        return None, error.message


def show_findings(findings: Iterable[Finding]) -> None:
    """Print one line per finding: level, location, kind and message."""
    for finding in findings:
        out.print(f"{finding.level}: ", style=STYLES[finding.level], end="")
        location = f"{finding.location}: " if finding.location else ""
        out.print(f"{location}{finding.kind}: {finding.message}", markup=False)
