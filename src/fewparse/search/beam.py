"""Constrained beam search; greedy is a beam of one."""

from collections.abc import Sequence

from fewparse.lm.model import LanguageModel, NextTokens
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.events import Kept, Listener, RoundBegan, RoundEnded
from fewparse.search.forcing import force
from fewparse.search.hypothesis import Hypothesis, ranked, split
from fewparse.search.settings import Settings


def beam_search(
    model: LanguageModel,
    prompt: Prompt,
    begin: Sequence[Hypothesis],
    settings: Settings,
    usage: Usage,
    emit: Listener,
    number: int = 0,
) -> list[Hypothesis]:
    """All finished hypotheses met on the way; where there are none, those that reached the length limit.

    Each step, the `width` best of all continuations and endings stay. A finished one that falls out is out of
    the search, but still an output, unless the search is greedy: then its one path is the answer. `number` is
    that of the last round before, where this search carries on another.
    """
    width = 1 if settings.decoder == "greedy" else settings.width
    live, finished = split(begin)
    overlong: list[Hypothesis] = []
    ended: list[Hypothesis] = []
    while live:
        number += 1
        emit(RoundBegan(number, tuple(h.text for h in live)))
        if settings.forced_spans:
            live = force(model, prompt, live, settings, usage, emit)
        answers = ask(model, prompt, live, width, settings, usage)
        candidates = list(finished)
        for hypothesis, answer in zip(live, answers, strict=True):
            candidates += hypothesis.successors(answer, width)
        ended += split(candidates)[1]
        kept = ranked(candidates, width)
        emit(RoundEnded(number, tuple(Kept(h.text, h.score, h.finished) for h in kept)))
        live, finished = split(kept)
        overlong += [h for h in live if len(h.tokens) >= settings.limit]
        live = [h for h in live if len(h.tokens) < settings.limit]
    return (ended if width > 1 else finished) or overlong


def ask(
    model: LanguageModel,
    prompt: Prompt,
    live: Sequence[Hypothesis],
    width: int,
    settings: Settings,
    usage: Usage,
) -> list[NextTokens]:
    """The best allowed next tokens of each hypothesis, exact where the model knows its vocabulary."""
    masks = [h.state.mask() for h in live] if model.vocabulary is not None else None
    for hypothesis in live:
        hypothesis.state.must_end  # noqa: B018 -- raises at a dead end, before a request is spent on it
    k = width if masks is not None else max(width, settings.alternatives)
    return model.next_tokens(prompt, [h.tokens for h in live], k, settings.stop, usage, masks)
