"""Write settings into a `domain.toml`, keeping its comments and its layout."""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from fewparse.domains.domain import Domain
from fewparse.domains.load import SETTINGS
from fewparse.domains.schema import DomainTable, SearchTable, schema_for, validated
from fewparse.errors import DomainError
from fewparse.example import TARGETS
from fewparse.files import exists, os_reason, read_bytes, write_atomically
from fewparse.limits import SETTINGS_BYTES
from fewparse.optimize.search import Choice

Value = str | int | float


@dataclass(frozen=True)
class Change:
    """A new value of a key of domain.toml; `table` is empty for a key at the top. `old` is the value in effect."""

    table: str
    key: str
    old: Value
    new: Value

    @property
    def line(self) -> str:
        """The line of the file, without its table."""
        return f"{self.key} = {tomlkit.item(self.new).as_string()}"


class NotWritten(Exception):
    """Settings that could not be written; the message says why."""


def changes_for(domain: Domain, choice: Choice, tuned: bool) -> tuple[Change, ...]:
    """Return what must change in domain.toml for a choice, of the prompted or of the tuned model.

    A domain with an adapter inherits [search] where [tuned] does not set a key: what the prompted model changes is
    kept there for the tuned one.
    """
    table, configuration = domain.table, choice.configuration
    search: dict[str, Value] = {
        "decoder": configuration.decoder,
        "width": configuration.width,
        "rerank": choice.rerank,
    }
    if tuned:
        return changed("tuned", table.search_for(True), search)
    found = list(changed("", table, {"target": configuration.target}))
    if configuration.examples:
        keys = ("retriever", "examples", "order")
        found += changed("retrieve", table.retrieve, {key: getattr(configuration, key) for key in keys})
    if configuration.merge is not None:
        found += changed("constraint", table.constraint, {"merge": configuration.merge})
    of_search = changed("search", table.search, search)
    return (*found, *of_search, *(kept_for_tuned(table, of_search) if has_adapter(domain) else ()))


def changed(name: str, table: Any, values: dict[str, Value]) -> tuple[Change, ...]:
    """Return the changes of the values of a table that differ from it."""
    return tuple(
        Change(name, key, getattr(table, key), value)
        for key, value in values.items()
        if getattr(table, key) != value
    )


def kept_for_tuned(table: DomainTable, of_search: Sequence[Change]) -> tuple[Change, ...]:
    """Return the present values of changed keys of [search] that [tuned] inherits, as keys of [tuned]."""
    own = (table.tuned or SearchTable()).model_fields_set
    return tuple(Change("tuned", c.key, c.old, c.old) for c in of_search if c.key not in own)


def has_adapter(domain: Domain) -> bool:
    """Return whether a domain has an adapter for any target."""
    return any(exists(domain.adapter_path(target)) for target in TARGETS)


def read_settings(domain: Domain) -> bytes:
    """Return the content of the domain.toml of a domain."""
    return read_bytes(domain.folder / SETTINGS, DomainError, SETTINGS_BYTES)


def with_changes(source: bytes, changes: Sequence[Change], path: Path) -> bytes:
    """Return the content of a domain.toml with changes; raise `DomainError` if it is not a valid one then."""
    text = source.decode("utf-8")
    document = tomlkit.parse(text)
    for change in changes:
        if change.table and change.table not in document:
            document.add(change.table, tomlkit.table())
        owner: Any = document[change.table] if change.table else document
        owner[change.key] = change.new
    written = tomlkit.dumps(document)
    if "\r\n" in text:
        written = written.replace("\r\n", "\n").replace("\n", "\r\n")
    parsed = tomllib.loads(written)
    validated(schema_for(parsed), parsed, written, path)
    return written.encode()


def write_settings(domain: Domain, source: bytes, changes: Sequence[Change], out: Path | None = None) -> Path:
    """Write changes into the domain.toml of a domain, or into another file; return its path.

    `source` was the content of domain.toml when the search began.


    Raises `NotWritten` if the domain belongs to an installed package, the file is read-only or cannot be written,
    or it has changed since.
    """
    path = domain.folder / SETTINGS
    content = with_changes(source, changes, path)
    if out is None:
        if domain.installed:
            raise NotWritten(f"the domain {domain.name} is part of an installed package")
        if read_settings(domain) != source:
            raise NotWritten(f"{path} has been edited meanwhile")
        if not os.stat(path).st_mode & 0o222 or not os.access(path, os.W_OK):
            raise NotWritten(f"{path} is read-only")
    try:
        target = Path(os.path.realpath(out or path))
        mode = os.stat(path).st_mode & 0o777
        write_atomically(target, content)
        if out is None:
            os.chmod(target, mode)
    except (OSError, ValueError) as error:
        raise NotWritten(f"{out or path} cannot be written: {os_reason(error)}") from None
    return out or path
