"""The words of canonical English for a schema: phrases for tables, columns and values.

Phrases are made from names and short comments, and can be overridden in a file `phrases.toml`:

    [tables]
    orders = "purchase"
    staff = ["employee", "staff"]    # singular and plural

    [columns]
    "customer.cust_id" = "customer number"

All words of the templates (`select.scfg`) are reserved, so that canonical English is unambiguous: the words of a
phrase that contains one of them are joined with hyphens ("date-of-birth").
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from fewparse.domains.sql.database import Database, Table
from fewparse.domains.sql.templates import english_words
from fewparse.errors import DomainError, UnknownName
from fewparse.files import read_text

CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
SEPARATORS = re.compile(r"""[\s_"“”„()\[\]{},;:.!?/\\|`´<>=+*&%$#@^~-]+""")
LITERAL = re.compile(r"[\d.:-]+")
BARE_VALUE = re.compile(r"[^\W_][\w.&'/-]*(?: [^\W_][\w.&'/-]*)*")
ORDINALS = {2: "second", 3: "third", 4: "fourth"}
"""How the occurrences of a table in one scope are told apart."""
MAX_COMMENT_WORDS = 4
WORDS_OF_CODE = frozenset({"s", "whole", "all", "columns", *ORDINALS.values()})
"""Words of canonical English that are not in the templates."""


