"""Constrained beam search; greedy is a beam of one."""

from collections.abc import Sequence

from fewparse.search.context import SearchContext
from fewparse.search.events import Kept, RoundBegan, RoundEnded
from fewparse.search.forced_tokens import force
from fewparse.search.hypothesis import Hypothesis, ranked, split


def beam_search(context: SearchContext, begin: Sequence[Hypothesis], number: int = 0) -> list[Hypothesis]:
    """All finished hypotheses met on the way; where there are none, those that reached the length limit.

    Each step, the `width` best of all continuations and endings stay. A finished one that falls out is out of
    the search, but still an output, unless the search is greedy: then its one path is the answer. `number` is
    that of the last round before, where this search carries on another.
    """
    settings, emit = context.settings, context.emit
    width = 1 if settings.decoder == "greedy" else settings.width
    live, finished = split(begin)
    overlong: list[Hypothesis] = []
    ended: list[Hypothesis] = []
    while live:
        number += 1
        emit(RoundBegan(number, tuple(h.text for h in live)))
        if settings.forced_spans:
            live = force(context, live)
        answers = context.best_allowed(live, width)
        candidates = list(finished)
        for hypothesis, answer in zip(live, answers, strict=True):
            candidates += hypothesis.successors(answer, width)
        ended += split(candidates)[1]
        kept = ranked(candidates, width)
        emit(RoundEnded(number, tuple(Kept(h.text, h.score, h.finished) for h in kept)))
        live, finished = split(kept)
        overlong += [h for h in live if len(h.tokens) >= settings.max_tokens]
        live = [h for h in live if len(h.tokens) < settings.max_tokens]
    return (ended if width > 1 else finished) or overlong
