"""Forced spans: where the grammar leaves one continuation, append it without asking for each token.

The span is written as the model's own tokenizer writes it, without its last token, which might have merged
with what follows. Its log-probability is accounted in full: the model scores the span in one pass.
"""

from collections.abc import Sequence

from fewparse.lm.model import LanguageModel, Prefix
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.events import Forced, Listener
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import Settings

SHORTEST = 2


def force(
    model: LanguageModel,
    prompt: Prompt,
    live: Sequence[Hypothesis],
    settings: Settings,
    usage: Usage,
    emit: Listener,
) -> list[Hypothesis]:
    """The hypotheses, each with its forced span of two or more tokens appended."""
    spans = [forced_tokens(model, h, settings.limit) for h in live]
    long = [i for i, span in enumerate(spans) if len(span) >= SHORTEST]
    if not long:
        return list(live)
    scores = model.score(prompt, [live[i].tokens for i in long], [spans[i] for i in long], usage)
    forced = list(live)
    for i, logprobs in zip(long, scores, strict=True):
        count, state = live[i].state.walk([token.bytes for token in spans[i]])
        emit(Forced(live[i].text, b"".join(token.bytes for token in spans[i][:count])))
        forced[i] = Hypothesis(live[i].tokens + spans[i][:count], live[i].logprob + sum(logprobs[:count]), state)
    return forced


def forced_tokens(model: LanguageModel, hypothesis: Hypothesis, limit: int) -> Prefix:
    """The tokens of the forced bytes, but for the last; none where they break a character."""
    try:
        text = hypothesis.state.forced().decode()
    except UnicodeDecodeError:
        return ()
    return model.tokenize(text)[:-1][: max(0, limit - len(hypothesis.tokens))] if text else ()
