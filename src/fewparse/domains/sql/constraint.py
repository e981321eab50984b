"""The constraint `sql`: queries over exactly the tables and columns of a database."""

import json
import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, ValidationError

from fewparse.domains.constraints import GrammarConstraint, Quotation
from fewparse.domains.fields import FileName, Names
from fewparse.domains.functions import database_executor
from fewparse.domains.schema import ConstraintTable
from fewparse.domains.sql.cache import SqlCache
from fewparse.domains.sql.connection import open_database
from fewparse.domains.sql.database import Database
from fewparse.domains.sql.describe import describe
from fewparse.domains.sql.english import Phrases
from fewparse.domains.sql.grammar import FREE_TEXT, sql_grammar
from fewparse.domains.sql.reflect import reflect
from fewparse.domains.sql.value_sets import value_sets
from fewparse.domains.trust import not_trusted
from fewparse.errors import DataUnavailable, DomainError, InvalidProgram, SqlError, UsageError
from fewparse.example import Target
from fewparse.files import exists, read_text
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.limits import GRAMMAR_BYTES
from fewparse.memory import COLLECTION


class SqlTable(ConstraintTable):
    """[constraint] with kind = "sql"."""

    schema_file: Annotated[FileName | None, Field(alias="schema")] = None
    """The file of the database's schema; without it, the schema is read from the database."""
    phrases: FileName | None = None
    """The file of words for tables and columns."""
    copy_rules: Annotated[Names, Field(alias="copy")] = FREE_TEXT
    """Rules of the grammar whose text must be copied from the utterance."""
    scorer: ScorerName = "shortest"  # canonical English has one query: nothing is to be learned
    """What ranks several programs of one canonical utterance."""


class SqlConstraint(GrammarConstraint):
    """`kind = "sql"`: queries over the tables of the file `schema`, or of the database."""

    table = SqlTable
    settings: SqlTable
    quotation: ClassVar[Quotation] = Quotation(re.compile(r"(\w+) = '([^']+)'"), "{} = '{}'")
    """The kind of a text is the column that it is compared with."""

    @property
    def synchronous(self) -> bool:
        """Always true: every query has canonical English."""
        return True

    @property
    def copied_rules(self) -> tuple[str, ...]:
        """The rules of free text that the grammar has: a schema may have no text."""
        rules = self.domain.grammar.rules
        return tuple(name for name in self.settings.copy_rules if name in rules)

    @cached_property
    def grammar(self) -> SynchronousGrammar:
        """The grammar of queries and their English, made from the schema."""
        with COLLECTION.paused():
            return self._cache.grammar(lambda: sql_grammar(self.database, self.phrases))

    @cached_property
    def _cache(self) -> SqlCache:
        return SqlCache(self.database, self.phrases)

    @property
    def utterances(self) -> dict[str, str]:
        """Canonical utterances of queries that are known, also from earlier runs."""
        return self._cache.utterances

    def outputs_sha256(self, target: Target) -> str | None:
        """Return None: new rows can change the grammar, which has the values of some columns."""
        return None

    def store(self) -> None:
        """Store what is known about queries for later runs."""
        self._cache.store_queries()

    @cached_property
    def database(self) -> Database:
        """The schema: of the file, or else read from the database."""
        if self.settings.schema_file is None:
            return self._reflected()
        return read_schema(self.domain.data_file(self.settings.schema_file))

    def _reflected(self) -> Database:
        domain = self.domain
        if domain.table.database is None:
            raise UsageError(
                f"the constraint of the domain {domain.name} has no schema",
                'Set schema = "schema.json" under [constraint], or url under [database], in domain.toml.',
            )
        if not domain.allow_code:
            raise UsageError(*not_trusted(domain.folder, "database"))
        executor = database_executor(domain.table.database, domain.data)
        path = executor.url.path
        if domain.data != domain.folder and path is not None and not exists(path):
            name = domain.name.partition("/")[0]
            raise DataUnavailable(
                f"the database of {domain.name} is not there: {path}", f"Get it: fewparse data get {name}"
            )
        connection = open_database(executor.url, domain.table.database.schemas)
        try:
            return reflect(connection).database
        finally:
            connection.close()

    @cached_property
    def phrases(self) -> Phrases:
        """How tables and columns are called in English."""
        if self.settings.phrases is None:
            return Phrases(self.database)
        return Phrases.read(self.domain.data_file(self.settings.phrases), self.database)

    @property
    def known_texts(self) -> dict[str, list[str]]:
        """The known values of all columns, by the name of the column."""
        texts: dict[str, dict[str, None]] = {}
        for (_, column), values in value_sets(self.database).items():
            texts.setdefault(column, {}).update(dict.fromkeys(value for value in values if "'" not in value))
        return {column: list(values) for column, values in texts.items()}

    @property
    def description(self) -> str:
        """A line for each table."""
        return describe(self.database)

    def canonical_program(self, program: str) -> str:
        """Return a query in the normal form; raise `InvalidProgram` if it is none over the schema."""
        normal_forms = self._cache.normal_forms
        if program not in normal_forms:
            try:
                from fewparse.domains.sql.normal_form import canonical_sql  # slow to import

                normal = canonical_sql(program, self.database)
            except SqlError as error:
                raise invalid_program(error, program) from None
            normal_forms |= {program: normal, normal: normal}
        return normal_forms[program]


def invalid_program(error: SqlError, program: str) -> InvalidProgram:
    """Return the error of a query as that of an example's program: its reason and its offset."""
    reason = error.message.partition("\n")[0].partition(": ")[2]
    at = None
    if error.line is not None and error.column is not None:
        at = sum(len(line) + 1 for line in program.split("\n")[: error.line - 1]) + error.column - 1
    return InvalidProgram(f"is not in the language of queries: {reason}", at, error.hint)


def read_schema(path: Path) -> Database:
    """Return the schema of a file; raise `DomainError` if it is not one."""
    text = read_text(path, DomainError, GRAMMAR_BYTES)
    try:
        return Database.from_dict(json.loads(text))
    except json.JSONDecodeError as error:
        raise DomainError(f"not readable JSON: {error.msg}", path, error.lineno, error.colno, text) from None
    except (ValueError, RecursionError) as error:
        reason = error.errors()[0] if isinstance(error, ValidationError) else None
        where = "" if reason is None else f"`{'.'.join(map(str, reason['loc']))}`: {reason['msg']}"
        hint = "Make it again: fewparse new NAME --from-database URL"
        raise DomainError(f"not the schema of a database: {where or error}", path, hint=hint) from None
