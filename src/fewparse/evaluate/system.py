"""What is evaluated: anything that ranks programs for an utterance."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fewparse.example import Candidate, Example
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.prompt import Prompt


class Prediction(NamedTuple):
    """Ranked candidates and what they cost; reading the prompt is timed apart from decoding.

    `examples_dropped` counts those that did not fit into the model's context.
    """

    candidates: tuple[Candidate, ...]
    usage: Usage
    seconds: float
    prompt_seconds: float = 0.0
    examples_dropped: int = 0


class System(Protocol):
    """A way to parse that has a name."""

    @property
    def name(self) -> str:
        """How results name it."""

    @property
    def settings(self) -> dict[str, Any]:
        """All that its predictions depend on, to tell its results from those of other settings."""

    @property
    def max_concurrency(self) -> int | None:
        """How many items it parses at once to advantage; None where that is no matter."""

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """Candidates for the item's utterance, best first; `without` are examples that must not help."""


@dataclass
class Reading:
    """The prompt that a model has read last, and what that took.

    Systems that share a prompt follow each other on an item. It is read before their clocks start, once, and its
    cost is told beside theirs. A model that answers several searches at once keeps no prompt for the next one:
    reading it beforehand would only cost a request.
    """

    last: tuple[str, Prompt] | None = None
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    def read(self, model: LanguageModel, prompt: Prompt) -> None:
        """Have the prompt evaluated, unless it just was."""
        if (model.name, prompt) == self.last:
            return
        usage = Usage()
        begin = time.perf_counter()
        model.next_tokens(prompt, [()], 1, b"\n", usage)
        self.last, self.seconds = (model.name, prompt), time.perf_counter() - begin
        self.usage = replace(usage, requests=0, rounds=0)


UNREAD = (".pyc", ".gguf", ".tuning", ".part")
"""Files of a folder that say nothing of a prompt: an adapter in use is accounted for by itself."""


def digests(place: Path) -> dict[str, str]:
    """What a file, or each file of a folder, says, in short."""
    found = sorted(place.rglob("*")) if place.is_dir() else [place]
    files = (path for path in found if path.is_file() and path.suffix not in UNREAD)
    return {str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class Prompted:
    """A parser as it is used, with all its candidates kept."""

    def __init__(self, name: str, parser: Parser, reading: Reading) -> None:
        self.name = name
        self._parser = parser
        self._reading = reading

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The model, the options, and whatever the domain's files say."""
        domain, options = self._parser.domain, asdict(self._parser.options)
        adapter = options.pop("adapter")
        said = domain.known_outputs if domain.constraint_kind.finite else ()
        return {
            "version": version("fewparse"),
            "model": self._parser.model.name,
            "options": options,
            "constraint": domain.table.constraint.model_dump(exclude_defaults=True),
            "taught": [asdict(example) for example in (*domain.examples, *said)],
            "files": digests(domain.folder),
            **({} if adapter is None else {"adapter": adapter["sha256"]}),
            **({} if domain.own_grammar else {"grammar": digests(domain.grammar_path)}),
        }

    @property
    def max_concurrency(self) -> int:
        """What its model serves."""
        return self._parser.model.max_concurrency

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """Read the prompt where that is of use, then parse."""
        if self._parser.model.local:
            self._reading.read(self._parser.model, self._parser.prompt(item.utterance, item.context, without)[1])
        begin = time.perf_counter()
        parse = self._parser.parse(item.utterance, item.context, without=without)
        seconds = time.perf_counter() - begin
        usage = replace(parse.usage)
        usage += self._reading.usage
        return Prediction(parse.candidates, usage, seconds, self._reading.seconds, parse.examples_dropped)
