"""SMCalFlow's grammar knows the signatures, not a list of programs: whatever the type tables allow can be said.

The tables are those that were published with the dataset. From them alone, without our grammar, a small program is
built around every overload, getter and field; each of these programs must have a canonical utterance that means it
and nothing else.
"""

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from fewparse.domains.domain import Domain
from fewparse.domains.load import find_domain

TABLES = ("types.csv", "specialTypes.csv")
LITERALS = {
    "AttendeeType": '#(AttendeeType "Optional")',
    "Boolean": "#(Boolean true)",
    "Constraint[Person]": "(Constraint[Person])",
    "DayOfWeek": '#(DayOfWeek "FRIDAY")',
    "Holiday": '#(Holiday "EarthDay")',
    "List[Path]": "#(List[Path] [])",
    "List[Recipient]": "#(List[Recipient] [])",
    "LocationKeyphrase": '#(LocationKeyphrase "attic")',
    "Month": '#(Month "MAY")',
    "Number": "#(Number 7)",
    "Path": '#(Path "start")',
    "PersonName": '#(PersonName "Zoe")',
    "PlaceFeature": '#(PlaceFeature "Takeout")',
    "RespondComment": '#(RespondComment "late")',
    "RespondShouldSend": "#(RespondShouldSend true)",
    "ResponseStatusType": '#(ResponseStatusType "Accepted")',
    "ShowAsStatus": '#(ShowAsStatus "Busy")',
    "String": '#(String "tea")',
    "WeatherQuantifier": '#(WeatherQuantifier "Max")',
}
"""One value of each type whose values the tables only declare, or lack."""
NEVER_WRITTEN = {"Constraint.apply", "Lambda.construct", "arg", "Some", "defaulted_"}
"""Lambdas and options: programs of the published form have neither."""
SAME_TEXT = {"ClobberWrapper", "NewClobberWrapper"}
"""Their overloads differ by nothing but the result, so one is enough: the dynamic one."""
HOLE = "\0"

Kind = Literal["call", "getter", "field", "property", "literal"]


class Signature(NamedTuple):
    """A way to write a type."""

    kind: Kind
    name: str
    result: str
    arguments: tuple[tuple[str, str], ...] = ()

    def write(self, *terms: str) -> str:
        match self.kind:
            case "getter":
                return f"(:{self.name} {terms[0]})"
            case "property":
                return f'#(WeatherProp "{self.name}")'
            case "literal":
                return self.name
        named = self.kind == "field" or self.name[0].isupper()
        words = [
            f":{name} {term}" if named else term for (name, _), term in zip(self.arguments, terms, strict=True)
        ]
        return f"({' '.join([self.name, *words])})"

    @property
    def shape(self) -> str:
        """What is written, whatever the types."""
        return self.write(*(HOLE for _ in self.arguments))

    def takes(self, fillers: "list[Piece]") -> bool:
        return all(kind in filler.types for (_, kind), filler in zip(self.arguments, fillers, strict=True))


def signature(name: str, result: str, *cells: str) -> Signature | None:
    """A row of a type table; None for the rows that only declare a type."""
    arguments = tuple((before, after) for before, _, after in (cell.partition(": ") for cell in cells))
    if name.startswith("Setter:"):
        return Signature("field", result, result, arguments[1:])
    if name.startswith("#"):
        return None
    if name == "item" or ("." in name and not name.endswith((".apply", ".construct", ".Nil"))):
        return Signature("getter", name.rpartition(".")[2], result, arguments)
    if result.startswith("Lambda[") and not arguments:
        return Signature("property", name, result)
    return Signature("call", name, result, arguments)


class Piece(NamedTuple):
    """A term, with the types that its words can have; or a sentence with a hole, with those that the hole can."""

    types: frozenset[str]
    text: str

    @property
    def rank(self) -> tuple[int, int, str]:
        """Words that tell their type come before short ones."""
        return len(self.types), len(self.text), self.text


