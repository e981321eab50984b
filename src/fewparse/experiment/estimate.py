"""Estimate what is left of an experiment: records, requests, time and cost, without opening a model.

Cells that have records are estimated from these; others from the lengths of the examples and from typical speeds
of the embedded model on two cores, so that only the order of magnitude is meaningful.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fewparse.evaluate.record_lines import Key, Record
from fewparse.experiment.folder import Shard
from fewparse.experiment.plan import Plan, PlannedCell
from fewparse.lm.load import kind_of
from fewparse.search.decoder import DECODERS

CHARACTERS_PER_TOKEN = 3.5
PREFILL_TOKENS_PER_SECOND, TOKENS_PER_SECOND, SECONDS_PER_ROUND = 150, 80, 1.0
ROUNDS, REQUESTS_PER_WIDTH, TOKENS_PER_WIDTH = 5, 2.5, 0.4
"""Of speculative decoding: rounds of an item, requests per sample, forward tokens per sample and output token."""


@dataclass(frozen=True)
class Estimate:
    """The records of a cell that are missing, and the requests, seconds and dollars that they may take.

    `measured` is the number of records that the estimate is based on; if it is 0, typical values are used. The
    cost is None if it is unknown.
    """

    cell: PlannedCell
    missing: int
    requests: float
    seconds: float
    cost: float | None
    measured: int


def estimate(plan: Plan, records: Mapping[Key, Record], shard: Shard) -> list[Estimate]:
    """Estimate every cell; the prompt is counted once for all cells that share it."""
    prompts: set[object] = set()
    found = []
    for model, cells in plan.by_model():
        for planned in cells:
            key = (model, planned.cell.domain, planned.prompt_key)
            found.append(estimate_cell(plan, planned, records, shard, with_prompt=key not in prompts))
            prompts.add(key)
    return found


def estimate_cell(
    plan: Plan, planned: PlannedCell, records: Mapping[Key, Record], shard: Shard, with_prompt: bool
) -> Estimate:
    """Estimate one cell, from its records if there are some."""
    keys = [(planned.settings_key, item.id) for item in plan.items[planned.cell.domain] if item.index in shard]
    done = [record for key in keys if (record := records.get(key)) is not None and record.failure is None]
    missing = len(keys) - len(done)
    kind = kind_of(planned.cell.model)
    remote = kind is not None and kind.remote
    if done:
        requests = mean([record.usage.requests for record in done])
        seconds = mean([record.seconds + with_prompt * record.prompt_seconds for record in done])
        costs = [record.usage.cost for record in done]
        cost = None if None in costs else mean([each for each in costs if each is not None])
    else:
        requests, seconds = typical(planned, remote, with_prompt)
        cost = None if remote else 0.0
    if remote and (concurrency := plan.table.remote.max_concurrency):
        seconds /= concurrency
    total = None if cost is None else missing * cost
    return Estimate(planned, missing, missing * requests, missing * seconds, total, len(done))


def typical(planned: PlannedCell, remote: bool, with_prompt: bool) -> tuple[float, float]:
    """Return typical requests and seconds of an item."""
    options, search = planned.options, planned.options.search
    pairs = [(len(e.utterance), len(e.output(options.target))) for e in planned.domain.examples]
    output = mean([length for _, length in pairs]) / CHARACTERS_PER_TOKEN + 1
    prompt = options.examples * mean([sum(pair) for pair in pairs]) / CHARACTERS_PER_TOKEN
    width = 1 if search.decoder == "greedy" else search.width
    if DECODERS[search.decoder].samples:
        rounds, requests, tokens = ROUNDS, REQUESTS_PER_WIDTH * width, output * (1 + TOKENS_PER_WIDTH * width)
    else:
        rounds, requests, tokens = round(output), output * width, output * width
    if remote:
        return requests, rounds * SECONDS_PER_ROUND
    return requests, tokens / TOKENS_PER_SECOND + with_prompt * prompt / PREFILL_TOKENS_PER_SECOND


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 if there are no values."""
    return sum(values) / len(values) if values else 0.0
