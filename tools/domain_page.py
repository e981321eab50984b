"""The reference of `domain.toml`, from its schema."""

import ast
import inspect
import re
import textwrap
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from fewparse.domains.constraints import CONSTRAINT_KINDS
from fewparse.domains.schema import DomainTable, Table
from fewparse.registry import Registry
from fewparse.retrieve.retriever import RETRIEVERS
from fewparse.search.decoder import DECODERS
from pages import GENERATED, range_text, table

REGISTRIES: dict[str, Registry[Any]] = {
    "retriever": RETRIEVERS,
    "kind": CONSTRAINT_KINDS,
    "decoder": DECODERS,
}
"""The keys of `domain.toml` whose values are the names of a registry."""


def domain_page() -> str:
    """Return the page of the keys of `domain.toml`."""
    lines = [
        "# domain.toml",
        "",
        GENERATED,
        "",
        "All keys of `domain.toml`, from the schema by which it is read. "
        "[Domain folders](../domains.md) explains them with examples. "
        "Every key except `name` has a default; unknown keys are errors.",
        "",
        "## Top level",
        "",
        *keys_table(DomainTable, tables=False),
        "",
    ]
    shown: dict[type[Table], str] = {}
    for key, field in DomainTable.model_fields.items():
        inner = table_of(field)
        if inner is None or key in TARGET_TABLES:
            continue
        lines += [f"## [{key}]", "", docstrings(DomainTable).get(key) or meaning(inner), ""]
        keys = (
            [f"Its keys are those of [{shown[inner]}](#{shown[inner]})."] if inner in shown else keys_table(inner)
        )
        lines += [*keys, "", *(constraint_kinds() if key == "constraint" else [])]
        shown.setdefault(inner, key)
    return "\n".join(lines).rstrip() + "\n"


TARGET_TABLES = ("prompt",)
"""Tables that are written as one key: a value, or one per target."""


def constraint_kinds() -> list[str]:
    """Return the sections of the kinds of constraint that have keys of their own."""
    rows = []
    lines: list[str] = []
    for name in CONSTRAINT_KINDS:
        kind = CONSTRAINT_KINDS[name]
        rows.append([f"`{name}`", meaning(kind)])
        if kind.table is not None:
            own = keys_table(kind.table, only=set(docstrings(kind.table)))
            lines += [f'### kind = "{name}"', "", "Its own keys, or other defaults:", "", *own, ""]
    return [*table(("kind", "outputs"), rows), "", *lines]


def meaning(described: type) -> str:
    """Return what the first line of a docstring says after the name, with links to pages."""
    line = (inspect.getdoc(described) or "").splitlines()[0]
    text = line.partition(": ")[2] or line
    return re.sub(r"docs/(\w+)\.md", r"[\1](../\1.md)", text[0].upper() + text[1:])


def keys_table(owner: type[Table], tables: bool = True, only: set[str] | None = None) -> list[str]:
    """Return the table of the keys of a table, with or without those that are tables themselves."""
    meanings = docstrings(owner)
    rows = []
    for name, field in owner.model_fields.items():
        inner = table_of(field)
        if (only is not None and name not in only) or (inner and not tables and name not in TARGET_TABLES):
            continue
        key = field.alias or name
        rows.append([f"`{key}`", kind_of(key, field), default_text(field), meanings[name]])
    return table(("key", "value", "default", ""), rows)


def docstrings(owner: type[Table]) -> dict[str, str]:
    """Return the docstrings of the keys of a table: the strings after them in the source."""
    (body,) = (node.body for node in ast.parse(textwrap.dedent(inspect.getsource(owner))).body)  # type: ignore[attr-defined]
    found = {}
    for key, text in pairwise(body):
        if isinstance(key, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(key.target)] = str(text.value.value)
    return found


def table_of(field: FieldInfo) -> type[Table] | None:
    """Return the table that is the value of a key, if it is one."""
    for kind in get_args(field.annotation) or (field.annotation,):
        if isinstance(kind, type) and issubclass(kind, Table):
            return kind
    return None


def kind_of(key: str, field: FieldInfo) -> str:
    """Return what values a key has."""
    if key in REGISTRIES:
        return ", ".join(f"`{name}`" for name in REGISTRIES[key].bundled)
    if (inner := table_of(field)) is not None:
        return kind_of("", inner.model_fields["program"]) + ", or a table with one per target"
    kinds = [kind for kind in (get_args(field.annotation) or (field.annotation,)) if kind is not type(None)]
    if get_origin(kinds[0]) is Literal:
        kinds = list(get_args(kinds[0]))
    if all(isinstance(kind, str) for kind in kinds):
        return ", ".join(f"`{kind}`" for kind in kinds)
    plain = str(kinds[0])
    names = {"int": "integer", "float": "number", "bool": "`true` or `false`"}
    shown = next((text for name, text in names.items() if name in plain), "text")
    if get_args(field.annotation)[-1:] == (...,) or "tuple" in plain:
        return "list of texts"
    low, high = (bound(field, *names) for names in (("ge", "gt"), ("le",)))
    return shown + range_text(low, high)


def bound(field: FieldInfo, *names: str) -> float | None:
    """Return a bound of a number, if it has one."""
    return next((getattr(each, name) for each in field.metadata for name in names if hasattr(each, name)), None)


def default_text(field: FieldInfo) -> str:
    """Return the default of a key."""
    value = field.default
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, Table):
        values = value.model_dump()
        return ", ".join(f"`{value}`" for value in dict.fromkeys(values.values()))
    if value is None or value in ("", ()):
        return ""
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{each}"' for each in value) + "]`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
