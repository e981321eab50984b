"""Open a grammar: a file or a folder, in a dialect that is stated and never guessed."""

from pathlib import Path
from typing import Literal, get_args

from fewparse.errors import GrammarError, UnknownName, UsageError
from fewparse.files import read_text
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.readers.scfg import read_scfg
from fewparse.grammar.readers.type_tables import induce_from_tables
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import SynchronousGrammar

Dialect = Literal["scfg", "lark"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
TYPE_TABLES = ("types.csv", "specialTypes.csv")
TEMPLATE_TABLE = "templates.csv"
TABLES = (*TYPE_TABLES, TEMPLATE_TABLE)


def open_grammar(path: Path, dialect: Dialect | None = None, start: str = "start") -> Grammar | SynchronousGrammar:
    """A synchronous grammar (`scfg`) or one of programs alone (`lark`).

    A folder is `scfg`: all `.scfg` files in it and below, and the rules induced from its type tables. The
    dialect of a file is its suffix, unless it is given.
    """
    if path.is_dir():
        if dialect == "lark":
            raise UsageError(f"{path} is a folder; a grammar in the dialect lark is one file")
        sources = folder_sources(path)
        if not any(source.endswith(".scfg") for source, _ in sources):
            hint = f"Put the .scfg files that belong to the tables beside them; one has a rule called `{start}`."
            raise GrammarError("there are type tables and no .scfg file: no rule begins a text", path, hint=hint)
        return read_scfg(sources, start)
    chosen = dialect or path.suffix.removeprefix(".")
    if chosen not in DIALECTS and not path.exists():
        raise GrammarError("there is no such file or folder", path)
    if chosen == "scfg":
        return read_scfg([(str(path), read_text(path, GrammarError))], start)
    if chosen == "lark":
        return read_grammar(read_text(path, GrammarError), path, start)
    if dialect is not None:
        raise UnknownName("dialect", dialect, DIALECTS)
    if path.name in TABLES:
        raise UsageError(
            f"{path} is one table of a grammar", f"Give the folder that holds all of it: {path.parent}"
        )
    hint = "Call it .scfg or .lark; `fewparse grammar` also takes --dialect, and a domain.toml `dialect`."
    raise UsageError(f"the suffix of {path.name} says no dialect", hint)


def folder_sources(folder: Path) -> list[tuple[str, str]]:
    """The rule files of a folder in the order of their paths, and what its type tables induce."""
    sources = [read_source(path) for path in sorted(folder.rglob("*.scfg"))]
    tables = [table for name in TYPE_TABLES for table in sorted(folder.rglob(name))]
    if not sources and not tables:
        hint = "A grammar is one .scfg or .lark file, or a folder of .scfg files with or without type tables."
        raise GrammarError("the folder has no .scfg file and no types.csv", folder, hint=hint)
    if not tables:
        return sources
    templates = next(iter(sorted(folder.rglob(TEMPLATE_TABLE))), None)
    if templates is None:
        hint = "Put it beside them; an empty file has every function said by its name."
        raise GrammarError(f"there are type tables and no {TEMPLATE_TABLE} with their English", folder, hint=hint)
    induced = induce_from_tables(list(map(read_source, tables)), read_source(templates))
    return [*sources, (f"{folder} (type tables)", "\n".join(induced.rules))]


def read_source(path: Path) -> tuple[str, str]:
    """A file of a grammar with its path."""
    return str(path), read_text(path, GrammarError)
