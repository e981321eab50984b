"""Open a grammar: a file or a folder, in a dialect that is stated and never guessed."""

from pathlib import Path
from typing import Literal, get_args

from fewparse.errors import GrammarError, UnknownName, UsageError
from fewparse.grammar.ebnf import read_grammar
from fewparse.grammar.rules import Grammar
from fewparse.grammar.scfg import read_scfg
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.type_tables import induce_from_tables
from fewparse.text_file import read_text

Dialect = Literal["scfg", "lark"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
TYPE_TABLES = ("types.csv", "specialTypes.csv")
TEMPLATE_TABLE = "templates.csv"


def open_grammar(path: Path, dialect: Dialect | None = None, start: str = "start") -> Grammar | SynchronousGrammar:
    """A synchronous grammar (`scfg`) or one of programs alone (`lark`).

    A folder is `scfg`: all `.scfg` files in it and below, and the rules induced from its type tables. The
    dialect of a file is its suffix, unless it is given.
    """
    if path.is_dir():
        if dialect == "lark":
            raise UsageError(f"{path} is a folder; a grammar in the dialect lark is one file")
        return read_scfg(folder_sources(path), start)
    chosen = dialect or path.suffix.removeprefix(".")
    if chosen == "scfg":
        return read_scfg([(str(path), read_text(path, GrammarError))], start)
    if chosen == "lark":
        return read_grammar(read_text(path, GrammarError), path, start)
    if dialect is not None:
        raise UnknownName("dialect", dialect, DIALECTS)
    raise UsageError(
        f"the suffix of {path.name} says no dialect", "Call it .scfg or .lark, or give the dialect (--dialect)."
    )


def folder_sources(folder: Path) -> list[tuple[str, str]]:
    """The rule files of a folder in the order of their paths, and what its type tables induce."""
    sources = [(str(path), read_text(path, GrammarError)) for path in sorted(folder.rglob("*.scfg"))]
    tables = [table for name in TYPE_TABLES for table in sorted(folder.rglob(name))]
    if tables:
        templates = next(iter(sorted(folder.rglob(TEMPLATE_TABLE))), None)
        induced = induce_from_tables(
            [(str(table), read_text(table, GrammarError)) for table in tables],
            None if templates is None else (str(templates), read_text(templates, GrammarError)),
        )
        sources.append((f"{folder} (type tables)", "\n".join(induced.rules)))
    if not sources:
        raise GrammarError("the folder has no .scfg file and no types.csv", folder)
    return sources
