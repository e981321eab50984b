"""Search errors: how often a search misses the output that the model scores highest, by scoring every output.

This needs a finite set of outputs (the constraint `trie`) and a model whose tokens are known. The score is the one
of the search: the log-probability of the tokens and of the end, with length normalisation. A string is scored in
the tokenisation of the model's own tokenizer; a search may find another one.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fewparse.domains.constraints import CONSTRAINT_KINDS
from fewparse.errors import ResultsError, UsageError, listed
from fewparse.evaluate.metrics import Proportion, count
from fewparse.evaluate.record_lines import Record
from fewparse.evaluate.run import TRAIN
from fewparse.evaluate.system import settings_of
from fewparse.example import Example
from fewparse.experiment.folder import ELSEWHERE, MANIFEST, Item, changes_between
from fewparse.experiment.grid import Cell
from fewparse.experiment.plan import prepared
from fewparse.experiment.results import CellResult, Results
from fewparse.lm.load import kind_of
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.prompt import Prompt
from fewparse.search.hypothesis import normalised

TOLERANCE = 0.3
"""In nats per output: kernels for quantised weights differ by 0.1 to 0.3 between batch sizes."""
ENDS_PER_BATCH = 16


@dataclass(frozen=True)
class Shortfall:
    """What the search found for an item, and the best output; scores are those of the model, normalised.

    `found` is None if the search found nothing. `tolerated` is the difference of scores that may be due to
    numerical differences of the model.
    """

    item: Item
    found: str | None
    found_score: float
    best: str
    best_score: float
    tolerated: float

    @property
    def amount(self) -> float:
        """How much higher the best score is; 0 if the search found the best output, or one as good."""
        return max(0.0, self.best_score - self.found_score) if self.found != self.best else 0.0


@dataclass(frozen=True)
class SearchErrors:
    """The search errors of a cell on its finished items."""

    outputs: int
    shortfalls: tuple[Shortfall, ...]

    @property
    def rate(self) -> Proportion:
        """The share of items with a better output than the one that was found, by any amount."""
        return count([each.amount > 0 for each in self.shortfalls])

    @property
    def rate_beyond_tolerance(self) -> Proportion:
        """The share of items with a better output by more than numerical differences explain."""
        return count([each.amount > each.tolerated for each in self.shortfalls])


def finite_cells(results: Results) -> dict[str, list[CellResult]]:
    """Return the cells by model whose model runs in this process and that are constrained to a set of outputs."""
    found: dict[str, list[CellResult]] = {}
    for cell in results.cell_results:
        model, options = str(cell.options["model"]), cell.settings["options"]
        kind = kind_of(model)
        constraint = cell.settings["constraint"].get("kind")
        finite = constraint in CONSTRAINT_KINDS and CONSTRAINT_KINDS[constraint].finite and options["constrained"]
        if finite and kind is not None and not kind.remote:
            found.setdefault(model, []).append(cell)
    if not found:
        raise UsageError(
            "no cell has a finite set of outputs and a model in this process",
            "Search errors are counted for the constraint `trie`, as of Overnight.",
        )
    return found


def cell_parser(results: Results, cell: CellResult, model: LanguageModel, data: Path | None, code: bool) -> Parser:
    """Return the parser of a cell; raise `ResultsError` if its domain is not the one of the results."""
    domain, options = prepared(Cell(cell.options), data, code)
    now = settings_of(domain, options)
    before = {name: cell.settings.get(name) for name in now}
    if changes := changes_between(before, now):
        path = results.folder / MANIFEST
        raise ResultsError(f"the domain or fewparse has changed: {listed(changes, 4)}", path, hint=ELSEWHERE)
    return Parser(domain, model, options)


def search_errors(
    parser: Parser,
    cell: CellResult,
    split: str,
    tolerance: float = TOLERANCE,
    progress: Callable[[], None] = lambda: None,
) -> SearchErrors:
    """Score all outputs for every finished item of a cell, and compare the best with what the cell found.

    `tolerance` is in nats; `progress` is called after each item. Raises `UsageError` if the set of outputs is not
    finite or the tokens of the model are unknown.
    """
    domain, model, target = parser.domain, parser.model, parser.options.target
    if not (domain.constraint_kind.finite and parser.options.constrained):
        raise UsageError(
            "the set of outputs is not finite", "Search errors are counted for the constraint `trie`."
        )
    if model.vocabulary is None:
        raise UsageError(f"the tokens of {model.name} are unknown", "Use a model that runs in this process.")
    outputs = list(dict.fromkeys(example.output(target) for example in domain.known_outputs))
    shortfalls = []
    for item, record in cell.finished():
        if record.failure is None:
            shortfalls.append(shortfall(parser, item, record, outputs, split, tolerance))
        progress()
    return SearchErrors(len(outputs), tuple(shortfalls))


def shortfall(
    parser: Parser, item: Item, record: Record, outputs: Sequence[str], split: str, tolerance: float
) -> Shortfall:
    """Compare the output of a record with the highest model score with the best of all outputs."""
    example = Example(item.utterance, item.gold, item.canonical, item.context)
    _, prompt = parser.prompt(item.utterance, item.context, [example] if split == TRAIN else [])
    texts = [parser.template.with_lead(output) for output in outputs]
    stop = parser.template.stop.encode()
    scores = dict(best_scores(parser.model, prompt, texts, stop))
    best = max(scores, key=lambda i: scores[i])
    score, found = max(zip(record.model_scores, record.outputs, strict=True), default=(-math.inf, None))
    if found in outputs:
        index = outputs.index(found)
        if index not in scores:
            [(_, scores[index])] = best_scores(parser.model, prompt, [texts[index]], stop)
        score = max(score, scores[index])
    tolerated = normalised(tolerance, len(parser.model.tokenize(texts[best])) + 1)
    return Shortfall(item, found, score, outputs[best], scores[best], tolerated)


def best_scores(
    model: LanguageModel, prompt: Prompt, texts: Sequence[str], stop: bytes
) -> Iterator[tuple[int, float]]:
    """Yield indices and normalised log-probabilities of texts with their ends, the best one among them.

    Every text is scored. The probability of the end is queried in the order of the scores without it, which are
    upper bounds, until no further text can be better than the best.
    """
    usage = Usage()
    tokens = [model.tokenize(text) for text in texts]
    logprobs = [sum(each) for each in model.score(prompt, [()] * len(tokens), tokens, usage)]
    bounds = [normalised(logprob, len(each) + 1) for logprob, each in zip(logprobs, tokens, strict=True)]
    best = -math.inf
    order = sorted(range(len(texts)), key=lambda i: -bounds[i])
    for start in range(0, len(order), ENDS_PER_BATCH):
        batch = order[start : start + ENDS_PER_BATCH]
        if bounds[batch[0]] <= best:
            return
        ends = model.next_tokens(prompt, [tokens[i] for i in batch], 1, stop, usage)
        for i, end in zip(batch, ends, strict=True):
            score = normalised(logprobs[i] + end.end_logprob, len(tokens[i]) + 1)
            best = max(best, score)
            yield i, score
