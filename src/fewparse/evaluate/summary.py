"""The figures of one system: accuracy by several criteria, and its mean cost per item."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fewparse.evaluate.metrics import Proportion, count
from fewparse.evaluate.record_lines import Record
from fewparse.lm.usage import Usage

TOP_K = (1, 2, 5, 10)


@dataclass(frozen=True)
class Summary:
    """The figures of a system on `items` items, of which `finished` have a record.

    Shares are of the finished items; those that `failed` count as wrong. `top_k` is the share of items with a
    correct program among the first k candidates, `oracle` among all of them. `usage` holds the mean of every
    counter of `Usage`; it and all other means are over the items that did not fail. A cost is None if it is
    unknown for any item.
    """

    items: int
    finished: int
    failed: int
    accuracy: Proportion
    exact_match: Proportion
    before_reranking: Proportion
    by_vote: Proportion
    top_k: Mapping[int, Proportion]
    oracle: Proportion
    usage: Mapping[str, float | None]
    decoding_seconds: float
    prompt_seconds: float
    items_per_second: float
    examples_dropped: float

    @property
    def seconds(self) -> float:
        """The mean time of an item: prefill and decoding."""
        return self.decoding_seconds + self.prompt_seconds

    @property
    def requests(self) -> float:
        """The mean number of requests."""
        return self.usage["requests"] or 0.0

    @property
    def rounds(self) -> float:
        """The mean number of rounds: batches of requests that are sent together."""
        return self.usage["rounds"] or 0.0

    @property
    def forward_tokens(self) -> float:
        """The mean number of tokens evaluated after the prompt."""
        return self.usage["forward_tokens"] or 0.0

    @property
    def prompt_tokens(self) -> float:
        """The mean number of prompt tokens of all requests."""
        return self.usage["prompt_tokens"] or 0.0

    @property
    def cost(self) -> float | None:
        """The mean cost in US dollars."""
        return self.usage["cost"]


def summarise(records: Sequence[Record | None]) -> Summary:
    """Return the figures of the records of a system, one per item; None stands for an item without a record."""
    finished = [record for record in records if record is not None]
    answered = [record for record in finished if record.failure is None]
    decoding = sum(record.seconds for record in answered)
    prefill = sum(record.prompt_seconds for record in answered)
    n = max(1, len(answered))
    return Summary(
        items=len(records),
        finished=len(finished),
        failed=len(finished) - len(answered),
        accuracy=count([record.correct_within(1) for record in finished]),
        exact_match=count([any(record.exact_match[:1]) for record in finished]),
        before_reranking=count([record.correct_before_reranking for record in finished]),
        by_vote=count([record.correct_by_vote for record in finished]),
        top_k={k: count([record.correct_within(k) for record in finished]) for k in TOP_K},
        oracle=count([any(record.correct) for record in finished]),
        usage=mean_usage([record.usage for record in answered]),
        decoding_seconds=decoding / n,
        prompt_seconds=prefill / n,
        items_per_second=len(answered) / (decoding + prefill) if decoding else 0.0,
        examples_dropped=sum(record.examples_dropped for record in answered) / n,
    )


def mean_usage(usages: Sequence[Usage]) -> dict[str, float | None]:
    """Return the mean of every counter; the cost is None if the cost of any usage is unknown."""
    total = Usage() if usages else Usage(cost=None)
    for usage in usages:
        total += usage
    return {
        name: None if value is None else value / max(1, len(usages)) for name, value in total.as_dict().items()
    }
