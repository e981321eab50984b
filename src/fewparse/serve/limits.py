"""The limits of the server on what a request may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServeLimits:
    """Limits on requests; see docs/serving.md.

    `queue` is how many requests wait at most, `streams` how many event streams are open at most. `deadline` is how
    many seconds a request may take, `body_seconds` how long its body may take to arrive.
    """

    body_bytes: int = 1_000_000
    body_seconds: float = 20.0
    utterances: int = 64
    utterance_chars: int = 2_000
    text_chars: int = 20_000
    width: int = 20
    max_tokens: int = 512
    queue: int = 64
    streams: int = 64
    deadline: float = 60.0
