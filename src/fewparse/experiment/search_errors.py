"""Search errors: how often a search misses the output that the model scores highest, found by an exact search.

This needs a finite set of outputs (the constraint `trie`) and a model whose tokens are known. The score is the one
of the search: the log-probability of the tokens and of the end, with length normalisation. A string is scored in
the tokenisation of the model's own tokenizer; a search may find another one.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

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
from fewparse.lm.model import LanguageModel, Prefix, Token
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.prompt import Prompt
from fewparse.search.hypothesis import normalised
from fewparse.vocabulary import Mask, Vocabulary

TOLERANCE = 0.3
"""In nats per output: kernels for quantised weights differ by 0.1 to 0.3 between batch sizes."""
PREFIXES_PER_BATCH = 16


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
    """Find the best output for every finished item of a cell, and compare it with what the cell found.

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
    texts = {parser.template.with_lead(example.output(target)) for example in domain.known_outputs}
    root = token_tree(model, sorted(texts))
    shortfalls = []
    for item, record in cell.finished():
        if record.failure is None:
            example = Example(item.utterance, item.gold, item.canonical, item.context)
            _, prompt = parser.prompt(item.utterance, item.context, [example] if split == TRAIN else [])
            best = best_text(model, model.vocabulary, prompt, root, parser.template.stop.encode())
            shortfalls.append(shortfall(parser, prompt, item, record, best, tolerance))
        progress()
    return SearchErrors(len(texts), tuple(shortfalls))


def shortfall(
    parser: Parser, prompt: Prompt, item: Item, record: Record, best: tuple[str, float], tolerance: float
) -> Shortfall:
    """Compare the output of a record with the highest model score with the best text."""
    model, template = parser.model, parser.template
    text, best_score = best
    score, found = max(zip(record.model_scores, record.outputs, strict=True), default=(-math.inf, None))
    if found is not None:
        score = max(score, score_of(model, prompt, template.with_lead(found), template.stop.encode()))
    tolerated = normalised(tolerance, len(model.tokenize(text)) + 1)
    return Shortfall(item, found, score, template.without_lead(text), best_score, tolerated)


def score_of(model: LanguageModel, prompt: Prompt, text: str, stop: bytes) -> float:
    """Return the normalised log-probability of a text with its end."""
    tokens, usage = model.tokenize(text), Usage()
    [logprobs] = model.score(prompt, [()], [tokens], usage)
    [following] = model.next_tokens(prompt, [tokens], 1, stop, usage)
    return normalised(sum(logprobs) + following.end_logprob, len(tokens) + 1)


@dataclass
class Node:
    """A node of the tree of tokenised texts: its children, the text that ends here, the longest length below."""

    prefix: Prefix
    children: "dict[Token, Node]" = field(default_factory=dict)
    text: str | None = None
    longest: int = 0


def token_tree(model: LanguageModel, texts: Sequence[str]) -> Node:
    """Return the tree of the tokens of all texts."""
    root = Node(())
    for text in texts:
        tokens = model.tokenize(text)
        node = root
        for depth in range(len(tokens) + 1):
            node.longest = max(node.longest, len(tokens))
            if depth < len(tokens):
                node = node.children.setdefault(tokens[depth], Node(tokens[: depth + 1]))
        node.text = text
    return root


def best_text(
    model: LanguageModel, vocabulary: Vocabulary, prompt: Prompt, root: Node, stop: bytes
) -> tuple[str, float]:
    """Return the text with the highest normalised log-probability, and this score: exactly, by branch and bound.

    The log-probability of a prefix, normalised for the longest text with this prefix, is an upper bound of the
    scores of all texts with it. Prefixes are expanded best first, until none can lead to a better text.
    """
    order = itertools.count()
    frontier = [(0.0, next(order), 0.0, root)]
    best, best_score = "", -math.inf
    while frontier and -frontier[0][0] > best_score:
        batch = [heapq.heappop(frontier) for _ in range(min(PREFIXES_PER_BATCH, len(frontier)))]
        nodes = [node for *_, node in batch]
        masks = [children_mask(node, vocabulary) for node in nodes]
        k = max(len(node.children) for node in nodes)
        found = model.next_tokens(prompt, [node.prefix for node in nodes], max(1, k), stop, Usage(), masks)
        for (*_, logprob, node), following in zip(batch, found, strict=True):
            if node.text is not None:
                score = normalised(logprob + following.end_logprob, len(node.prefix) + 1)
                best, best_score = max((best, best_score), (node.text, score), key=lambda each: each[1])
            for token, token_logprob in following.best:
                if (child := node.children.get(token)) is not None:
                    total = logprob + token_logprob
                    heapq.heappush(frontier, (-normalised(total, child.longest + 1), next(order), total, child))
    return best, best_score


def children_mask(node: Node, vocabulary: Vocabulary) -> Mask:
    """Return the tokens of the children of a node."""
    mask = np.zeros(len(vocabulary), dtype=np.bool_)
    mask[[token.id for token in node.children]] = True
    return mask
