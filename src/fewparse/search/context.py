"""One context: whom a search asks, about what, how, and who is told of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from fewparse.constrain.state import State
from fewparse.lm.model import LanguageModel, NextTokens, ScoredToken, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.events import Listener, Spelt
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import Settings
from fewparse.vocabulary import is_text

AS_MANY_AS_TOLD = 100
"""How many next tokens are asked for where the vocabulary is unknown, and with it which of them may follow."""
MOST_SPELT, LONGEST_CHARACTER = 256, 4


@dataclass(frozen=True)
class SearchContext:
    """What all parts of one search share."""

    model: LanguageModel
    prompt: Prompt
    settings: Settings
    usage: Usage
    emit: Listener

    def best_allowed(self, live: Sequence[Hypothesis], width: int) -> list[NextTokens]:
        """The best allowed next tokens of each hypothesis, exact where the model knows its vocabulary."""
        for hypothesis in live:
            hypothesis.state.must_end  # noqa: B018 -- raises at a dead end, before a request is spent on it
        known = self.model.vocabulary is not None
        masks = [h.state.mask() for h in live] if known else None
        k = width if known else max(width, self.settings.alternatives, AS_MANY_AS_TOLD)
        tokens = [h.tokens for h in live]
        answers = self.model.next_tokens(self.prompt, tokens, k, self.settings.stop, self.usage, masks)
        return [
            answer if known and answer.best else self._with_a_way_on(hypothesis, answer)
            for hypothesis, answer in zip(live, answers, strict=True)
        ]

    def _with_a_way_on(self, hypothesis: Hypothesis, answer: NextTokens) -> NextTokens:
        """The answer; where none of the tokens that a model tells may follow, what the constraint would say.

        That is one span if it is forced, else any character that may follow. Nobody tells their
        log-probabilities: they get the most they can have.
        """
        state = hypothesis.state
        if answer.complete or state.may_end or any(state.advance(choice.token.bytes) for choice in answer.best):
            return answer
        forced = state.forced()
        spans = [forced] if forced else list(islice(characters(state), MOST_SPELT))
        self.emit(Spelt(hypothesis.text, tuple(spans)))
        return answer._replace(best=tuple(ScoredToken(Token(span), answer.bound) for span in spans))


def characters(state: State, begun: bytes = b"") -> Iterator[bytes]:
    """The characters that may follow, each as its bytes."""
    for byte in np.unique(state.vocabulary.first_bytes[state.mask()]):
        said = begun + bytes([int(byte)])
        following = state.advance(said[-1:])
        if following is None:
            continue
        if is_text(said):
            yield said
        elif len(said) < LONGEST_CHARACTER:
            yield from characters(following, said)
