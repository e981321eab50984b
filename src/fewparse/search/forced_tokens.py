"""Forced spans: where the grammar leaves one continuation, append it without asking for each token.

The span is written as the model's own tokenizer writes it, without its last token, which might have merged
with what follows. Its log-probability is accounted in full: the model scores the span in one pass.
"""

from collections.abc import Sequence

from fewparse.lm.model import LanguageModel, Prefix
from fewparse.search.context import SearchContext
from fewparse.search.events import Forced
from fewparse.search.hypothesis import Hypothesis

SHORTEST = 2


def force(context: SearchContext, live: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses, each with its forced span of two or more tokens appended."""
    model = context.model
    spans = [forced_tokens(model, h, context.settings.max_tokens) for h in live]
    long = [i for i, span in enumerate(spans) if len(span) >= SHORTEST]
    if not long:
        return list(live)
    prefixes = [live[i].tokens for i in long]
    scores = model.score(context.prompt, prefixes, [spans[i] for i in long], context.usage)
    forced = list(live)
    for i, logprobs in zip(long, scores, strict=True):
        count, state = live[i].state.walk([token.bytes for token in spans[i]])
        context.emit(Forced(live[i].text, b"".join(token.bytes for token in spans[i][:count])))
        forced[i] = Hypothesis(live[i].tokens + spans[i][:count], live[i].logprob + sum(logprobs[:count]), state)
    return forced


def forced_tokens(model: LanguageModel, hypothesis: Hypothesis, limit: int) -> Prefix:
    """The tokens of the forced bytes, but for the last; none where they break a character."""
    try:
        text = hypothesis.state.forced().decode()
    except UnicodeDecodeError:
        return ()
    return model.tokenize(text)[:-1][: max(0, limit - len(hypothesis.tokens))] if text else ()
