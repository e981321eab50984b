"""The settings of a search, and the ranges of all numeric options."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from fewparse.errors import UsageError
from fewparse.search.decoder import DECODERS

MAX_WIDTH = 100
RANGES: dict[str, tuple[type, float, float]] = {
    "width": (Integral, 1, MAX_WIDTH),
    "temperature": (Real, 0, 10),
    "max_tokens": (Integral, 1, 65_536),
    "rounds": (Integral, 1, 1000),
    "seed": (Integral, 0, 2**32 - 1),
    "alternatives": (Integral, 0, 1_000_000),
    "margin": (Real, 0, math.inf),
    "rerank": (Real, 0, 100),
    "examples": (Integral, 0, 10_000),
    "description_lines": (Integral, 0, 10_000),
    "n_best": (Integral, 1, 1000),
    "max_risk": (Real, 0, 1),
}
"""Type, minimum and maximum of the numeric options, in domain.toml, on the command line and in Python."""


def check_range(name: str, value: Any) -> None:
    """Raise `UsageError` if the value of a numeric option is not a number, or out of range."""
    kind, low, high = RANGES[name]
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not (is_number and low <= value <= high):
        what = "a whole number" if kind is Integral else "a number"
        shown = f"{value!r:.40}" if not isinstance(value, int) or abs(value) < 10**40 else "too large"
        raise UsageError(f"the {name} is {shown}; it must be {what} between {low:,} and {high:,}")


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a decoder.

    `width` is the beam size, or the number of samples per hypothesis; `max_tokens` bounds the length of an output;
    `rounds` and `margin` bound speculative decoding; `alternatives` is how many tokens a sample reports per
    position; `free_back_off`, `free_branching` and `forced_spans` switch improvements over the paper (see
    docs/decoding.md); `grammar` is sent along with samples to models that support grammars. In `paper` mode there
    is no output if nothing finished, finished hypotheses that fall out of a beam are no outputs, and speculative
    decoding without improvements is the paper's listing.
    """

    decoder: str = "speculative"
    width: int = 5
    temperature: float = 0.5
    max_tokens: int = 160
    rounds: int = 16
    stop: bytes = b"\n"
    seed: int = 0
    alternatives: int = 20
    free_back_off: bool = True
    free_branching: bool = True
    forced_spans: bool = False
    margin: float = 1.0
    grammar: str | None = None
    paper: bool = False

    def __post_init__(self) -> None:
        DECODERS.check(self.decoder)
        for name in RANGES.keys() & self.__dataclass_fields__.keys():
            check_range(name, getattr(self, name))

    @property
    def limit(self) -> str:
        """The length of a search, for messages."""
        tokens = f"{self.max_tokens} tokens"
        return f"{self.rounds} rounds and {tokens}" if self.follows_listing else tokens

    @property
    def follows_listing(self) -> bool:
        """Whether speculative decoding is the paper's listing: in paper mode without any of the improvements."""
        improved = self.free_back_off or self.free_branching or self.forced_spans or self.margin < math.inf
        return self.paper and not improved
