"""`fewparse new --from-database`: domains whose programs are queries on a database."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fewparse.cli.console import echo, warn
from fewparse.errors import UsageError

PANEL = "From a database"
MAX_WARNINGS = 20
DEFAULT_EXAMPLES = 40

FromDatabase = Annotated[
    str | None,
    typer.Option(
        help="URL of a database, such as sqlite:///shop.db, duckdb:///shop.db or postgresql://user@host/shop.",
        rich_help_panel=PANEL,
        metavar="URL",
    ),
]
Schemas = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        help="Schema of the database whose tables are used, in the order of the search path; may be repeated "
        "(default: the default schema).",
        rich_help_panel=PANEL,
        metavar="NAME",
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        help="Table or view that is used, with * and ? as wildcards; may be repeated (default: all).",
        rich_help_panel=PANEL,
        metavar="PATTERN",
    ),
]
Examples = Annotated[
    int | None,
    typer.Option(
        help="Number of examples to propose: queries that have an answer, with their canonical English, which you "
        f"then rephrase (default: {DEFAULT_EXAMPLES}).",
        rich_help_panel=PANEL,
        min=0,
        max=1000,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Random seed of the proposed examples (default: 0).", rich_help_panel=PANEL, min=0),
]


@dataclass(frozen=True)
class ChosenDatabase:
    """The database of a new domain, and what is made of it."""

    url: str
    schemas: tuple[str, ...]
    tables: tuple[str, ...]
    examples: int | None
    seed: int

    def make(self, name: str, folder: Path) -> str:
        """Write the folder, say what it has, and return a command to try."""
        from fewparse.domains.sql.folder import SqlDomain
        from fewparse.domains.sql.urls import parse_url

        made = SqlDomain.reflect(name, parse_url(self.url), self.schemas, self.tables)
        wanted = self.examples if self.examples is not None else DEFAULT_EXAMPLES if made.executes else 0
        proposed = made.propose(wanted, self.seed) if wanted else ()
        made.write(folder, proposed)
        for note in made.notes[:MAX_WARNINGS]:
            warn(note)
        if len(made.notes) > MAX_WARNINGS:
            warn(f"and {len(made.notes) - MAX_WARNINGS} more")
        shown = shlex.quote(str(folder))
        echo(made.summary)
        if self.examples is not None and len(proposed) < self.examples:
            warn(f"only {len(proposed)} examples were found that have an answer")
        if proposed:
            echo(
                f"{len(proposed)} proposed examples: rephrase the utterances in {folder / 'examples.jsonl'}, then"
            )
            echo(f"  fewparse check {shown}")
        return f'fewparse parse {shown} "{made.question}"'


def chosen_database(
    url: str | None,
    schemas: Sequence[str] | None,
    tables: Sequence[str] | None,
    examples: int | None,
    seed: int | None,
) -> ChosenDatabase | None:
    """Return the database that was given; None if there is none. Raise `UsageError` for options without one."""
    if url is None:
        if schemas or tables or examples is not None or seed is not None:
            raise UsageError(
                "--schema, --table, --examples and --seed are for domains made from a database",
                "Add --from-database URL.",
            )
        return None
    return ChosenDatabase(url, tuple(schemas or ()), tuple(tables or ()), examples, seed or 0)
