"""The configuration of an experiment: a grid of models, domains and options, and its cells."""

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, Strict

from fewparse.domains.constraints import CONSTRAINT_KINDS
from fewparse.domains.fields import in_range, name_in
from fewparse.domains.schema import Table, validated
from fewparse.errors import DomainError, UsageError
from fewparse.example import Target
from fewparse.files import parse_toml, read_text
from fewparse.limits import SETTINGS_BYTES
from fewparse.lm.load import EMBEDDED
from fewparse.retrieve.retriever import RETRIEVERS, Order
from fewparse.search.decoder import DECODERS

T = TypeVar("T")
MAX_CELLS = 10_000


def as_list(value: object) -> object:
    """Return a single value as a list of one."""
    return value if isinstance(value, list | tuple) else [value]


Values = Annotated[tuple[T, ...], Strict(False), BeforeValidator(as_list), Field(min_length=1)]
"""One value or several; absent means the setting of the domain."""
Number = Annotated[float, Strict(False)]


class GridTable(Table):
    """[[grid]]: the values of each option; the cells are all their combinations."""

    domain: Values[str]
    model: Values[str] = (EMBEDDED,)
    paper: Values[bool] = ()
    target: Values[Target] = ()
    prompt: Values[str] = ()
    description_lines: Values[Annotated[int, in_range("description_lines")]] = ()
    retriever: Values[Annotated[str, name_in(RETRIEVERS)]] = ()
    retriever_model: Values[str] = ()
    examples: Values[Annotated[int, in_range("examples")]] = ()
    order: Values[Order] = ()
    fold: Values[bool] = ()
    pool: Values[Annotated[int, Field(ge=1)]] = ()
    adapter: Values[str] = ()
    constraint: Values[Annotated[str, name_in(CONSTRAINT_KINDS)]] = ()
    grammar: Values[str] = ()
    copy_text: Annotated[Values[bool], Field(alias="copy")] = ()
    seed: Values[Annotated[int, in_range("seed")]] = ()
    constrained: Values[bool] = ()
    server_grammar: Values[bool] = ()
    decoder: Values[Annotated[str, name_in(DECODERS)]] = ()
    width: Values[Annotated[int, in_range("width")]] = ()
    temperature: Values[Annotated[Number, in_range("temperature")]] = ()
    max_tokens: Values[Annotated[int, in_range("max_tokens")]] = ()
    rounds: Values[Annotated[int, in_range("rounds")]] = ()
    alternatives: Values[Annotated[int, in_range("alternatives")]] = ()
    free_back_off: Values[bool] = ()
    free_branching: Values[bool] = ()
    forced_spans: Values[bool] = ()
    margin: Values[Annotated[Number, in_range("margin")]] = ()
    rerank: Values[Annotated[Number, in_range("rerank")]] = ()
    vote: Values[bool] = ()

    def cells(self) -> "list[Cell]":
        """Return all combinations of the values, without those that differ only in options without effect."""
        given = {AXIS_NAMES.get(name, name): getattr(self, name) for name in self.model_fields_set | {"model"}}
        names = [name for name in AXES if name in given]
        combinations = itertools.product(*(given[name] for name in names))
        return [Cell(relevant(dict(zip(names, values, strict=True)))) for values in combinations]


AXIS_NAMES = {name: field.alias for name, field in GridTable.model_fields.items() if field.alias}
AXES = tuple(AXIS_NAMES.get(name, name) for name in GridTable.model_fields)
"""The options that a grid can vary. Those of the prompt come first: cells that share a prompt are adjacent."""


class RemoteTable(Table):
    """[remote]: the connection to models behind a server; the options of `fewparse eval` of the same names."""

    base_url: str | None = None
    max_concurrency: Annotated[int | None, Field(ge=1)] = None
    timeout: Number | None = None
    deadline: Number | None = None
    max_tokens_total: Annotated[int | None, Field(ge=1)] = None
    max_cost: Annotated[Number | None, Field(ge=0)] = None
    cache: bool = True
    context_length: Annotated[int | None, Field(ge=1)] = None


class ExperimentTable(Table):
    """The whole file: the grids, and which items of the domains are parsed.

    With `trace`, the events of every search are recorded.
    """

    name: str = ""
    split: str = "test"
    limit: Annotated[int | None, Field(ge=1)] = None
    trace: bool = False
    grid: Annotated[tuple[GridTable, ...], Strict(False), BeforeValidator(as_list), Field(min_length=1)]
    remote: RemoteTable = RemoteTable()

    def cells(self) -> "tuple[Cell, ...]":
        """Return the distinct cells of all grids, in order; raise `UsageError` if there are too many."""
        distinct = dict.fromkeys(cell for grid in self.grid for cell in grid.cells())
        if len(distinct) > MAX_CELLS:
            raise UsageError(f"the grid has {len(distinct):,} cells, more than {MAX_CELLS:,}", "Use fewer values.")
        return tuple(distinct)


@dataclass(frozen=True)
class Cell:
    """One combination of the grid: the options that it sets, by name."""

    options: Mapping[str, Any]

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def domain(self) -> str:
        """The name or folder of the domain."""
        return str(self.options["domain"])

    @property
    def model(self) -> str:
        """The name of the model."""
        return str(self.options["model"])

    @cached_property
    def id(self) -> str:
        """Identifies the cell: a hash of its options."""
        text = json.dumps(dict(self.options), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def label(self, names: Sequence[str]) -> str:
        """Return the values of these options in words, for tables; the domain's own settings are not named."""
        return ", ".join(in_words(name, self.options[name]) for name in names if name in self.options)


def relevant(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options without those that have no effect under the decoder or the model that is given."""
    decoder = options.get("decoder")
    without: set[str] = set()
    if decoder is not None and not DECODERS[decoder].samples:
        without |= {"temperature", "rounds", "free_back_off", "free_branching", "margin"}
    if decoder == "greedy":
        without |= {"width"}
    if decoder == "sampling":
        without |= {"rounds", "free_back_off", "free_branching", "margin"}
    if options.get("retriever_model") == options["model"]:
        without |= {"retriever_model"}
    return {name: value for name, value in options.items() if name not in without}


def varying(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the options in which cells differ, in the order of `AXES`."""
    return tuple(name for name in AXES if len({repr(cell.options.get(name)) for cell in cells}) > 1)


def in_words(name: str, value: object) -> str:
    """Return an option and its value for a label: names without their option, flags in words."""
    match name, value:
        case (("domain" | "model" | "target" | "decoder"), _):
            return str(value)
        case "constrained", _:
            return "constrained" if value else "unconstrained"
        case "width", _:
            return f"W={value}"
        case "temperature", _:
            return f"T={value:g}"
        case _, bool():
            return name.replace("_", " ") if value else f"no {name.replace('_', ' ')}"
    return f"{name.replace('_', ' ')} {value}"


def read_experiment(path: Path) -> ExperimentTable:
    """Read the file of an experiment; every mistake is a `DomainError` with its line."""
    source = read_text(path, DomainError, SETTINGS_BYTES)
    return validated(ExperimentTable, parse_toml(source, path), source, path)
