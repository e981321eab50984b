"""What a parse or a run has cost."""

from dataclasses import asdict, dataclass, fields


@dataclass
class Usage:
    """Counters that a model adds to as it answers.

    A request is one question about one prefix, what a stateless HTTP model would be asked; a round is a set of
    questions asked at the same time. `prompt_tokens` and `completion_tokens` count what the requests say and
    get; `prefill_tokens` and `forward_tokens` count what was really evaluated of the prompt and behind it.
    """

    requests: int = 0
    rounds: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prefill_tokens: int = 0
    forward_tokens: int = 0
    forward_passes: int = 0
    seconds: float = 0.0

    def __iadd__(self, other: "Usage") -> "Usage":
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self

    def as_dict(self) -> dict[str, int | float]:
        """All counters by name."""
        return asdict(self)
