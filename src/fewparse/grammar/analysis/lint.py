"""Probable mistakes in a grammar: useless names, cycles, and utterances with several programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fewparse.errors import listed
from fewparse.grammar.analysis.statistics import LocatedName, SideStatistics, statistics
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import SynchronousGrammar

Level = Literal["error", "warning", "note"]
MAX_LISTED = 5


@dataclass(frozen=True)
class Finding:
    """A problem of a grammar or a domain; an error must be fixed before it can be used."""

    level: Level
    kind: str
    message: str
    location: str | None = None


def lint_grammar(grammar: Grammar | SynchronousGrammar) -> Iterator[Finding]:
    """Yield the findings of a grammar: useless names, cycles, and utterances with several programs."""
    found = statistics(grammar)
    for name, side in found.sides.items():
        yield from lint_side(f"{name} side" if len(found.sides) > 1 else "grammar", side)
    for shared in found.shared_utterances:
        message = f"one utterance of `{shared.name}` has {len(shared.programs)} programs"
        yield Finding("note", "ambiguity", message, str(shared.location) if shared.location else None)


def lint_side(side: str, found: SideStatistics) -> Iterator[Finding]:
    """Yield the findings of one side; `side` is its name in the messages."""
    if found.min_depth is None:
        yield Finding("error", "nothing derived", f"{side}: the start symbol derives no text")
        return
    useless: dict[str, tuple[Sequence[LocatedName], str]] = {
        "undefined": (found.undefined, "used but not defined"),
        "unproductive": (found.unproductive, "derives no text"),
        "unreachable": (found.unreachable, "not reachable from the start symbol"),
    }
    for kind, (names, problem) in useless.items():
        if names:
            location = names[0].location
            message = f"{side}: {problem}: {listed([named.name for named in names], MAX_LISTED)}"
            yield Finding("warning", kind, message, str(location) if location else None)
    for cycle in found.cycles[:MAX_LISTED]:
        message = (
            f"{side}: {' -> '.join((*cycle, cycle[0]))}: texts of these names have infinitely many derivations"
        )
        yield Finding("warning", "cycle", message)