class Phrases:
    """The phrases of a schema; `tables` and `columns` override those made from names and comments.

    `tables` gives the singular, or singular and plural, of tables by name; `columns` the phrase of columns by
    `table.column`. Raises `UnknownName` for names that the schema does not have.
    """

    def __init__(
        self,
        database: Database,
        tables: Mapping[str, str | tuple[str, str]] | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        tables, columns = tables or {}, columns or {}
        names = {f"{table.name}.{column.name}" for table in database.tables for column in table.columns}
        check_names("table", tables, database.by_name)
        check_names("column", columns, names)
        self.singular: dict[str, str] = {}
        self.plural: dict[str, str] = {}
        self.columns: dict[tuple[str, str], str] = {}
        singulars, plurals = set[str](), set[str]()
        for table in database.tables:
            one, many = table_words(table, tables.get(table.name))
            self.singular[table.name] = distinct(safe_phrase(one, "record"), singulars)
            self.plural[table.name] = distinct(safe_phrase(many, "records"), plurals)
            used = set[str]()
            for column in table.columns:
                chosen = columns.get(f"{table.name}.{column.name}")
                words = split(chosen) if chosen else short_comment(column.comment) or name_words(column.name)
                self.columns[table.name, column.name] = distinct(safe_phrase(words, "value"), used)

    @staticmethod
    def read(path: Path, database: Database) -> "Phrases":
        """Return the phrases with the overrides of a file; raises `DomainError` for a mistake in it."""
        source = read_text(path, DomainError)
        try:
            settings = tomllib.loads(source)
        except tomllib.TOMLDecodeError as error:
            raise DomainError(f"not valid TOML: {error}", path) from None
        try:
            return Phrases(database, *validated(settings, path))
        except UnknownName as error:
            raise DomainError(error.message, path, hint=error.hint) from None


def validated(settings: dict[str, Any], path: Path) -> tuple[dict[str, str | tuple[str, str]], dict[str, str]]:
    """Return the two tables of a file of phrases."""
    hint = 'It has [tables], as in orders = "purchase", and [columns], as in "customer.id" = "customer number".'
    unknown = sorted(set(settings) - {"tables", "columns"})
    if unknown:
        raise DomainError(f"unknown key `{unknown[0]}`", path, hint=hint)
    tables: dict[str, str | tuple[str, str]] = {}
    columns: dict[str, str] = {}
    for section in ("tables", "columns"):
        given = settings.get(section, {})
        for name, phrase in given.items() if isinstance(given, dict) else [(section, given)]:
            pair = section == "tables" and isinstance(phrase, list) and len(phrase) == 2
            texts = phrase if pair else [phrase]
            if not all(isinstance(text, str) and split(text) for text in texts):
                raise DomainError(f"`{name}` in [{section}] is not a phrase", path, hint=hint)
            if section == "columns":
                columns[name] = phrase
            else:
                tables[name] = (phrase[0], phrase[1]) if pair else phrase
    return tables, columns


def check_names(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `UnknownName` for the first name that is not known."""
    known = set(known)
    for name in given:
        if name not in known:
            raise UnknownName(kind, name, sorted(known))


def table_words(table: Table, chosen: str | tuple[str, str] | None) -> tuple[list[str], list[str]]:
    """Return the words for one row and for many rows of a table."""
    if isinstance(chosen, tuple):
        return split(chosen[0]), split(chosen[1])
    words = split(chosen) if chosen else short_comment(table.comment) or name_words(table.name)
    *rest, last = words
    one = last if chosen else singular(last)
    return [*rest, one], [*rest, plural(one)]


@cache
def abbreviations() -> dict[str, list[str]]:
    """Return the words of common abbreviations in names."""
    lines = (files(__package__) / "abbreviations.txt").read_text(encoding="utf-8").splitlines()
    return {short: words.split("-") for short, words in (line.split() for line in lines)}


def split(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation and with apostrophes removed."""
    cleaned = text.replace("'", "").replace("’", "")
    return [word for word in SEPARATORS.split(CAMEL_CASE.sub(" ", cleaned).lower()) if word and word.isprintable()]


def name_words(name: str) -> list[str]:
    """Return the words of a name, with common abbreviations expanded; a name without words is `unnamed`."""
    known = abbreviations()
    return [part for word in split(name) for part in known.get(word, [word])] or ["unnamed"]


def short_comment(comment: str) -> list[str]:
    """Return the words of a comment that is a short phrase, else nothing."""
    words = split(comment)
    is_phrase = len(words) <= MAX_COMMENT_WORDS and not re.search(r"[.,:;()=\n]", comment.strip())
    return words if is_phrase else []


def safe_phrase(words: list[str], noun: str) -> str:
    """Return words as a phrase without reserved words; `noun` completes a reserved word or a number."""
    if len(words) == 1 and (words[0] in reserved_words() or LITERAL.fullmatch(words[0])):
        words = [*words, noun]
    elif not any(word in reserved_words() for word in words) and not LITERAL.fullmatch(words[0]):
        return " ".join(words)
    return "-".join(words)


def distinct(phrase: str, used: set[str]) -> str:
    """Return a phrase with a number appended if it is already used, and mark it as used."""
    found, number = phrase, 1
    while found in used:
        number += 1
        found = f"{phrase}-{number}"
    used.add(found)
    return found


def value_phrase(value: str) -> str:
    """Return a known value in canonical English: bare if it is made of plain words, else in quotation marks."""
    words = {word.strip(".").removesuffix("'s") for word in value.lower().split(" ")}
    if BARE_VALUE.fullmatch(value) and not words & reserved_words():
        return value
    return '"' + value.replace('"', '""') + '"'


@cache
def reserved_words() -> frozenset[str]:
    """Return the words of canonical English that phrases cannot contain."""
    return english_words() | WORDS_OF_CODE


def singular(word: str) -> str:
    """Return the singular of an English noun that may be plural."""
    if len(word) < 4 or word.endswith(("ss", "us", "is", "news", "series", "species")) or not word.endswith("s"):
        return {"people": "person", "children": "child", "men": "man", "women": "woman"}.get(word, word)
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "shes", "ches", "xes", "zes", "uses")):
        return word[:-1] if word.endswith(("auses", "ouses", "nses")) else word[:-2]
    return word[:-1]


def plural(word: str) -> str:
    """Return the plural of an English noun."""
    irregular = {"person": "people", "child": "children", "man": "men", "woman": "women", "staff": "staff"}
    if word in irregular:
        return irregular[word]
    if word.endswith(("news", "series", "species")):
        return word
    if word.endswith("y") and word[-2:-1] not in ("", *"aeiou"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")
