"""One inquiry: whom a search asks, about what, how, and who is told of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from fewparse.lm.model import LanguageModel, NextTokens
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.events import Listener
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import Settings


@dataclass(frozen=True)
class Inquiry:
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
        k = width if known else max(width, self.settings.alternatives)
        tokens = [h.tokens for h in live]
        return self.model.next_tokens(self.prompt, tokens, k, self.settings.stop, self.usage, masks)
