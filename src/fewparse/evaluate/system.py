"""Systems to evaluate: anything that ranks programs for an utterance, in particular a parser."""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fewparse.confidence.features import VERSION
from fewparse.domains.domain import DESCRIPTION, Domain
from fewparse.errors import DomainError
from fewparse.events import event_fields
from fewparse.example import Candidate, Example
from fewparse.files import exists, file_sha256
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.options import Options
from fewparse.parser import Parser
from fewparse.prompt import Prompt
from fewparse.text import json_value


class Prediction(NamedTuple):
    """Ranked candidates and their cost.

    `seconds` is the decoding time and `prompt_seconds` the prefill time; `examples_dropped` counts the examples
    that did not fit into the model's context. `trace` holds the events of the search, if they are to be
    recorded; `features` those of the confidence, if they were computed.
    """

    candidates: tuple[Candidate, ...]
    usage: Usage
    seconds: float
    prompt_seconds: float = 0.0
    examples_dropped: int = 0
    trace: tuple[dict[str, Any], ...] | None = None
    features: Mapping[str, float] | None = None


class SystemIdentity(Protocol):
    """What identifies a system in the records."""

    @property
    def name(self) -> str:
        """The name of the system in reports."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that its predictions depend on: records of other settings are not reused."""


class System(SystemIdentity, Protocol):
    """A named system that predicts programs."""

    @property
    def max_concurrency(self) -> int | None:
        """The maximum number of items to process at the same time; None means no preference."""

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """Return candidates for the item's utterance, best first, without the examples `without` in the prompt."""


@dataclass
class PromptPrefill:
    """The prompt that a model has evaluated last, with the time and the usage of the prefill.

    Systems that share a prompt run one after another on an item. Their prompt is evaluated once, before decoding
    is timed, and its cost is reported separately for each of them. This is only useful for a model in this
    process: a server serves several searches at the same time, and a separate prefill would cost a request.
    """

    last: tuple[str, Prompt] | None = None
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    def run(self, model: LanguageModel, prompt: Prompt) -> None:
        """Evaluate the prompt, unless it was the last one."""
        if (model.name, prompt) == self.last:
            return
        usage = Usage()
        start = time.perf_counter()
        model.next_tokens(prompt, [()], 1, b"\n", usage)
        self.last, self.seconds = (model.name, prompt), time.perf_counter() - start
        self.usage = replace(usage, requests=0, rounds=0)


IGNORED_SUFFIXES = (".pyc", ".gguf", ".svg", ".tuning", ".part", ".lock")
IGNORED_NAMES = ("README.md", "calibration.json", "out_of_scope", "feedback.sqlite")
"""Ends and starts of the names of files that have no influence on prompts; an adapter in use has its own entry."""


def file_digests(path: Path) -> dict[str, str]:
    """Return the SHA-256 digest of a file, or of each file of a folder, by relative path."""
    found = sorted(path.rglob("*")) if os.path.isdir(path) else [path]
    files = (file for file in found if os.path.isfile(file) and not is_ignored(file))
    return {str(file.relative_to(path)): file_sha256(file, DomainError) for file in files}


def is_ignored(file: Path) -> bool:
    """Return whether the predictions of a parser do not depend on a file of the domain's folder."""
    return file.suffix in IGNORED_SUFFIXES or file.name.startswith(IGNORED_NAMES)


class ParserSystem:
    """A parser as a system; with `trace`, its predictions include the events of the search."""

    def __init__(self, name: str, parser: Parser, prefill: PromptPrefill, trace: bool = False) -> None:
        self.name = name
        self._parser = parser
        self._prefill = prefill
        self._trace = trace

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The model, the options, and the content of the domain's files."""
        parser, ranking = self._parser, self._parser.retriever_model
        models = {"model": parser.model.name} | ({} if ranking is None else {"retriever_model": ranking.name})
        computed = {"features": VERSION} if parser.assessor.always else {}
        return models | settings_of(parser.domain, parser.options) | computed

    @property
    def max_concurrency(self) -> int:
        """The concurrency of its model."""
        return self._parser.model.max_concurrency

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """Evaluate the prompt if the model is local, then parse."""
        usage = Usage()
        if self._parser.model.local:
            _, prompt = self._parser.prompt(item.utterance, item.context, without, usage)
            self._prefill.run(self._parser.model, prompt)
        start = time.perf_counter()
        parse = self._parser.parse(item.utterance, item.context, without=without)
        seconds = time.perf_counter() - start
        usage += parse.usage
        usage += self._prefill.usage
        trace = tuple(map(event_fields, parse.trace)) if self._trace else None
        prompt_seconds, dropped = self._prefill.seconds, parse.examples_dropped
        return Prediction(parse.candidates, usage, seconds, prompt_seconds, dropped, trace, parse.features)


def settings_of(domain: Domain, options: Options) -> dict[str, Any]:
    """Return everything except the models that the predictions of a parser depend on, as a JSON object."""
    resolved = asdict(options) | {"server_grammar": bool(options.server_grammar)}
    adapter = resolved.pop("adapter")
    del resolved["retriever_model"], resolved["execute"], resolved["max_risk"], resolved["adapter_note"]
    if not domain.template(options.prompt).has_description:
        del resolved["description_lines"]
    outputs = domain.known_outputs if domain.constraint_kind.finite else ()
    examples = [asdict(example) for example in (*domain.examples, *outputs)]
    return {
        "version": version("fewparse"),
        "options": json_value(resolved),
        "constraint": domain.table.constraint.model_dump(exclude_defaults=True, mode="json"),
        "examples_sha256": hashlib.sha256(json.dumps(examples).encode()).hexdigest(),
        "files": file_digests(domain.folder) if domain.has_folder else language_digest(domain),
        **({} if adapter is None else {"adapter": adapter["sha256"]}),
        **(description_digest(domain) if domain.is_benchmark else {}),
        **({} if domain.own_grammar else {"grammar": file_digests(domain.grammar_path)}),
    }


def language_digest(domain: Domain) -> dict[str, str]:
    """Return the digest of the grammar of a domain that is made in Python, if one is given."""
    language = domain.given.language
    return {} if language is None else {"grammar": hashlib.sha256(repr(language).encode()).hexdigest()}


def description_digest(domain: Domain) -> dict[str, str]:
    """Return the digest of a description that is not among the files of the domain's folder, if there is one."""
    path = domain.data_file(DESCRIPTION)
    return {"description": file_sha256(path, DomainError)} if exists(path) else {}
