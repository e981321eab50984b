"""Make a domain folder from a database."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fewparse.domains.sql.connection import CONNECTIONS, open_database
from fewparse.domains.sql.database import Database
from fewparse.domains.sql.english import Phrases
from fewparse.domains.sql.execution import DatabaseExecutor
from fewparse.domains.sql.grammar import sql_grammar
from fewparse.domains.sql.proposals import propose
from fewparse.domains.sql.reflect import reflect
from fewparse.domains.sql.urls import DatabaseUrl, file_url
from fewparse.errors import UsageError
from fewparse.example import Example
from fewparse.files import os_reason
from fewparse.text import is_unicode, to_json

SCHEMA_FILE, PHRASES_FILE, EXAMPLES_FILE = "schema.json", "phrases.toml", "examples.jsonl"
SETTINGS = """\
# The settings of this domain: its programs are queries on a database. All keys: docs/domains.md, docs/sql.md.
name = {name}
description = {description}
target = "canonical"                  # the model writes English that the grammar translates to SQL; or "program"
prompt = "chatml-description"         # shows the tables to the model; or a .toml file in this folder

[retrieve]
examples = 8                          # number of examples in the prompt, if examples.jsonl has any
retriever = "embedding"               # embedding, bm25, lm, random or all
description_lines = 20                # number of tables in the prompt: the most similar ones to the utterance

[constraint]
kind = "sql"
schema = "schema.json"                # which tables, columns and values may occur; remove what should not
phrases = "phrases.toml"              # how they are called in English

{database}
[search]
decoder = "beam"                      # speculative, beam or greedy
width = 5
rerank = 4.0                          # weight of the alignment with the utterance, learned from the examples
max_tokens = {{ canonical = 80, program = 160 }}
"""
DATABASE = """\
[database]                            # opened to read only; a relative path starts at this folder
url = {url}
{password}{schemas}max_rows = 1000                       # answers with more rows are cut
max_seconds = 10                      # queries that take longer are ended
"""
PHRASES = """\
# How tables and columns are called in canonical English. Remove the # of a line to change its phrase.

[tables]  # singular and plural
{tables}

[columns]
{columns}
"""
NOT_EXECUTED = """\
# Queries are not executed: fewparse cannot make a connection to this database read-only.
# url = {url}
"""


@dataclass(frozen=True)
class SqlDomain:
    """A domain made from a database, before it is written; `notes` are messages for the user."""

    name: str
    url: DatabaseUrl
    schemas: tuple[str, ...]
    database: Database
    notes: tuple[str, ...] = ()

    @staticmethod
    def reflect(
        name: str, url: DatabaseUrl, schemas: Sequence[str] = (), tables: Sequence[str] = ()
    ) -> "SqlDomain":
        """Return a domain of the tables of a database that fit a pattern of `tables`, or of all.

        Raises `DatabaseError` if the database cannot be read, and `UnknownName` for a pattern that fits no table.
        """
        connection = open_database(url, schemas)
        try:
            reflected = reflect(connection, tables)
        finally:
            connection.close()
        return SqlDomain(name, url, tuple(schemas), reflected.database, reflected.notes)

    @property
    def executes(self) -> bool:
        """Whether queries can be executed on the database."""
        return self.url.kind in CONNECTIONS

    @property
    def password_variable(self) -> str:
        """The environment variable for the password of a server."""
        return f"{re.sub('[^A-Za-z0-9]', '_', self.name).upper()}_PASSWORD"

    @property
    def summary(self) -> str:
        """What was found, and what is not stored, in a sentence each."""
        columns = [column for table in self.database.tables for column in table.columns]
        listed = sum(column.values is not None for column in columns)
        found = (
            f"{len(self.database.tables)} tables and views, {len(columns)} columns, {listed} with listed values."
        )
        if self.url.password is None:
            return found
        return (
            f"{found}\nThe password is not stored: set {self.password_variable}, or add the server to ~/.pgpass."
        )

    @property
    def question(self) -> str:
        """A question to try."""
        return f"how many {Phrases(self.database).plural[self.database.tables[0].name]} are there?"

    def propose(self, count: int, seed: int) -> list[Example]:
        """Return up to `count` examples whose queries have an answer; raise `UsageError` if none is executed."""
        if not self.executes:
            raise UsageError(
                f"examples cannot be proposed: queries are not executed on {self.url.kind}", "Omit --examples."
            )
        executor = DatabaseExecutor(self.url, self.schemas)
        return propose(self.database, sql_grammar(self.database, Phrases(self.database)), executor, count, seed)

    def write(self, folder: Path, examples: Iterable[Example] = ()) -> None:
        """Write the folder, which must not exist; raise `UsageError` if it cannot be written."""
        files = {
            "domain.toml": self.settings(folder),
            SCHEMA_FILE: json.dumps(self.database.as_dict(), ensure_ascii=False, indent=1) + "\n",
            PHRASES_FILE: self.phrases(),
            EXAMPLES_FILE: "".join(
                to_json({"utterance": e.utterance, "program": e.program}) + "\n" for e in examples
            ),
        }
        try:
            folder.mkdir(parents=True)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{folder} cannot be created: {os_reason(error)}") from None

    def settings(self, folder: Path) -> str:
        """Return the content of domain.toml; a database file outside of the folder has its absolute path."""
        url = toml_text(self.stored_url(folder))
        if not self.executes:
            database = NOT_EXECUTED.format(url=url)
        else:
            is_server = self.url.path is None
            password = f'password_variable = "{self.password_variable}"  # or ~/.pgpass\n' if is_server else ""
            schemas = f"schemas = [{', '.join(map(toml_text, self.schemas))}]\n" if self.schemas else ""
            database = DATABASE.format(url=url, password=password, schemas=schemas)
        description = f"Questions about the database {self.source}."
        return SETTINGS.format(name=toml_text(self.name), description=toml_text(description), database=database)

    def stored_url(self, folder: Path) -> str:
        """Return the URL as it works from anywhere."""
        if self.url.path is None:
            return self.url.text
        if not is_unicode(str(self.url.path)):
            raise UsageError("the path of the database is not UTF-8 text", "Rename the file, or link to it.")
        path = Path(os.path.abspath(self.url.path))
        inside = Path(os.path.abspath(folder))
        return file_url(self.url.kind, path.relative_to(inside) if path.is_relative_to(inside) else path).text

    @property
    def source(self) -> str:
        """The database in a few words: the name of its file, or of the database of a server."""
        return (
            self.url.path.name if self.url.path is not None else self.url.text.rpartition("/")[2].partition("?")[0]
        )

    def phrases(self) -> str:
        """Return the content of phrases.toml: the phrases that are used without it, as comments."""
        phrases = Phrases(self.database)
        tables = (
            f"# {toml_text(name)} = [{toml_text(phrase)}, {toml_text(phrases.plural[name])}]"
            for name, phrase in phrases.singular.items()
        )
        columns = (
            f"# {toml_text(f'{table}.{name}')} = {toml_text(phrase)}"
            for (table, name), phrase in phrases.columns.items()
        )
        return PHRASES.format(tables="\n".join(tables), columns="\n".join(columns))


def toml_text(text: str) -> str:
    """Return a text as a string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
