"""The schema of `domain.toml`, and its reader, which reports mistakes with their line.

The docstrings of tables and keys are the reference in docs/reference (`make reference`).
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic_core import PydanticCustomError

from fewparse.domains.constraints import CONSTRAINT_KINDS
from fewparse.domains.fields import DatabaseUrl, FileName, FunctionName, Names, in_range, name_in
from fewparse.domains.sql.execution import ALL_ROWS, MAX_ROWS
from fewparse.errors import MAX_NAME, DomainError, UnknownName
from fewparse.example import Target
from fewparse.files import parse_toml, read_text
from fewparse.grammar.induction.induce import MergeLevel
from fewparse.grammar.readers.load import Dialect
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.limits import SETTINGS_BYTES
from fewparse.retrieve.retriever import RETRIEVERS, Order
from fewparse.search.decoder import DECODERS

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
    """The template where the model generates programs."""
    canonical: FileName = "canonical"
    """The template where the model generates canonical utterances."""

    def __getitem__(self, target: Target) -> str:
        return self.program if target == "program" else self.canonical


class RetrieveTable(Table):
    """[retrieve]: which examples the prompt contains, and in which order."""

    retriever: Annotated[str, name_in(RETRIEVERS)] = "embedding"
    """How similarity to the utterance is measured."""
    examples: Annotated[int, in_range("examples")] = 10
    """Number of examples in the prompt."""
    order: Order = "best-last"
    """Order of the examples in the prompt, by similarity to the utterance."""
    fold: Names = ()
    """Rules of the grammar whose words count as one word in retrieval, such as names."""
    description_lines: Annotated[int, in_range("description_lines")] = 50
    """Maximum number of lines of the description in the prompt, the most similar ones."""


class ConstraintTable(Table):
    """[constraint]: which outputs are well-formed.

    A kind uses some of these settings (see `constraints.py`); one with its own settings extends this table.
    """

    kind: Annotated[str, name_in(CONSTRAINT_KINDS)] = "grammar"
    """What makes an output well-formed."""
    strings: FileName | None = None
    """For `trie`: a file of all outputs; without it, the outputs of the examples."""
    grammar: FileName = "grammar.lark"
    """The grammar: a file or a folder. `.scfg` files are synchronous grammars."""
    dialect: Dialect | None = None
    """The notation of the grammar, if the suffix of its name does not say it."""
    merge: MergeLevel = "typed"
    """How far an `induced` grammar generalises, from `strict` to `open`."""
    scorer: ScorerName = "learned"
    """What ranks several programs of one canonical utterance."""
    start: str = "start"
    """The start symbol of the grammar."""
    copy_rules: Annotated[Names, Field(alias="copy")] = ()
    """Rules of the grammar whose text must be copied from the utterance."""

    @field_validator("copy_rules")
    @classmethod
    def _are_rules(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        kind = info.data.get("kind")
        if names and kind is not None and not CONSTRAINT_KINDS[kind].can_copy:
            raise PydanticCustomError("copy", "the constraint `{kind}` has no rules to copy", {"kind": kind})
        return names


Tokens = Annotated[int, in_range("max_tokens")]


class MaxTokensTable(Table):
    """`max_tokens`: the maximum length of an output for each target."""

    program: Tokens = 160
    """The limit where the model generates programs."""
    canonical: Tokens = 160
    """The limit where the model generates canonical utterances."""

    def __getitem__(self, target: Target) -> int:
        return self.program if target == "program" else self.canonical


class SearchTable(Table):
    """[search]: how to decode."""

    decoder: Annotated[str, name_in(DECODERS)] = "speculative"
    """The search algorithm."""
    width: Annotated[int, in_range("width")] = 5
    """Beam size, or number of samples per hypothesis."""
    temperature: Annotated[float, in_range("temperature")] = 0.5
    """Softmax temperature of speculative samples."""
    rerank: Annotated[float, in_range("rerank")] = 0.0
    """Weight of the word alignment with the utterance; 0 ranks by the model alone."""
    vote: bool = False
    """Whether candidates with the same answer add up their probabilities."""
    max_tokens: Annotated[MaxTokensTable, BeforeValidator(for_both_targets)] = MaxTokensTable()
    """Maximum length of an output in tokens; one number, or one per target."""


class DecisionTable(Table):
    """[decision]: the risk to accept where a program is executed without asking."""

    max_risk: Annotated[float, in_range("max_risk")] = 0.05
    """Share of executed programs that may be wrong."""


class FeedbackTable(Table):
    """[feedback]: whether parses, and what users say about them, are logged."""

    log: bool = False
    """Whether `fewparse parse` logs parses and what users say about them."""


class DatabaseTable(Table):
    """[database]: the database on which programs are executed as queries; see docs/sql.md."""

    url: DatabaseUrl
    """The URL of the database, without a password."""
    password_variable: Annotated[str | None, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)] = None
    """The environment variable that has the password."""
    schemas: Names = ()
    """The schemas of the database whose tables are used."""
    max_rows: Annotated[int, Field(ge=1, le=ALL_ROWS)] = MAX_ROWS
    """Maximum number of rows of an answer."""
    max_seconds: Annotated[float | None, Field(gt=0, le=86_400)] = None
    """Maximum time of a query; without it, the limit of executions."""


class DomainTable(Table):
    """The whole file."""

    name: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*$", max_length=100)
    ]
    """The name of the domain."""
    description: str = ""
    """What the domain is about; templates may show it to the model."""
    target: Target = "program"
    """What the model generates."""
    executor: FunctionName | None = None
    """The function that executes programs: `FILE.py:FUNCTION`, or one that a package declares."""
    execute: ExecutionPolicy = "always"
    """When programs are executed."""
    normal_form: FunctionName | None = None
    """The function that normalises programs, which are then compared by their normal forms."""
    accepted: FileName | None = None
    """A file of accepted values, by which function calls are compared."""
    paper: bool = False
    """Whether keys that are not set have the paper's values instead of the defaults."""
    pool: Annotated[int | None, Field(ge=1)] = None
    """How many training examples are used, from the first; without it, all."""
    prompt: Annotated[PromptTable, BeforeValidator(for_both_targets)] = PromptTable()
    """The prompt template: a bundled one or a `.toml` file of the folder; one name, or one per target."""
    retrieve: RetrieveTable = RetrieveTable()
    constraint: ConstraintTable = ConstraintTable()
    search: SearchTable = SearchTable()
    tuned: SearchTable | None = None
    """[search] with the domain's adapter: overrides its keys."""
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
