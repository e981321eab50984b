"""The interface of a decoder, and the table of decoders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewparse.registry import Registry

if TYPE_CHECKING:
    from fewparse.lm.model import LanguageModel
    from fewparse.search.context import SearchContext
    from fewparse.search.hypothesis import Hypothesis

Search = Callable[["SearchContext", Sequence["Hypothesis"]], "list[Hypothesis]"]


@dataclass(frozen=True)
class Decoder:
    """A search algorithm and its requirements.

    `search` takes the shared state of a search and the hypotheses to start from, and returns the finished
    hypotheses; if nothing finished, those that reached the length limit. `needs_prefix`: it queries the
    model about partial outputs. `needs_logprobs`: it ranks by log-probabilities. `samples`: it samples whole
    completions, which a server can constrain by a grammar. `label` shows the width, if the decoder has one.
    """

    search: Search
    needs_prefix: bool = True
    needs_logprobs: bool = True
    samples: bool = False
    label: str = " {width}"

    def can_use(self, model: "LanguageModel") -> bool:
        """Return whether a model has what the algorithm needs."""
        has_logprobs = model.supports_logprobs or not self.needs_logprobs
        return has_logprobs and (model.supports_prefix or not self.needs_prefix)


DECODERS: Registry[Decoder] = Registry(
    "decoder",
    {
        "beam": "fewparse.search.beam:BEAM",
        "speculative": "fewparse.search.speculative:SPECULATIVE",
        "greedy": "fewparse.search.beam:GREEDY",
        "sampling": "fewparse.search.agreement:SAMPLING",
    },
)
