"""Forced tokens: if the constraint allows one continuation only, append it without a query per token.

The span is tokenised as the model's own tokenizer does it, without its last token, which might have merged with
what follows. Its log-probability counts in full: the model scores the span in one pass.
"""

from collections.abc import Sequence

from fewparse.events import Forced
from fewparse.lm.model import LanguageModel, Prefix
from fewparse.search.context import SearchContext
from fewparse.search.hypothesis import Hypothesis

MIN_TOKENS = 2


def append_forced(context: SearchContext, live: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses, each with its forced span of two or more tokens appended."""
    model = context.model
    spans = [forced_tokens(model, h, context.settings.max_tokens) for h in live]
    long = [i for i, span in enumerate(spans) if len(span) >= MIN_TOKENS]
    if not long:
        return list(live)
    prefixes = [live[i].tokens for i in long]
    scores = model.score(context.prompt, prefixes, [spans[i] for i in long], context.usage)
    forced = list(live)
    for i, logprobs in zip(long, scores, strict=True):
        count, state = live[i].state.walk([token.bytes for token in spans[i]])
        context.emit(Forced(live[i].text, b"".join(token.bytes for token in spans[i][:count])))
        logprob, least = live[i].logprob + sum(logprobs[:count]), min((live[i].least_logprob, *logprobs[:count]))
        forced[i] = Hypothesis(live[i].tokens + spans[i][:count], logprob, state, least_logprob=least)
    return forced


def forced_tokens(model: LanguageModel, hypothesis: Hypothesis, max_tokens: int) -> Prefix:
    """Return the tokens of the forced bytes without the last one; none if they end within a character."""
    try:
        text = hypothesis.state.forced().decode()
    except UnicodeDecodeError:
        return ()
    return model.tokenize(text)[:-1][: max(0, max_tokens - len(hypothesis.tokens))] if text else ()
