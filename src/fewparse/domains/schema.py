"""The schema of `domain.toml`, and its reader, which reports mistakes with their line."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_core import PydanticCustomError

from fewparse.domains.constraints import CONSTRAINT_KINDS
from fewparse.domains.sql.execution import ALL_ROWS, MAX_ROWS
from fewparse.domains.sql.urls import parse_url
from fewparse.errors import MAX_NAME, DomainError, UnknownName, UsageError
from fewparse.example import Target
from fewparse.files import MAX_NAME_BYTES, parse_toml, read_text
from fewparse.grammar.induction.induce import MergeLevel
from fewparse.grammar.readers.load import Dialect
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.limits import SETTINGS_BYTES
from fewparse.registry import Registry
from fewparse.retrieve.retriever import RETRIEVERS, Order
from fewparse.search.decoder import DECODERS
from fewparse.search.settings import RANGES
from fewparse.text import CONTROLS


def name_in(registry: Registry[Any]) -> AfterValidator:
    """Validate a name of a registry."""

    def check(name: str) -> str:
        try:
            return registry.check(name)
        except UnknownName as error:
            text = f"{error.message}. {error.hint}"
            raise PydanticCustomError("unknown_name", "{text}", {"text": text}) from None

    return AfterValidator(check)


def in_range(name: str) -> Any:
    """Return the constraint of a numeric option."""
    _, low, high = RANGES[name]
    return Field(ge=low, le=high)


def check_file_name(name: str) -> str:
    """Validate the path of a file of the folder; links out of the folder are found when the file is read."""
    parts = re.split(r"[/\\]", name)
    if not name or ".." in parts or parts[0] == "" or ":" in parts[0] or CONTROLS.search(name):
        raise PydanticCustomError("file_name", "must be the path of a file inside the domain folder, without `..`")
    if any(len(part.encode()) > MAX_NAME_BYTES for part in parts) or len(name) > MAX_PATH_CHARS:
        raise PydanticCustomError("file_name", "the path is too long")
    return name


def check_function_name(name: str) -> str:
    """Validate the name of a function: its file and function, or its module and function."""
    source, _, function = name.partition(":")
    if not function.isidentifier():
        raise PydanticCustomError("function", 'must name a file and a function, as in "executor.py:execute"')
    if source.endswith(".py"):
        check_file_name(source)
    elif not all(part.isidentifier() for part in source.split(".")):
        raise PydanticCustomError("function", "the file of a function must be a .py file of the folder")
    return name


MAX_PATH_CHARS = 1000

Names = Annotated[tuple[str, ...], Strict(False)]
FileName = Annotated[str, AfterValidator(check_file_name)]
FunctionName = Annotated[str, AfterValidator(check_function_name)]


ExecutionPolicy = Literal["always", "on-request"]
"""When programs are executed: always, or only where a caller asks for it, because they have effects."""


class Table(BaseModel):
    """A table of the file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


SomeTable = TypeVar("SomeTable", bound=Table)


def for_both_targets(value: object) -> object:
    """Return a table with a setting for each target; a plain value is for both."""
    return value if isinstance(value, dict | Table) else {"program": value, "canonical": value}


class PromptTable(Table):
    """`prompt`: the name of the prompt template for each target."""

    program: FileName = "lisp"
    canonical: FileName = "canonical"

    def __getitem__(self, target: Target) -> str:
        return self.program if target == "program" else self.canonical


class RetrieveTable(Table):
    """[retrieve]: which examples the prompt contains, and in which order."""

    retriever: Annotated[str, name_in(RETRIEVERS)] = "embedding"
    examples: Annotated[int, in_range("examples")] = 10
    order: Order = "best-last"
    fold: Names = ()
    description_lines: Annotated[int, in_range("description_lines")] = 50


class ConstraintTable(Table):
    """[constraint]: which outputs are well-formed.

    A kind uses some of these settings (see `constraints.py`); one with its own settings extends this table.
    """

    kind: Annotated[str, name_in(CONSTRAINT_KINDS)] = "grammar"
    strings: FileName | None = None
    grammar: FileName = "grammar.lark"
    dialect: Dialect | None = None
    merge: MergeLevel = "typed"
    scorer: ScorerName = "learned"
    start: str = "start"
    copy_rules: Annotated[Names, Field(alias="copy")] = ()


Tokens = Annotated[int, in_range("max_tokens")]


class MaxTokensTable(Table):
    """`max_tokens`: the maximum length of an output for each target."""

    program: Tokens = 160
    canonical: Tokens = 160

    def __getitem__(self, target: Target) -> int:
        return self.program if target == "program" else self.canonical


class SearchTable(Table):
    """[search]: how to decode."""

    decoder: Annotated[str, name_in(DECODERS)] = "speculative"
    width: Annotated[int, in_range("width")] = 5
    temperature: Annotated[float, in_range("temperature")] = 0.5
    rerank: Annotated[float, in_range("rerank")] = 0.0
    vote: bool = False
    max_tokens: Annotated[MaxTokensTable, BeforeValidator(for_both_targets)] = MaxTokensTable()


class DecisionTable(Table):
    """[decision]: the risk to accept where a program is executed without asking."""

    max_risk: Annotated[float, in_range("max_risk")] = 0.05


class FeedbackTable(Table):
    """[feedback]: whether parses, and what users say about them, are logged."""

    log: bool = False