class Tables:
    """All signatures; a term for each type, and a sentence with a hole for each type."""

    def __init__(self, folder: Path) -> None:
        rows = [row for name in TABLES for row in csv.reader((folder / name).read_text().splitlines())]
        read = [signature(*filter(None, row)) for row in rows]
        found = [s for s in read if s is not None and is_written(s)]
        found += [Signature("call", s.name, s.result) for s in found if s.kind == "field"]
        found += [Signature("literal", text, result) for result, text in LITERALS.items()]
        self.signatures = list(dict.fromkeys(found))
        self._overloads: dict[str, list[Signature]] = {}
        for s in self.signatures:
            self._overloads.setdefault(s.shape, []).append(s)
        self.terms: dict[str, Piece] = {}
        while self._better_terms():
            pass
        self.sentences = {"Unit": Piece(frozenset({"Unit"}), HOLE)}
        while self._better_sentences():
            pass

    def _better_terms(self) -> int:
        return sum([improve(self.terms, s.result, self.term(s)) for s in self.signatures])

    def _better_sentences(self) -> int:
        return sum([improve(self.sentences, *place) for s in self.signatures for place in self._places(s)])

    def term(self, s: Signature) -> Piece | None:
        """A use of a signature; None where there is nothing to fill it with."""
        fillers = self._fillers(s)
        if fillers is None:
            return None
        types = {other.result for other in self._overloads[s.shape] if other.takes(fillers)}
        return Piece(frozenset(types), s.write(*(filler.text for filler in fillers)))

    def _fillers(self, s: Signature) -> list[Piece] | None:
        found = [self.terms[kind] for _, kind in s.arguments if kind in self.terms]
        return found if len(found) == len(s.arguments) else None

    def _places(self, s: Signature) -> Iterator[tuple[str, Piece]]:
        """The sentences that a signature makes for the types of its arguments."""
        outer, fillers = self.sentences.get(s.result), self._fillers(s)
        if outer is None or fillers is None:
            return
        for i, (_, kind) in enumerate(s.arguments):
            anything = Piece(frozenset(self.terms), HOLE)
            holed = [*fillers[:i], anything, *fillers[i + 1 :]]
            possible = [o for o in self._overloads[s.shape] if o.result in outer.types and o.takes(holed)]
            text = s.write(*(filler.text for filler in holed))
            yield kind, Piece(frozenset(o.arguments[i][1] for o in possible), outer.text.replace(HOLE, text))

    def program(self, s: Signature) -> str | None:
        """A small program that uses a signature; None where no sentence can."""
        outer, term = self.sentences.get(s.result), self.term(s)
        return None if outer is None or term is None else outer.text.replace(HOLE, term.text)


def improve(best: dict[str, Piece], kind: str, piece: Piece | None) -> bool:
    if piece is None or (kind in best and best[kind].rank <= piece.rank):
        return False
    best[kind] = piece
    return True


def is_written(s: Signature) -> bool:
    return s.name not in NEVER_WRITTEN and (s.name not in SAME_TEXT or s.result == "Dynamic")


@cache
def domain() -> Domain:
    return find_domain("smcalflow")


@pytest.fixture(scope="session")
def tables(smcalflow_data: Path) -> Tables:
    return Tables(smcalflow_data / "smcalflow" / "grammar")


def test_only_what_no_sentence_can_hold_is_left_out(tables: Tables) -> None:
    left_out = [s for s in tables.signatures if tables.program(s) is None]
    assert {s.result for s in left_out if s.result not in tables.sentences} == {
        "Constraint[Attendee]",
        "Constraint[Email]",
        "Constraint[FenceScope]",
        "Constraint[PlaceSearchResponse]",
        "Constraint[PleasantryCalendar]",
        "Constraint[TeamsChat]",
    }
    assert [(s.result, *s.arguments) for s in left_out if s.result in tables.sentences] == [
        ("Constraint[Event]", ("reminder", "Constraint[PeriodDuration]")),
        ("Constraint[Event]", ("sensitivity", "Constraint[Sensitivity]")),
    ]


@pytest.fixture(scope="session")
def programs(tables: Tables) -> dict[str, Signature]:
    found = {tables.program(s): s for s in reversed(tables.signatures)}
    return {program: s for program, s in found.items() if program is not None}


def test_every_signature_can_be_said_and_means_itself(programs: dict[str, Signature]) -> None:
    translator = domain().translator
    assert translator is not None
    assert len(programs) > 650
    for program, s in programs.items():
        said = translator.to_utterance(program)
        assert said.best is not None, f"{s}: {program} {said.error}"
        assert translator.to_program(said.best, k=2).texts == (program,), f"{s}: {said.best}"
