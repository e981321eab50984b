"""The fields of a request that a server accepts: some models reject what others need."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

LimitField = Literal["max_tokens", "max_completion_tokens"]
LIMIT_FIELDS: tuple[LimitField, ...] = get_args(LimitField)
OptionalField = Literal["temperature", "top_p", "seed", "stop"]
OPTIONAL_FIELDS: tuple[OptionalField, ...] = get_args(OptionalField)
Effort = Literal["none", "minimal", "low"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
REASONING_TOKENS = 4096
"""How many tokens a model that reasons may use in addition to those of the output, at most."""


@dataclass(frozen=True)
class RequestFields:
    """What a server accepts.

    `limit` is the field of the maximum length, None if there is none; fields in `omitted` are rejected. A model
    that reasons before the output has up to `extra_tokens` for it; `effort` is the lowest effort that it accepts.
    """

    limit: LimitField | None = "max_tokens"
    omitted: tuple[OptionalField, ...] = ()
    extra_tokens: Annotated[int, Field(ge=0, le=REASONING_TOKENS)] = 0
    effort: Effort | None = None

    def accepted(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request body, which has its limit in `max_tokens`, as the server accepts it."""
        kept = {name: value for name, value in body.items() if name not in (*self.omitted, "max_tokens")}
        if self.limit is not None and "max_tokens" in body:
            kept[self.limit] = body["max_tokens"] + self.extra_tokens
        if self.effort is not None:
            kept["reasoning_effort"] = self.effort
        return kept


STANDARD_FIELDS = RequestFields()
