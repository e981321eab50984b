"""Load a grammar from a file or a folder; the dialect follows from the suffix or is given, never guessed."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from fewparse.errors import GrammarError, UnknownName, UsageError
from fewparse.files import exists, read_text
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.readers.scfg import read_scfg
from fewparse.grammar.readers.type_tables import rules_from_tables
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.limits import GRAMMAR_BYTES

Dialect = Literal["scfg", "lark"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
TYPE_TABLES = ("types.csv", "specialTypes.csv")
TEMPLATE_TABLE = "templates.csv"
TABLES = (*TYPE_TABLES, TEMPLATE_TABLE)


def load_grammar(path: Path, dialect: Dialect | None = None, start: str = "start") -> Grammar | SynchronousGrammar:
    """Return a synchronous grammar (dialect `scfg`) or a grammar of programs only (`lark`).

    A folder is `scfg`: all `.scfg` files in it and its subfolders, and the rules of its type tables. Only with
    type tables may names have no rule. The dialect of a file is its suffix unless it is given. Raises GrammarError
    for a grammar that is missing, incomplete or wrong, and UsageError for a path or dialect that is not one of a
    grammar.
    """
    if os.path.isdir(path):
        if dialect == "lark":
            raise UsageError(f"{path} is a folder, but a grammar in the dialect lark is a single file")
        sources = folder_sources(path)
        if not any(source.endswith(".scfg") for source, _ in sources):
            hint = (
                f"Put the .scfg files that belong to the tables into the folder; one has a rule called `{start}`."
            )
            raise GrammarError(
                "there are type tables but no .scfg file, so there is no start rule", path, hint=hint
            )
        with_tables = any(exists(table) for name in TYPE_TABLES for table in path.rglob(name))
        return read_scfg(sources, start, complete=not with_tables)
    chosen = dialect or path.suffix.removeprefix(".")
    if chosen not in DIALECTS and not exists(path):
        raise GrammarError("there is no such file or folder", path)
    if chosen == "scfg":
        sources = [(str(path), read_text(path, GrammarError, GRAMMAR_BYTES))]
        return read_scfg(sources, start, complete=True)
    if chosen == "lark":
        return read_grammar(read_text(path, GrammarError, GRAMMAR_BYTES), path, start)
    if dialect is not None:
        raise UnknownName("dialect", dialect, DIALECTS)
    if path.name in TABLES:
        raise UsageError(
            f"{path} is only one table of a grammar", f"Give the folder that contains all of them: {path.parent}"
        )
    hint = "Rename it to .scfg or .lark, or set --dialect (`fewparse grammar`) or `dialect` (domain.toml)."
    raise UsageError(f"the suffix of {path.name} is not a grammar dialect", hint)


def folder_sources(folder: Path) -> list[tuple[str, str]]:
    """Return (path, text) of the rule files of a folder, sorted by path, and of the rules of its type tables."""
    sources = read_sources(sorted(folder.rglob("*.scfg")), folder)
    tables = [table for name in TYPE_TABLES for table in sorted(folder.rglob(name))]
    if not sources and not tables:
        hint = "A grammar is one .scfg or .lark file, or a folder of .scfg files, optionally with type tables."
        raise GrammarError("the folder has no .scfg file and no types.csv", folder, hint=hint)
    if not tables:
        return sources
    templates = next(iter(sorted(folder.rglob(TEMPLATE_TABLE))), None)
    if templates is None:
        hint = "Put it into the folder; with an empty file, every function is worded by its name."
        raise GrammarError(
            f"there are type tables but no {TEMPLATE_TABLE} with their English templates", folder, hint=hint
        )
    *table_sources, template_source = read_sources([*tables, templates], folder)
    table_rules = rules_from_tables(table_sources, template_source)
    return [*sources, (f"{folder} (type tables)", "\n".join(table_rules.rules))]


def read_sources(paths: Sequence[Path], folder: Path) -> list[tuple[str, str]]:
    """Return (path, text) of files of a folder; the limit on the size of a file holds for all of them together."""
    sources: list[tuple[str, str]] = []
    size = 0
    for path in paths:
        text = read_text(path, GrammarError, GRAMMAR_BYTES)
        size += len(text)
        if size > GRAMMAR_BYTES.value:
            message = f"the files of the grammar have more than {GRAMMAR_BYTES.value:,.0f} characters"
            raise GrammarError(message, folder, hint=GRAMMAR_BYTES.hint)
        sources.append((str(path), text))
    return sources
