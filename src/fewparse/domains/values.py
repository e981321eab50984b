"""A domain from Python values instead of a folder: its settings, examples, grammar and functions, validated."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from pydantic import ValidationError

from fewparse.arguments import check_type, described, refuse
from fewparse.domains.execution import call_directly
from fewparse.domains.functions import Function
from fewparse.domains.schema import DomainTable, ExecutionPolicy, owner_of, schema_for
from fewparse.errors import GrammarError, UnknownName, UsageError
from fewparse.example import Example, Target
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.readers.load import DIALECTS, Dialect, load_grammar
from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.text import is_unicode

GrammarSource = str | Path | Grammar | SynchronousGrammar
ExampleSource = Example | tuple[str, str]


ARROW = re.compile(r"^\s*\w+(\(.*\))?\s+\S*>", re.MULTILINE)
"""The start of a synchronous rule."""


class DomainSettings(TypedDict, total=False):
    """Settings of a domain without a folder: keys and tables of `domain.toml`."""

    description: str
    target: Target
    execute: ExecutionPolicy
    paper: bool | None
    prompt: str | Mapping[str, str]
    retrieve: Mapping[str, Any]
    constraint: Mapping[str, Any]
    search: Mapping[str, Any]
    decision: Mapping[str, Any]


class Given(NamedTuple):
    """What a domain without a folder has instead of files; a domain of a folder has none of it."""

    language: Grammar | SynchronousGrammar | None = None
    executor: Function | None = None
    normal_form: Function | None = None


NOTHING_GIVEN = Given()


class DomainParts(DomainSettings, total=False):
    """Keyword arguments of `Domain`: settings, or the fields that `load_domain` and `dataclasses.replace` pass."""

    table: DomainTable
    settings_folder: Path | None
    examples_folder: Path | None
    given: Given
    own_grammar: bool
    underivable: int
    isolate_grammar: bool
    allow_code: bool
    installed: bool


def given_values(
    name: str | None,
    grammar: GrammarSource | None,
    dialect: Dialect | None,
    executor: Callable[[str], Any] | None,
    normal_form: Callable[[str], Any] | None,
    settings: Mapping[str, Any],
) -> tuple[DomainTable, Given]:
    """Return the settings of a domain, and what it has instead of files; a wrong value is a `FewparseError`."""
    check_type("`name`", name, str, 'the name of the domain, such as Domain(name="home", ...)')
    for key in settings:
        if key not in DomainSettings.__annotations__:
            raise UnknownName("setting", key, DomainSettings.__annotations__)
    constraint = settings.get("constraint", {})
    if not isinstance(constraint, Mapping):
        refuse("`constraint`", constraint, 'a table, such as constraint={"merge": "loose"}')
    kind = constraint.get("kind", "induced" if grammar is None else "grammar")
    if grammar is not None and kind != "grammar":
        raise UsageError(f"a grammar is given, but the constraint is `{kind}`", "Omit one of them.")
    if grammar is None and kind == "grammar":
        raise UsageError("the constraint is `grammar`, but no grammar is given", "Pass it: grammar=...")
    language = None if grammar is None else read_language(grammar, dialect, constraint.get("start", "start"))
    notation = "scfg" if isinstance(language, SynchronousGrammar) else "lark"
    stated = {key: value for key, value in settings.items() if value is not None}
    table = {**stated, "name": name, "constraint": {**constraint, "kind": kind, "dialect": notation}}
    functions = (given_function("executor", executor), given_function("normal_form", normal_form))
    return validated_table(table), Given(language, *functions)


def read_language(source: GrammarSource, dialect: Dialect | None, start: Any) -> Grammar | SynchronousGrammar:
    """Return a grammar given as text, as the path of a file or folder, or as an object.

    Text is in the dialect `lark` unless another one is given.
    """
    if dialect is not None and dialect not in DIALECTS:
        raise UnknownName("dialect", str(dialect), DIALECTS)
    if isinstance(source, Grammar | SynchronousGrammar):
        return source
    if isinstance(source, Path):
        return load_grammar(source, dialect, start)
    if not isinstance(source, str):
        refuse("`grammar`", source, "the text of a grammar, the path of one (pathlib.Path), or a `Grammar`")
    if "\n" not in source and source.endswith((".lark", ".scfg")):
        raise UsageError(f"`grammar` is the text of a grammar, not {source!r}", f"Pass Path({source!r}).")
    if dialect == "scfg":
        return read_scfg_text(source, start=start)
    try:
        return read_grammar(source, start=start)
    except GrammarError as error:
        if dialect is None and ARROW.search(source):
            error.hint = f'{error.hint or ""} For synchronous rules, pass dialect="scfg".'.strip()
        raise


def given_examples(examples: Iterable[ExampleSource]) -> tuple[Example, ...]:
    """Return examples given as `Example` or as pairs of utterance and program."""
    if isinstance(examples, str | bytes | Mapping) or not isinstance(examples, Iterable):
        refuse("`examples`", examples, "a list of examples, or of pairs (utterance, program)")
    return tuple(given_example(number, example) for number, example in enumerate(examples, 1))


def given_example(number: int, given: Any) -> Example:
    """Return one example; raise `UsageError` with its number, counted from 1, if it is wrong."""
    what = f"example {number}"
    if isinstance(given, tuple | list) and len(given) == 2:
        given = Example(*given)
    if not isinstance(given, Example):
        refuse(what, given, "an `Example`, or a pair (utterance, program)")
    for key in Example.__dataclass_fields__:
        value = getattr(given, key)
        if not isinstance(value, str) and not (key == "canonical" and value is None):
            refuse(f"the {key} of {what}", value, "a text")
        if value is not None and not is_unicode(value):
            raise UsageError(f"the {key} of {what} is not Unicode text")
    for key in ("utterance", "program"):
        if not getattr(given, key).strip():
            raise UsageError(f"the {key} of {what} is empty")
    return given


def given_function(what: str, function: Any) -> Function | None:
    """Return a function of the caller, run in this process; every failure of it is an `ExecutionError`."""
    if function is None:
        return None
    if not callable(function):
        refuse(f"`{what}`", function, "a function that takes a program and returns its answer")
    return partial(call_directly, function)


def validated_table(values: dict[str, Any]) -> DomainTable:
    """Return settings as the schema of `domain.toml`; raise `UsageError` for the first mistake."""
    schema = schema_for(values)
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
    where = [part for part in first["loc"] if isinstance(part, str)]
    if first["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in owner_of(schema, where).model_fields.items()]
        raise UnknownName("setting", ".".join(where), [".".join([*where[:-1], name]) for name in known])
    message = first["msg"].partition(" or instance of")[0]
    if first["type"] == "string_pattern_mismatch":
        message = "it must consist of letters, digits, `_`, `.` and `-`"
    raise UsageError(f"`{'.'.join(where)}` is {described(first['input'])}: {message}")
