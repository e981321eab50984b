"""Speculative constrained decoding: sample W completions, cut each at its first ungrammatical token, repeat.

A round costs one request per live hypothesis, regardless of the length of the samples. Two improvements over the
paper: the alternatives reported with a sample give the best allowed tokens at the cut without another request
(free back-off), and can start hypotheses anywhere along the sample (free branching). The paper's own algorithm is
in `listing`.
"""

import math
from collections.abc import Sequence

from fewparse.events import Branched, Kept, RoundEnded, RoundStarted, Sampled, SampleOutcome
from fewparse.lm.model import Completion
from fewparse.search.beam import greedy_search
from fewparse.search.context import SearchContext
from fewparse.search.decoder import Decoder
from fewparse.search.forced_tokens import append_forced
from fewparse.search.hypothesis import Hypothesis, ranked, split
from fewparse.search.listing import listing_search


def speculative_search(context: SearchContext, start: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return all hypotheses that finished within `rounds` rounds; if none did, continue greedily.

    In paper mode the search does not continue; without any of the improvements it is the paper's listing.
    """
    if context.settings.follows_listing:
        return listing_search(context, start)
    settings, emit = context.settings, context.emit
    live, finished = split(start)
    ended: list[Hypothesis] = []
    number = 0
    rounds = settings.rounds if context.model.supports_prefix else 1
    while live and number < rounds:
        number += 1
        emit(RoundStarted(number, tuple(h.text for h in live)))
        if settings.forced_spans:
            live = append_forced(context, live)
        expansion = Expansion(context)
        candidates = expansion.expand(live, number)
        ended += split(candidates)[1]
        kept = within(settings.margin, ranked([*finished, *candidates], settings.width))
        for branch in expansion.branches:
            if any(h is branch for h in kept):
                last = branch.tokens[-1].bytes
                emit(Branched(branch.text.removesuffix(last), last))
        emit(RoundEnded(number, tuple(Kept(h.text, h.score, h.finished) for h in kept)))
        live, finished = split(kept)
    outputs = ended if settings.width > 1 else finished
    if outputs or settings.paper:
        return outputs
    if not context.model.supports_prefix:
        return live or list(start)
    # The rounds or the length ran out with nothing finished: stepwise decoding always finishes.
    return greedy_search(context, live or start, number)


def within(margin: float, kept: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Drop live hypotheses whose score is more than `margin` below the best finished one."""
    best = max((h.score for h in kept if h.finished), default=-math.inf)
    return [h for h in kept if h.finished or h.score >= best - margin]


class Expansion:
    """One round: the candidates that follow from the live hypotheses."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self._settings = context.settings
        self._emit = context.emit
        self.branches: list[Hypothesis] = []

    def expand(self, live: Sequence[Hypothesis], number: int) -> list[Hypothesis]:
        """Return all candidates that follow from the live hypotheses."""
        samples = self._context.sample(live, number)
        candidates: list[Hypothesis] = []
        stuck: list[Hypothesis] = []
        unended: list[Hypothesis] = []
        for hypothesis, completions in zip(live, samples, strict=True):
            contributed = []
            for completion in distinct(completions):
                contributed += self._follow(hypothesis, completion, unended)
            candidates += contributed
            if not contributed and len(hypothesis.tokens) < self._settings.max_tokens:
                stuck.append(hypothesis)
        return candidates + self._back_off(stuck) + self._end(unended)

    def _follow(self, start: Hypothesis, completion: Completion, unended: list[Hypothesis]) -> list[Hypothesis]:
        """Walk a completion up to its first invalid token; return the hypotheses it contributes."""
        pieces = tuple(token.bytes for token in completion.tokens)
        path = start.follow(completion)
        valid = len(path) - 1
        reached = path[-1]
        known = valid < len(completion.positions)
        cut = valid < len(pieces) or (completion.ended and not reached.state.may_end)
        outcome: SampleOutcome
        found: list[Hypothesis] = []
        if not cut and not completion.ended:
            outcome = "limit"
            if reached.state.may_end:
                unended.append(reached)
        elif not cut or reached.state.must_end:
            outcome = "finished"
            found.append(reached.finish(completion.positions[valid].end_logprob))
        else:
            outcome = "cut" if valid else "rejected"
        self._emit(Sampled(start.text, pieces, valid, outcome))
        if outcome in ("cut", "rejected"):
            if self._settings.free_back_off and known and len(reached.tokens) < self._settings.max_tokens:
                found += self._context.back_off(reached, completion.positions[valid], free=True)
            if outcome == "cut" and not found:
                found.append(reached)
        if self._settings.free_branching and self._settings.width > 1:
            branches = self._branch(path, completion)
            self.branches += branches
            found += branches
        return found

    def _branch(self, path: Sequence[Hypothesis], completion: Completion) -> list[Hypothesis]:
        """Return the alternatives along the valid part of a sample as separate hypotheses."""
        branches = []
        for i, hypothesis in enumerate(path[:-1]):
            others = [c for c in completion.positions[i].best if c.token != completion.tokens[i]]
            for choice in others[: self._settings.width]:
                following = hypothesis.extend(choice)
                if following:
                    branches.append(following)
        return branches

    def _back_off(self, stuck: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Take one step of constrained decoding for hypotheses of which no sample had a valid first token."""
        if not stuck:
            return []
        next_tokens = self._context.best_allowed(stuck, self._settings.width)
        found = []
        for hypothesis, following in zip(stuck, next_tokens, strict=True):
            found += self._context.back_off(hypothesis, following, free=False)
        return found

    def _end(self, unended: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Finish samples that reached the length limit and may end there, scored by one more query."""
        if not unended:
            return []
        next_tokens = self._context.best_allowed(unended, 1)
        return [h.finish(following.end_logprob) for h, following in zip(unended, next_tokens, strict=True)]


def distinct(completions: Sequence[Completion]) -> list[Completion]:
    """Return the samples without duplicates."""
    return list({(c.tokens, c.ended): c for c in completions}.values())


SPECULATIVE = Decoder(speculative_search, needs_prefix=False, samples=True, label=" W={width}")
