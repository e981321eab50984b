"""What a parse or a run has cost."""

from dataclasses import asdict, dataclass, fields


@dataclass
class Usage:
    """Counters that a model adds to as it answers.

    A request is one question about one prefix, what a stateless HTTP model is asked; a round is a set of questions
    asked at the same time. `cached` of the requests were answered from the answers kept of earlier ones;
    `retries` counts what had to be asked again. `prompt_tokens` and `completion_tokens` count what the requests
    say and get, `cached_tokens` what of the prompts a server had read before; `prefill_tokens` and
    `forward_tokens` count what was really evaluated of the prompt and behind it, where it is known. `cost` is in
    dollars: 0 where nobody is paid, None where a server's price is unknown.
    """

    requests: int = 0
    rounds: int = 0
    cached: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    prefill_tokens: int = 0
    forward_tokens: int = 0
    forward_passes: int = 0
    seconds: float = 0.0
    cost: float | None = 0.0

    def __iadd__(self, other: "Usage") -> "Usage":
        for field in fields(self):
            mine, others = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, None if mine is None or others is None else mine + others)
        return self

    def as_dict(self) -> dict[str, int | float | None]:
        """All counters by name."""
        return asdict(self)
