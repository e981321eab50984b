"""`fewparse new --from-openapi`, `--from-functions`, `--from-json`: domains whose programs are function calls."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewparse.cli.console import warn
from fewparse.errors import UnknownName, UsageError
from fewparse.files import user_path

if TYPE_CHECKING:
    from fewparse.domains.calls.program import Notation
    from fewparse.domains.calls.sources import SourceKind

PANEL = "From functions"
NOTATIONS: "dict[str, Notation]" = {"call": "call", "json": "json"}
MAX_WARNINGS = 20

FromOpenapi = Annotated[
    Path | None,
    typer.Option(
        help="OpenAPI document, version 3.0 or 3.1, in YAML or JSON.", rich_help_panel=PANEL, metavar="PATH"
    ),
]
FromFunctions = Annotated[
    str | None,
    typer.Option(
        help="Python functions: a module, or a function, class, instance or list in it (`module:object`).",
        rich_help_panel=PANEL,
        metavar="NAME",
    ),
]
FromJson = Annotated[
    Path | None,
    typer.Option(
        help="List of tools in OpenAI's format, or of an MCP server.", rich_help_panel=PANEL, metavar="PATH"
    ),
]
NotationName = Annotated[
    str | None,
    typer.Option(help="How calls are written: call | json (default: call).", rich_help_panel=PANEL),
]
SeveralCalls = Annotated[
    bool, typer.Option("--several-calls", help="Programs are lists of calls.", rich_help_panel=PANEL)
]
SkipUnsupported = Annotated[
    bool,
    typer.Option(
        "--skip-unsupported",
        help="Leave out functions and optional arguments that cannot be enforced, instead of failing.",
        rich_help_panel=PANEL,
    ),
]


@dataclass(frozen=True)
class ChosenSource:
    """The source of the functions of a new domain, and how their calls are written."""

    kind: "SourceKind"
    name: str
    notation: "Notation"
    several_calls: bool
    skip_unsupported: bool

    def make(self, name: str, folder: Path) -> str:
        """Write the folder, warn of what was left out, and return a command to try."""
        from fewparse.domains.calls.folder import CallsDomain, enforceable
        from fewparse.domains.calls.sources import read_source

        found = read_source(self.kind, self.name, self.skip_unsupported)
        usable, unsupported = enforceable(found.declarations, self.notation, self.skip_unsupported)
        made = CallsDomain(name, replace(found, declarations=usable), self.notation, self.several_calls)
        made.write(folder)
        left_out = [*found.left_out, *unsupported]
        for reason in left_out[:MAX_WARNINGS]:
            warn(f"left out: {reason}")
        if len(left_out) > MAX_WARNINGS:
            warn(f"left out: {len(left_out) - MAX_WARNINGS} more")
        return f'fewparse parse {shlex.quote(str(folder))} "what you would say"'


def chosen_source(
    openapi: Path | None,
    functions: str | None,
    json_file: Path | None,
    notation: str | None,
    several_calls: bool,
    skip_unsupported: bool,
) -> ChosenSource | None:
    """Return the source that was given; None if there is none. Raise `UsageError` for options that do not fit."""
    given: dict[SourceKind, Path | str | None] = {"openapi": openapi, "functions": functions, "json": json_file}
    sources = {kind: source for kind, source in given.items() if source is not None}
    if len(sources) > 1:
        names = " and ".join(f"--from-{kind}" for kind in sources)
        raise UsageError(f"{names} are given; a domain has one source")
    if not sources:
        if notation is not None or several_calls or skip_unsupported:
            raise UsageError(
                "--notation, --several-calls and --skip-unsupported are for domains made from functions",
                "Add --from-openapi, --from-functions or --from-json.",
            )
        return None
    if notation is not None and notation not in NOTATIONS:
        raise UnknownName("notation", notation, NOTATIONS)
    ((kind, source),) = sources.items()
    name = str(source) if kind == "functions" else str(user_path(source))
    return ChosenSource(kind, name, NOTATIONS[notation or "call"], several_calls, skip_unsupported)
