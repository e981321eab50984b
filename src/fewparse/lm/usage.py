"""Counters of what language models compute and cost."""

from dataclasses import asdict, dataclass, fields


@dataclass
class Usage:
    """Resources used by a parse or a run; models add to the counters of the object that they are given.

    `requests` counts queries, one per prefix, as a stateless HTTP model receives them; `rounds` counts batches of
    queries that are sent together. `cached_requests` is the number of requests served from the response cache,
    `retries` the number of repeated requests. `prompt_tokens` and `completion_tokens` count the tokens sent and
    received, `cached_prompt_tokens` the prompt tokens that a server took from its own cache.

    Models in this process also count what they evaluate: `prefill_tokens` of the prompt, `forward_tokens` after
    it, in `forward_passes` batches. `seconds` is wall-clock time spent in the model. `cost` is in US dollars: 0
    for free models, None if the price is unknown.
    """

    requests: int = 0
    rounds: int = 0
    cached_requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
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
        """Return all counters by name."""
        return asdict(self)
