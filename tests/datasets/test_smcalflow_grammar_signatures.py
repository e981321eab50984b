"""SMCalFlow's grammar covers every signature of the published type tables.

From the tables alone, without the grammar, a small program is built for every overload, getter and field. Each of
these programs must have a canonical utterance that translates to this program only.
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
"""One value of each type whose values are not in the tables."""
NOT_IN_PROGRAMS = {"Constraint.apply", "Lambda.construct", "arg", "Some", "defaulted_"}
"""Lambdas and options, which do not occur in the published programs."""
SAME_ARGUMENTS = {"ClobberWrapper", "NewClobberWrapper"}
"""Functions whose overloads differ only in the result type; only the dynamic one is used."""
HOLE = "\0"

Kind = Literal["call", "getter", "field", "property", "literal"]


class Signature(NamedTuple):
    """A constructor of values of a type."""

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
        """The text with a hole for each argument."""
        return self.write(*(HOLE for _ in self.arguments))

    def accepts(self, fillers: "list[Piece]") -> bool:
        return all(kind in filler.types for (_, kind), filler in zip(self.arguments, fillers, strict=True))


def signature(name: str, result: str, *cells: str) -> Signature | None:
    """Read a row of a type table; return None for rows that only declare a type."""
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
    """A term with its possible types, or a sentence with a hole and the possible types of the hole."""

    types: frozenset[str]
    text: str

    @property
    def rank(self) -> tuple[int, int, str]:
        """The sort key: pieces with fewer possible types first, then shorter ones."""
        return len(self.types), len(self.text), self.text


class Tables:
    """All signatures, the best term of each type, and the best sentence with a hole of each type."""

    def __init__(self, folder: Path) -> None:
        rows = [row for name in TABLES for row in csv.reader((folder / name).read_text().splitlines())]
        read = [signature(*filter(None, row)) for row in rows]
        found = [s for s in read if s is not None and occurs(s)]
        found += [Signature("call", s.name, s.result) for s in found if s.kind == "field"]
        found += [Signature("literal", text, result) for result, text in LITERALS.items()]
        self.signatures = list(dict.fromkeys(found))
        self._overloads: dict[str, list[Signature]] = {}
        for s in self.signatures:
            self._overloads.setdefault(s.shape, []).append(s)
        self.terms: dict[str, Piece] = {}
        while self._improve_terms():
            pass
        self.sentences = {"Unit": Piece(frozenset({"Unit"}), HOLE)}
        while self._improve_sentences():
            pass

    def _improve_terms(self) -> int:
        return sum([improve(self.terms, s.result, self.term(s)) for s in self.signatures])

    def _improve_sentences(self) -> int:
        return sum([improve(self.sentences, *place) for s in self.signatures for place in self._sentences(s)])

    def term(self, s: Signature) -> Piece | None:
        """Return a term with this signature; None if an argument type has no term."""
        fillers = self._fillers(s)
        if fillers is None:
            return None
        types = {other.result for other in self._overloads[s.shape] if other.accepts(fillers)}
        return Piece(frozenset(types), s.write(*(filler.text for filler in fillers)))

    def _fillers(self, s: Signature) -> list[Piece] | None:
        found = [self.terms[kind] for _, kind in s.arguments if kind in self.terms]
        return found if len(found) == len(s.arguments) else None

    def _sentences(self, s: Signature) -> Iterator[tuple[str, Piece]]:
        """Yield a sentence with a hole for each argument type of a signature."""
        outer, fillers = self.sentences.get(s.result), self._fillers(s)
        if outer is None or fillers is None:
            return
        for i, (_, kind) in enumerate(s.arguments):
            anything = Piece(frozenset(self.terms), HOLE)
            holed = [*fillers[:i], anything, *fillers[i + 1 :]]
            possible = [o for o in self._overloads[s.shape] if o.result in outer.types and o.accepts(holed)]
            text = s.write(*(filler.text for filler in holed))
            yield kind, Piece(frozenset(o.arguments[i][1] for o in possible), outer.text.replace(HOLE, text))

    def program(self, s: Signature) -> str | None:
        """Return a small program that uses a signature; None if no sentence can."""
        outer, term = self.sentences.get(s.result), self.term(s)
        return None if outer is None or term is None else outer.text.replace(HOLE, term.text)


def improve(best: dict[str, Piece], kind: str, piece: Piece | None) -> bool:
    if piece is None or (kind in best and best[kind].rank <= piece.rank):
        return False
    best[kind] = piece
    return True


def occurs(s: Signature) -> bool:
    return s.name not in NOT_IN_PROGRAMS and (s.name not in SAME_ARGUMENTS or s.result == "Dynamic")


@cache
def domain() -> Domain:
    return find_domain("smcalflow")


@pytest.fixture(scope="session")
def tables(smcalflow_data: Path) -> Tables:
    return Tables(smcalflow_data / "smcalflow" / "grammar")


def test_only_signatures_that_no_sentence_can_use_are_left_out(tables: Tables) -> None:
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


def test_every_signature_has_an_unambiguous_canonical_utterance(programs: dict[str, Signature]) -> None:
    translator = domain().translator
    assert translator is not None
    assert len(programs) > 650
    for program, s in programs.items():
        translation = translator.to_utterance(program)
        assert translation.best is not None, f"{s}: {program} {translation.error}"
        assert translator.to_program(translation.best, k=2).texts == (program,), f"{s}: {translation.best}"
