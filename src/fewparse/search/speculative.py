"""Speculative constrained decoding: sample W completions, cut each at its first ungrammatical token, search on.

Each round costs one request a live hypothesis, however long the samples are. Beyond the paper: the alternatives
that come with every sample tell what is best at the cut without another request (free back-off), and can seed
hypotheses anywhere along it (free branching).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from fewparse.lm.model import Completion, Sampling, ScoredToken
from fewparse.search.beam import beam_search
from fewparse.search.context import SearchContext
from fewparse.search.events import (
    BackedOff,
    Branched,
    Kept,
    Outcome,
    RoundBegan,
    RoundEnded,
    Sampled,
)
from fewparse.search.forced_tokens import force
from fewparse.search.hypothesis import Hypothesis, ranked, split


def speculative_search(context: SearchContext, begin: Sequence[Hypothesis]) -> list[Hypothesis]:
    """All finished hypotheses met on the way, after at most `rounds` rounds."""
    settings, emit = context.settings, context.emit
    live, finished = split(begin)
    ended: list[Hypothesis] = []
    number = 0
    rounds = settings.rounds if context.model.supports_prefix else 1
    while live and number < rounds:
        number += 1
        emit(RoundBegan(number, tuple(h.text for h in live)))
        if settings.forced_spans:
            live = force(context, live)
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
    if outputs := ended if settings.width > 1 else finished:
        return outputs
    if not context.model.supports_prefix:
        return live or list(begin)
    # Rounds or lengths ran out with nothing finished: step by step always gets there.
    greedy = replace(context, settings=replace(settings, decoder="greedy"))
    return beam_search(greedy, live or begin, number)


def within(margin: float, kept: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Without the live hypotheses that have fallen too far behind the best finished one."""
    best = max((h.score for h in kept if h.finished), default=-math.inf)
    return [h for h in kept if h.finished or h.score >= best - margin]


class Expansion:
    """One round: what becomes of the live hypotheses."""

    def __init__(self, context: SearchContext) -> None:
        self._inquiry = context
        self._settings = context.settings
        self._emit = context.emit
        self.branches: list[Hypothesis] = []

    def expand(self, live: Sequence[Hypothesis], number: int) -> list[Hypothesis]:
        """All candidates that the live hypotheses lead to."""
        settings = self._settings
        sampling = Sampling(
            n=settings.width,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            stop=settings.stop,
            seed=settings.seed * 1_000 + number,
            alternatives=settings.alternatives,
            grammar=settings.grammar,
        )
        answers = self._inquiry.model.sample(
            self._inquiry.prompt,
            [h.tokens for h in live],
            sampling,
            self._inquiry.usage,
            [h.state for h in live],
        )
        candidates: list[Hypothesis] = []
        stuck: list[Hypothesis] = []
        unended: list[Hypothesis] = []
        for hypothesis, completions in zip(live, answers, strict=True):
            contributed = []
            for completion in distinct(completions):
                contributed += self._follow(hypothesis, completion, unended)
            candidates += contributed
            if not contributed and len(hypothesis.tokens) < settings.max_tokens:
                stuck.append(hypothesis)
        return candidates + self._back_off(stuck) + self._end(unended)

    def _follow(self, begin: Hypothesis, completion: Completion, unended: list[Hypothesis]) -> list[Hypothesis]:
        """Walk a completion up to its first invalid token: what it contributes."""
        pieces = tuple(token.bytes for token in completion.tokens)
        path = [begin]
        for token, logprob in zip(completion.tokens, completion.logprobs, strict=True):
            following = path[-1].extend(ScoredToken(token, logprob))
            if following is None:
                break
            path.append(following)
        valid = len(path) - 1
        reached = path[-1]
        known = valid < len(completion.positions)
        cut = valid < len(pieces) or (completion.ended and not reached.state.may_end)
        outcome: Outcome
        found: list[Hypothesis] = []
        if not cut and not completion.ended:
            outcome = "limit"
            if reached.state.may_end:
                unended.append(reached)
        elif not cut or reached.state.must_end:
            outcome = "finished"
            found.append(reached.finish(completion.positions[valid].end_logprob))
        else:
            outcome = "cut" if valid else "nothing"
            if self._settings.free_back_off and known and len(reached.tokens) < self._settings.max_tokens:
                found += reached.successors(completion.positions[valid], self._settings.width)
        self._emit(Sampled(begin.text, pieces, valid, outcome))
        if outcome in ("cut", "nothing") and found:
            choices = tuple(h.tokens[-1].bytes for h in found if not h.finished)
            self._emit(BackedOff(reached.text, True, choices))
        elif outcome == "cut":
            found.append(reached)
        if self._settings.free_branching and self._settings.width > 1:
            branches = self._branch(path, completion)
            self.branches += branches
            found += branches
        return found

    def _branch(self, path: Sequence[Hypothesis], completion: Completion) -> list[Hypothesis]:
        """Alternatives along the valid part of a sample, as hypotheses of their own."""
        branches = []
        for i, hypothesis in enumerate(path[:-1]):
            others = [c for c in completion.positions[i].best if c.token != completion.tokens[i]]
            for choice in others[: self._settings.width]:
                following = hypothesis.extend(choice)
                if following:
                    branches.append(following)
        return branches

    def _back_off(self, stuck: Sequence[Hypothesis]) -> list[Hypothesis]:
        """No sample of these began well: one step of constrained decoding."""
        if not stuck:
            return []
        found = []
        width = self._settings.width
        answers = self._inquiry.best_allowed(stuck, width)
        for hypothesis, answer in zip(stuck, answers, strict=True):
            successors = hypothesis.successors(answer, width)
            choices = tuple(h.tokens[-1].bytes for h in successors if not h.finished)
            self._emit(BackedOff(hypothesis.text, False, choices))
            found += successors
        return found

    def _end(self, unended: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Samples that ran to the limit and may end there: ask what ending would cost."""
        if not unended:
            return []
        answers = self._inquiry.best_allowed(unended, 1)
        return [h.finish(answer.end_logprob) for h, answer in zip(unended, answers, strict=True)]


def distinct(completions: Sequence[Completion]) -> list[Completion]:
    """Equal samples count once."""
    return list({(c.tokens, c.ended): c for c in completions}.values())
