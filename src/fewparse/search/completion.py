"""Close an output that reached the length limit: a short way to something well-formed.

Greedy decoding can run in circles that a grammar allows (one more guest, and one more). What ends it has nothing
to do with a model; once appended, it is scored by one, if that can be asked.
"""

from fewparse.constrain.state import Constraint
from fewparse.lm.model import Token
from fewparse.search.context import SearchContext
from fewparse.search.events import Closed
from fewparse.search.hypothesis import Hypothesis


def close(context: SearchContext, hypothesis: Hypothesis, constraint: Constraint) -> Hypothesis | None:
    """The hypothesis, finished in a short well-formed way; None if there is none near."""
    completion = constraint.ending(hypothesis.text)
    if completion is None:
        return None
    state = hypothesis.state.advance(completion) if completion else hypothesis.state
    if state is None:
        return None
    model, prompt, usage = context.model, context.prompt, context.usage
    if not model.supports_prefix:
        context.emit(Closed(hypothesis.text, completion))
        return Hypothesis((*hypothesis.tokens, Token(completion)), hypothesis.logprob, state).finish(0.0)
    tokens = model.tokenize(completion.decode(errors="replace")) if completion else ()
    if b"".join(token.bytes for token in tokens) != completion:
        return None
    logprob = hypothesis.logprob
    if tokens:
        logprob += sum(model.score(prompt, [hypothesis.tokens], [tokens], usage)[0])
    whole = Hypothesis(hypothesis.tokens + tokens, logprob, state)
    end = model.next_tokens(prompt, [whole.tokens], 1, context.settings.stop, usage)[0].end_logprob
    context.emit(Closed(hypothesis.text, completion))
    return whole.finish(end)
