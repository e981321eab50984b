"""How to search."""

from dataclasses import dataclass
from typing import Literal, get_args

from fewparse.errors import UnknownName, UsageError

Decoder = Literal["beam", "speculative", "greedy"]
DECODERS: tuple[Decoder, ...] = get_args(Decoder)
MAX_WIDTH = 100


@dataclass(frozen=True)
class Settings:
    """All that a decoder can be told. The defaults of the improvements follow docs/decoding.md.

    `grammar` goes along with samples to models that keep them to one.
    """

    decoder: Decoder = "speculative"
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
        if self.decoder not in DECODERS:
            raise UnknownName("decoder", self.decoder, DECODERS)
        if not 1 <= self.width <= MAX_WIDTH:
            raise UsageError(f"the width is {self.width}; it is between 1 and {MAX_WIDTH}")
        if not 0 <= self.temperature <= 10:
            raise UsageError(f"the temperature is {self.temperature}; it is between 0 and 10")
        if self.max_tokens < 1 or self.rounds < 1:
            raise UsageError("the limit of tokens and the number of rounds are at least 1")
        if self.seed < 0:
            raise UsageError(f"the seed is {self.seed}; it is at least 0")
