"""Complete an output that reached the length limit in a short well-formed way.

Greedy decoding can loop where a grammar allows repetition (one more guest, and one more). The completion comes
from the constraint; the model only scores it, if it can and the hypothesis is ranked by its score.
"""

from dataclasses import replace

from fewparse.constrain.state import Constraint
from fewparse.events import Completed
from fewparse.lm.model import Token
from fewparse.search.context import SearchContext
from fewparse.search.hypothesis import Hypothesis


def complete(context: SearchContext, hypothesis: Hypothesis, constraint: Constraint) -> Hypothesis | None:
    """Return the hypothesis with a short completion, finished; None if there is none or it exceeds the context."""
    completion = constraint.ending(hypothesis.text)
    if completion is None:
        return None
    state = hypothesis.state.advance(completion) if completion else hypothesis.state
    if state is None:
        return None
    model, prompt, usage = context.model, context.prompt, context.usage
    if hypothesis.share is not None or not model.supports_prefix:
        context.emit(Completed(hypothesis.text, completion))
        return replace(hypothesis, tokens=(*hypothesis.tokens, Token(completion)), state=state).finish(0.0)
    tokens = model.tokenize(completion.decode(errors="replace")) if completion else ()
    if b"".join(token.bytes for token in tokens) != completion:
        return None
    if model.prompt_length(prompt) + len(hypothesis.tokens) + len(tokens) > model.context_length:
        return None
    logprobs = model.score(prompt, [hypothesis.tokens], [tokens], usage)[0] if tokens else ()
    logprob, least = hypothesis.logprob + sum(logprobs), min((hypothesis.least_logprob, *logprobs))
    whole = Hypothesis(hypothesis.tokens + tokens, logprob, state, least_logprob=least)
    end = model.next_tokens(prompt, [whole.tokens], 1, context.settings.stop, usage)[0].end_logprob
    context.emit(Completed(hypothesis.text, completion))
    return whole.finish(end)
