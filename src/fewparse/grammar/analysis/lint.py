"""What is probably wrong with a grammar, said so that one knows what to do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fewparse.grammar.analysis.statistics import Named, SideStatistics, statistics
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import SynchronousGrammar

Level = Literal["error", "warning", "note"]
LISTED = 5


@dataclass(frozen=True)
class Finding:
    """Something to know; an error is something that cannot work as it stands."""

    level: Level
    kind: str
    message: str
    place: str | None = None


def grammar_findings(grammar: Grammar | SynchronousGrammar) -> Iterator[Finding]:
    """What can never be used, what has no end, and what cannot be told apart."""
    found = statistics(grammar)
    for name, side in found.sides.items():
        yield from side_findings(f"{name} side" if len(found.sides) > 1 else "grammar", side)
    for shared in found.shared_utterances:
        message = f"one utterance of `{shared.name}` stands for {len(shared.programs)} programs"
        yield Finding("note", "ambiguity", message, str(shared.place) if shared.place else None)


def side_findings(side: str, found: SideStatistics) -> Iterator[Finding]:
    """The findings of one side."""
    if found.least_depth is None:
        yield Finding("error", "nothing derived", f"{side}: no text at all is derived from its start")
        return
    kinds: dict[str, tuple[Sequence[Named], str]] = {
        "undefined": (found.undefined, "used and without productions"),
        "unproductive": (found.unproductive, "derives no text"),
        "unreachable": (found.unreachable, "never reached from the start"),
    }
    for kind, (names, what) in kinds.items():
        if names:
            listed = ", ".join(named.name for named in names[:LISTED])
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            place = names[0].place
            yield Finding("warning", kind, f"{side}: {what}: {listed}{more}", str(place) if place else None)
    for circle in found.cycles[:LISTED]:
        message = f"{side}: {' -> '.join((*circle, circle[0]))}: a text of these has derivations without end"
        yield Finding("warning", "cycle", message)
