"""Constrained beam search; greedy decoding is a beam of one."""

from collections.abc import Sequence
from dataclasses import replace

from fewparse.events import Kept, RoundEnded, RoundStarted
from fewparse.search.context import SearchContext
from fewparse.search.decoder import Decoder
from fewparse.search.forced_tokens import append_forced
from fewparse.search.hypothesis import Hypothesis, best_first, ranked, split


def beam_search(context: SearchContext, start: Sequence[Hypothesis], number: int = 0) -> list[Hypothesis]:
    """Return all hypotheses that finished, or else those that reached the length limit.

    After each step the `width` best of all continuations and endings are kept. A finished hypothesis that falls
    out of the beam is still an output, unless the width is 1: then the only path is the output. In paper mode, as
    in the code of its authors, only the finished hypotheses in the last beam are outputs. `number` is the number
    of the last round, if this search continues another one.
    """
    settings, emit = context.settings, context.emit
    live, finished = split(start)
    overlong: list[Hypothesis] = []
    ended: list[Hypothesis] = []
    while live:
        number += 1
        emit(RoundStarted(number, tuple(h.text for h in live)))
        if settings.forced_spans:
            live = append_forced(context, live)
        next_tokens = context.best_allowed(live, settings.width)
        candidates = list(finished)
        for hypothesis, following in zip(live, next_tokens, strict=True):
            candidates += hypothesis.successors(following, settings.width)
        ended += split(candidates)[1]
        kept = best_first(candidates)[: settings.width] if settings.paper else ranked(candidates, settings.width)
        emit(RoundEnded(number, tuple(Kept(h.text, h.score, h.finished) for h in kept)))
        live, finished = split(kept)
        overlong += [h for h in live if len(h.tokens) >= settings.max_tokens]
        live = [h for h in live if len(h.tokens) < settings.max_tokens]
    return (ended if settings.width > 1 and not settings.paper else finished) or overlong


def greedy_search(context: SearchContext, start: Sequence[Hypothesis], number: int = 0) -> list[Hypothesis]:
    """Beam search of width 1."""
    return beam_search(replace(context, settings=replace(context.settings, width=1)), start, number)


BEAM = Decoder(beam_search)
GREEDY = Decoder(greedy_search, label="")
