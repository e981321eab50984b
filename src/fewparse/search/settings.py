"""The settings of a search."""

from dataclasses import dataclass

from fewparse.errors import UsageError
from fewparse.search.decoder import DECODERS

MAX_WIDTH = 100


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a decoder.

    `width` is the beam size, or the number of samples per hypothesis; `max_tokens` bounds the length of an output;
    `rounds` and `margin` bound speculative decoding; `alternatives` is how many tokens a sample reports per
    position; `free_back_off`, `free_branching` and `forced_spans` switch improvements over the paper (see
    docs/decoding.md); `grammar` is sent along with samples to models that support grammars.
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

    def __post_init__(self) -> None:
        DECODERS.check(self.decoder)
        if not 1 <= self.width <= MAX_WIDTH:
            raise UsageError(f"the width is {self.width}; it must be between 1 and {MAX_WIDTH}")
        if not 0 <= self.temperature <= 10:
            raise UsageError(f"the temperature is {self.temperature}; it must be between 0 and 10")
        if self.max_tokens < 1 or self.rounds < 1:
            raise UsageError("max_tokens and rounds must be at least 1")
        if self.seed < 0:
            raise UsageError(f"the seed is {self.seed}; it must be at least 0")
