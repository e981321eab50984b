"""Speculative constrained decoding as listed in the appendix of Shin and Van Durme (2022), to the letter.

The listing leaves some points open. They are read as follows:

- The end is a token (EOS) of a sample. It is valid where the grammar may end, as in the paper's `nextTokens`, and
  its log-probability is that of all ending tokens together.
- `is_finished`: the sequence ends in EOS, or nothing but EOS may follow. In the second case the end is not in the
  sequence, so it counts neither in the log-probability nor in the length.
- `length_normalized_logprob` is the length normalisation of GNMT at temperature 1, as in beam search.
- The back-off (`...`) is one step of constrained decoding: the `width` best allowed next tokens, EOS among them. A
  sample without a valid token causes it, also if other samples have valid tokens. The model is queried once per
  sequence; every further sample without a valid token contributes the same results again.
- Duplicates fill slots: among the samples, among the candidates, in the beam, and in `finished`.
- `finished` is kept over the rounds. A round starts with a beam, so with fewer than `width` finished hypotheses,
  and the test `len(finished) + len(new_beam) == W` is true once all slots are filled.
- A sample that reaches the length limit without EOS is a valid prefix like any other: it fills a slot. Nothing can
  follow it, so it is not expanded.
- There is no exception for a width of 1 or for a temperature of 0, at which all samples of a state are equal.
- After the last round unfinished hypotheses are dropped. If nothing finished, there is no output.
"""

from collections.abc import Sequence

from fewparse.events import Kept, RoundEnded, RoundStarted, Sampled, SampleOutcome
from fewparse.lm.model import Completion, NextTokens, Prefix
from fewparse.search.context import SearchContext
from fewparse.search.hypothesis import Hypothesis, best_first, split


def listing_search(context: SearchContext, start: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the listing's `finished`: at most `width` hypotheses in the order in which they were found."""
    settings, emit = context.settings, context.emit
    beam, finished = split(start)
    expansion = ListingExpansion(context)
    for number in range(1, 1 + (settings.rounds if context.model.supports_prefix else 1)):
        emit(RoundStarted(number, tuple(h.text for h in beam)))
        new_beam: list[Hypothesis] = []
        for candidate in best_first(expansion.expand(beam, number)):
            (finished if candidate.finished else new_beam).append(candidate)
            if len(finished) + len(new_beam) == settings.width:
                break
        kept = best_first([*finished, *new_beam])
        emit(RoundEnded(number, tuple(Kept(h.text, h.score, h.finished) for h in kept)))
        beam = [h for h in new_beam if len(h.tokens) < settings.max_tokens]
        if not beam:
            break
    return finished


class ListingExpansion:
    """The function `expand` of the listing, for all states of a beam at once."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self._next_tokens: dict[Prefix, NextTokens] = {}

    def expand(self, beam: Sequence[Hypothesis], number: int) -> list[Hypothesis]:
        """Return the candidates of each state in turn, in the order of its samples."""
        samples = self._context.sample(beam, number)
        cut = [
            [self._cut(state, completion) for completion in completions]
            for state, completions in zip(beam, samples, strict=True)
        ]
        self._query([state for state, prefixes in zip(beam, cut, strict=True) if None in prefixes])
        results: list[Hypothesis] = []
        for state, prefixes in zip(beam, cut, strict=True):
            step = self._back_off(state) if None in prefixes else []
            for valid_prefix in prefixes:
                results += step if valid_prefix is None else [valid_prefix]
        return [h.finish_if_nothing_follows() for h in results]

    def _cut(self, state: Hypothesis, completion: Completion) -> Hypothesis | None:
        """Return a sample up to its first invalid token; None if it has no valid token."""
        pieces = tuple(token.bytes for token in completion.tokens)
        *_, reached = path = state.follow(completion)
        valid = len(path) - 1
        found: Hypothesis | None = reached if valid else None
        outcome: SampleOutcome = "cut" if valid else "rejected"
        if valid == len(pieces) and completion.ended and reached.state.may_end:
            found, outcome = reached.finish(completion.positions[valid].end_logprob), "finished"
        elif valid == len(pieces) and not completion.ended:
            outcome = "limit"
        self._context.emit(Sampled(state.text, pieces, valid, outcome))
        return found

    def _query(self, states: Sequence[Hypothesis]) -> None:
        """Query the best allowed next tokens of all states that were not queried before."""
        new = {state.tokens: state for state in states if state.tokens not in self._next_tokens}
        if new:
            found = self._context.best_allowed(list(new.values()), self._context.settings.width)
            self._next_tokens |= zip(new, found, strict=True)

    def _back_off(self, state: Hypothesis) -> list[Hypothesis]:
        return self._context.back_off(state, self._next_tokens[state.tokens], free=False)
