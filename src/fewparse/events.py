"""Events of a search, emitted as they happen: the trace, progress displays and logs read this stream."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fewparse.text import json_value

SampleOutcome = Literal["finished", "cut", "limit", "rejected"]
"""`finished`: ended where it may end; `cut`: valid up to some token; `limit`: reached the maximum length;
`rejected`: its first token was invalid."""


@dataclass(frozen=True)
class Prompted:
    """The prompt was built with these examples, pairs of utterance and output, best first; not part of a trace."""

    examples: tuple[tuple[str, str], ...]
    prompt: str


@dataclass(frozen=True)
class RoundStarted:
    """The model is about to be queried about these prefixes."""

    number: int
    prefixes: tuple[bytes, ...]


@dataclass(frozen=True)
class Sampled:
    """A sampled completion of a prefix: its tokens, how many of them were valid, and the outcome."""

    prefix: bytes
    pieces: tuple[bytes, ...]
    valid: int
    outcome: SampleOutcome


@dataclass(frozen=True)
class BackedOff:
    """One step of constrained decoding: from the alternatives of a sample (`free`), or by another request."""

    prefix: bytes
    free: bool
    choices: tuple[bytes, ...]


@dataclass(frozen=True)
class Branched:
    """An alternative to a token of a sample became a separate hypothesis and was kept in the beam."""

    prefix: bytes
    piece: bytes


@dataclass(frozen=True)
class Forced:
    """The constraint allowed one continuation only, which was appended without querying the model."""

    prefix: bytes
    span: bytes


@dataclass(frozen=True)
class Spelled:
    """No token that the model reported is valid; the constraint's forced span or characters are used instead."""

    prefix: bytes
    spans: tuple[bytes, ...]


@dataclass(frozen=True)
class Completed:
    """An output at the length limit was completed in the shortest well-formed way."""

    prefix: bytes
    completion: bytes


@dataclass(frozen=True)
class Kept:
    """A hypothesis that survived a round."""

    text: bytes
    score: float
    finished: bool


@dataclass(frozen=True)
class RoundEnded:
    """The hypotheses that survived a round, best first."""

    number: int
    kept: tuple[Kept, ...]


Event = Prompted | RoundStarted | Sampled | BackedOff | Branched | Forced | Spelled | Completed | RoundEnded
Listener = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """Ignore an event: the default listener."""


def tee(*listeners: Listener) -> Listener:
    """Return a listener that passes events to several listeners."""

    def emit(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return emit


def event_fields(event: Event) -> dict[str, Any]:
    """Return an event of a search as a JSON object: its name and its fields, with bytes as text."""
    return {"event": type(event).__name__, **json_value(asdict(event))}
