"""What happens in a search, as it happens: the trace, a progress bar and a log are readers of this stream."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["finished", "cut", "limit", "nothing"]


@dataclass(frozen=True)
class RoundBegan:
    """The model is about to be asked about these prefixes."""

    number: int
    prefixes: tuple[bytes, ...]


@dataclass(frozen=True)
class Sampled:
    """A completion of a prefix: its pieces, how many of them were valid, and what became of it."""

    prefix: bytes
    pieces: tuple[bytes, ...]
    valid: int
    outcome: Outcome


@dataclass(frozen=True)
class BackedOff:
    """One step of constrained decoding: from alternatives already known (free), or by another request."""

    prefix: bytes
    free: bool
    choices: tuple[bytes, ...]


@dataclass(frozen=True)
class Branched:
    """An alternative along a sample became a hypothesis of its own, good enough to be kept."""

    prefix: bytes
    piece: bytes


@dataclass(frozen=True)
class Forced:
    """The grammar left one continuation, which was appended without asking."""

    prefix: bytes
    span: bytes


@dataclass(frozen=True)
class Spelt:
    """None of the tokens that the model told may follow: the constraint's own span, or its characters."""

    prefix: bytes
    spans: tuple[bytes, ...]


@dataclass(frozen=True)
class Closed:
    """An output at the length limit was finished in the shortest well-formed way."""

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
    """The hypotheses that survived, best first."""

    number: int
    kept: tuple[Kept, ...]


Event = RoundBegan | Sampled | BackedOff | Branched | Forced | Spelt | Closed | RoundEnded
Listener = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """A listener that does not care."""
