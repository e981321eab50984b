"""Grammars of schemas on disk, with the normal forms and the canonical utterances of queries.

Files are named by a hash of the schema, its phrases and the code that makes the grammar, and start with a hash of
their content: a damaged file, or one of another version, is ignored, and what it should hold is made again.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import fewparse.grammar
from fewparse.domains.sql.database import Database
from fewparse.domains.sql.english import Phrases
from fewparse.errors import DomainError, FewparseError
from fewparse.files import cache_folder, read_bytes, write_atomically
from fewparse.grammar.rules import Chars, Production, Ref, Symbol, Text
from fewparse.grammar.synchronous import PairedRule, Pairing, SynchronousGrammar
from fewparse.text import to_json

MAX_FILES = 24
"""The oldest files beyond this number are deleted."""
MAX_FILE_BYTES = 100_000_000
MAX_QUERIES = 20_000
SOURCES = (".py", ".scfg", ".txt")
Serial = list[Any]


class SqlCache:
    """The files of one schema; `normal_forms` and `utterances` hold those of queries by their text."""

    def __init__(self, database: Database, phrases: Phrases) -> None:
        schema = to_json(database.as_dict())
        words = repr((phrases.singular, phrases.plural, phrases.columns))
        self._key = sha256(f"{code_hash()} {sha256(schema.encode())} {words}".encode())
        stored = self._read("queries")
        self.normal_forms: dict[str, str] = stored[0] if stored else {}
        self.utterances: dict[str, str] = stored[1] if stored else {}
        self._stored = self._size

    @property
    def _size(self) -> int:
        return len(self.normal_forms) + len(self.utterances)

    def grammar(self, make: Callable[[], SynchronousGrammar]) -> SynchronousGrammar:
        """Return the stored grammar, or else the one that `make` returns."""
        stored = self._read("grammar")
        if stored is not None:
            return from_serial(stored)
        made = make()
        self._write("grammar", to_serial(made))
        return made

    def store_queries(self) -> None:
        """Write what is new in `normal_forms` and `utterances`."""
        if self._stored < self._size <= MAX_QUERIES:
            self._write("queries", [self.normal_forms, self.utterances])
            self._stored = self._size

    def _path(self, kind: str) -> Path:
        return sql_cache_folder() / f"{self._key}.{kind}"

    def _read(self, kind: str) -> Any:
        """Return the value of a file; None if there is none, or it is damaged."""
        path = self._path(kind)
        try:
            hashed, _, content = read_bytes(path, DomainError, MAX_FILE_BYTES).partition(b"\n")
            os.utime(path)  # the files that were used last are kept
        except (FewparseError, OSError):
            return None
        return json.loads(content) if hashed == sha256(content).encode() else None

    def _write(self, kind: str, value: Any) -> None:
        """Write a file and delete the oldest ones; do nothing if the folder cannot be written."""
        content = to_json(value).encode()
        try:
            write_atomically(self._path(kind), sha256(content).encode() + b"\n" + content)
            for path in stored_files()[:-MAX_FILES]:
                path.unlink(missing_ok=True)
        except (OSError, ValueError):
            return


def sql_cache_folder() -> Path:
    """Return the folder of the files."""
    return cache_folder() / "sql"


def stored_files() -> list[Path]:
    """Return the files of all schemas, those that were used last at the end."""
    folder = sql_cache_folder()
    return sorted(folder.iterdir(), key=os.path.getmtime) if folder.is_dir() else []


def total_size(files: Iterable[Path]) -> int:
    """Return the size of files in bytes."""
    return sum(path.stat().st_size for path in files)


def sha256(content: bytes) -> str:
    """Return a hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


@cache
def code_hash() -> str:
    """Return a hash of the modules and templates that make grammars, normal forms and utterances."""
    found = hashlib.sha256()
    for folder in (Path(__file__).parent, Path(fewparse.grammar.__file__).parent):
        for path in sorted(path for path in folder.rglob("*") if path.suffix in SOURCES):
            found.update(path.read_bytes())
    return found.hexdigest()


def to_serial(grammar: SynchronousGrammar) -> Serial:
    """Return a grammar as a JSON value: its symbols, and its rules as indices of symbols."""
    symbols: dict[Symbol, int] = {}

    def indices(production: Production) -> list[int]:
        return [symbols.setdefault(symbol, len(symbols)) for symbol in production]

    rules = [
        (
            rule.name,
            None if rule.program is None else indices(rule.program),
            [(indices(pairing.utterance), pairing.links) for pairing in rule.pairings],
        )
        for rule in grammar.rules
    ]
    return [[symbol_serial(symbol) for symbol in symbols], rules, grammar.start]


def symbol_serial(symbol: Symbol) -> Serial:
    """Return a symbol as a JSON value."""
    match symbol:
        case Ref(name=name):
            return ["ref", name]
        case Text(text=text):
            return ["text", text]
        case Chars(ranges=ranges):
            return ["chars", ranges]


def from_serial(serial: Serial) -> SynchronousGrammar:
    """Return the grammar of `to_serial`."""
    symbols = [read_symbol(*symbol) for symbol in serial[0]]

    def production(indices: Iterable[int]) -> Production:
        return tuple([symbols[index] for index in indices])

    return SynchronousGrammar(
        tuple(
            [
                PairedRule(
                    name,
                    None if program is None else production(program),
                    tuple([Pairing(production(utterance), tuple(links)) for utterance, links in pairings]),
                )
                for name, program, pairings in serial[1]
            ]
        ),
        serial[2],
    )


def read_symbol(kind: str, value: Any) -> Symbol:
    """Return the symbol of `symbol_serial`."""
    if kind == "chars":
        return Chars(tuple(map(tuple, value)))
    return Ref(value) if kind == "ref" else Text(value)
