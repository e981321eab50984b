"""Sampling: whole outputs, ranked by how many of the samples agree; no log-probabilities are needed.

The share of the samples that are equal estimates the probability of an output, as in self-consistency (Wang et
al., 2023). If no sample is well-formed, the longest well-formed prefix of one is returned, to be completed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fewparse.events import Kept, RoundEnded, RoundStarted, Sampled, SampleOutcome
from fewparse.lm.model import Completion
from fewparse.search.context import SearchContext
from fewparse.search.decoder import Decoder
from fewparse.search.hypothesis import Hypothesis, ranked


def sampling_search(context: SearchContext, start: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the distinct well-formed samples, each with its share of all samples; else one to be completed."""
    (origin,) = start
    context.emit(RoundStarted(1, (origin.text,)))
    (completions,) = context.sample([origin], 1)
    reached = [follow(context, origin, completion) for completion in completions]
    counts = Counter(hypothesis.key for hypothesis in reached)
    shares = [replace(hypothesis, share=counts[hypothesis.key] / len(reached)) for hypothesis in reached]
    found = ranked(hypothesis for hypothesis in shares if hypothesis.finished)
    kept = found or [max(shares, key=lambda h: (len(h.text), h.score, h.text))]
    context.emit(RoundEnded(1, tuple(Kept(h.text, h.score, h.finished) for h in kept)))
    return kept


def follow(context: SearchContext, origin: Hypothesis, completion: Completion) -> Hypothesis:
    """Return the well-formed part of a sample, finished if it is the whole and may end there."""
    pieces = tuple(token.bytes for token in completion.tokens)
    valid, state = origin.state.walk(pieces)
    reached = Hypothesis((*origin.tokens, *completion.tokens[:valid]), 0.0, state)
    cut = valid < len(pieces) or (completion.ended and not state.may_end)
    finished = state.must_end if cut else completion.ended
    outcome: SampleOutcome = "finished" if finished else "limit" if not cut else "cut" if valid else "rejected"
    context.emit(Sampled(origin.text, pieces, valid, outcome))
    return replace(reached, finished=finished)


SAMPLING = Decoder(sampling_search, needs_prefix=False, needs_logprobs=False, samples=True, label=" W={width}")