def check_database_url(text: str) -> str:
    """Validate the URL of a database, which must not contain a password."""
    try:
        url = parse_url(text)
    except UsageError as error:
        raise PydanticCustomError("url", "{text}", {"text": f"{error.message}. {error.hint}"}) from None
    if url.password is not None:
        raise PydanticCustomError(
            "password",
            "the URL contains a password: remove it, and name an environment variable that has it in "
            "`password_variable`",
        )
    return url.text


class DatabaseTable(Table):
    """[database]: the database on which programs are executed as queries; see docs/sql.md."""

    url: Annotated[str, AfterValidator(check_database_url)]
    password_variable: Annotated[str | None, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)] = None
    schemas: Names = ()
    max_rows: Annotated[int, Field(ge=1, le=ALL_ROWS)] = MAX_ROWS
    max_seconds: Annotated[float | None, Field(gt=0, le=86_400)] = None


class DomainTable(Table):
    """The whole file."""

    name: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*$", max_length=100)
    ]
    description: str = ""
    target: Target = "program"
    executor: FunctionName | None = None
    execute: ExecutionPolicy = "always"
    normal_form: FunctionName | None = None
    accepted: FileName | None = None
    paper: bool = False
    pool: Annotated[int | None, Field(ge=1)] = None
    prompt: Annotated[PromptTable, BeforeValidator(for_both_targets)] = PromptTable()
    retrieve: RetrieveTable = RetrieveTable()
    constraint: ConstraintTable = ConstraintTable()
    search: SearchTable = SearchTable()
    tuned: SearchTable | None = None
    decision: DecisionTable = DecisionTable()
    feedback: FeedbackTable = FeedbackTable()
    database: DatabaseTable | None = None

    @field_validator("database")
    @classmethod
    def _is_the_only_executor(cls, database: DatabaseTable | None, info: ValidationInfo) -> DatabaseTable | None:
        if database is not None and info.data.get("executor") is not None:
            raise PydanticCustomError("executor", "a domain has an `executor` or a [database], not both")
        return database

    @property
    def has_executor(self) -> bool:
        """Whether programs can be executed: by a function, or on a database."""
        return self.executor is not None or self.database is not None

    def search_for(self, adapted: bool) -> SearchTable:
        """Return [search]; with an adapter, overridden by [tuned]."""
        if not adapted or self.tuned is None:
            return self.search
        return self.search.model_copy(
            update={name: getattr(self.tuned, name) for name in self.tuned.model_fields_set}
        )

    def own_keys(self, adapted: bool) -> set[str]:
        """Return the keys of options that the file sets itself, instead of using their defaults."""
        keys = {"prompt"} & self.model_fields_set
        return keys | self.retrieve.model_fields_set | self.search_for(adapted).model_fields_set


def read_domain_table(path: Path) -> DomainTable:
    """Read `domain.toml`; every mistake is a `DomainError` with its line."""
    source = read_text(path, DomainError, SETTINGS_BYTES)
    table = parse_toml(source, path)
    return validated(schema_for(table), table, source, path)


def validated(schema: type[SomeTable], table: dict[str, Any], source: str, path: Path) -> SomeTable:
    """Return a parsed file as its schema; a mistake is a `DomainError` with its line."""
    try:
        return schema.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = [part for part in first["loc"] if isinstance(part, str)]
        at = line_of(source, where)
        key = ".".join(where)[:MAX_NAME]
        if first["type"] == "extra_forbidden":
            owner = owner_of(schema, where)
            known = [f.alias or name for name, f in owner.model_fields.items()]
            hint = UnknownName("key", where[-1], known).hint
            raise DomainError(f"unknown key `{key}`", path, at, None, source, hint) from None
        shown = None if first["type"] == "password" else source  # the line contains it
        raise DomainError(f"`{key}`: {first['msg']}", path, at, None, shown) from None


def schema_for(table: dict[str, Any]) -> type[DomainTable]:
    """Return the schema of the file: its [constraint] may be of a kind with its own settings."""
    constraint = table.get("constraint")
    kind = constraint.get("kind") if isinstance(constraint, dict) else None
    own = CONSTRAINT_KINDS[kind].table if isinstance(kind, str) and kind in CONSTRAINT_KINDS else None
    return DomainTable if own is None else create_model("DomainTable", __base__=DomainTable, constraint=(own, ...))


def owner_of(schema: type[Table], where: list[str]) -> type[Table]:
    """Return the table that contains a key."""
    owner = schema
    for part in where[:-1]:
        annotation = owner.model_fields[part].annotation
        for kind in get_args(annotation) or (annotation,):
            if isinstance(kind, type) and issubclass(kind, Table):
                owner = kind
    return owner


def line_of(source: str, where: list[str]) -> int | None:
    """Return the line of a key: below its table's header, or the line of an inline table."""
    lines = source.splitlines()
    start = 0
    for part in where[:-1]:
        opening = re.compile(rf"\s*(?:\[+(?:[\w.]+\.)?{re.escape(part)}\]|{re.escape(part)}\s*(=))")
        found = next(((i, m) for i in range(start, len(lines)) if (m := opening.match(lines[i]))), None)
        if found and found[1][1]:
            return found[0] + 1
        start = found[0] + 1 if found else start
    key = re.compile(rf"\s*\[?{re.escape(where[-1])}\b")
    return next((i + 1 for i in range(start, len(lines)) if key.match(lines[i])), start or None)
