"""Close an output that reached the length limit: the shortest way to something well-formed.

Greedy decoding can run in circles that a grammar allows (one more guest, and one more). The search over bytes
here has nothing to do with a model; what it appends is scored by one.
"""

import heapq
from itertools import count

import numpy as np

from fewparse.constrain.state import State
from fewparse.search.events import Closed
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.inquiry import Inquiry

MAX_STATES = 10_000
CLOSERS = frozenset(b")]}>\"'")
CLOSING, OPENING = 1, 4


def close(inquiry: Inquiry, hypothesis: Hypothesis) -> Hypothesis | None:
    """The hypothesis, finished in the shortest well-formed way; None if none is near."""
    found = shortest_completion(hypothesis.state)
    if found is None:
        return None
    completion, state = found
    model, prompt, usage = inquiry.model, inquiry.prompt, inquiry.usage
    tokens = model.tokenize(completion.decode(errors="replace")) if completion else ()
    if b"".join(token.bytes for token in tokens) != completion:
        return None
    logprob = hypothesis.logprob
    if tokens:
        logprob += sum(model.score(prompt, [hypothesis.tokens], [tokens], usage)[0])
    whole = Hypothesis(hypothesis.tokens + tokens, logprob, state)
    end = model.next_tokens(prompt, [whole.tokens], 1, inquiry.settings.stop, usage)[0].end_logprob
    inquiry.emit(Closed(hypothesis.text, completion))
    return whole.finish(end)


def shortest_completion(begin: State) -> tuple[bytes, State] | None:
    """The cheapest bytes after which the output may end, by uniform-cost search: closing is cheap."""
    order = count()
    frontier: list[tuple[int, bytes, int, State]] = [(0, b"", next(order), begin)]
    for _ in range(MAX_STATES):
        if not frontier:
            return None
        cost, said, _, state = heapq.heappop(frontier)
        if state.may_end:
            return said, state
        for byte in np.unique(state.vocabulary.first_bytes[state.mask()]):
            piece = bytes([int(byte)])
            following = state.advance(piece)
            if following is not None:
                step = CLOSING if int(byte) in CLOSERS else OPENING
                heapq.heappush(frontier, (cost + step, said + piece, next(order), following))
    return None
