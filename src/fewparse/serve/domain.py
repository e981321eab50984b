"""A served domain: its parsers, which share a model, and what requests may ask of it."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from fewparse.domains.acceptance import DomainAcceptor, Verdict
from fewparse.domains.domain import Domain
from fewparse.errors import UsageError
from fewparse.example import TARGETS, Target
from fewparse.grammar.analysis.statistics import statistics
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.lm.load import NamedModel
from fewparse.lm.model import LanguageModel
from fewparse.options import ParserOptions, prepare
from fewparse.parser import Parser
from fewparse.serve.limits import ServeLimits
from fewparse.serve.problems import Problem
from fewparse.serve.requests import ParseOptions

MAX_PARSERS = 16
SAMPLES = 8
LoadDomain = Callable[[], Domain]


class ServedDomain:
    """A domain of a server.

    `options` are the server's, which a request may override. `load` reads the domain again; `folder` is watched
    for changes. Methods that may take long are called in threads.
    """

    def __init__(
        self,
        load: LoadDomain,
        model: LanguageModel,
        model_name: str,
        limits: ServeLimits,
        allow_execute: bool,
        options: ParserOptions,
        retriever_model: NamedModel | None = None,
    ) -> None:
        self.load = load
        self._arguments = (model, model_name, limits, allow_execute, options, retriever_model)
        self._model, self._model_name, self._limits, self._allow_execute, self._given, self._ranking = (
            self._arguments
        )
        self.reload_error: str | None = None
        loaded = load()
        self.domain, self.options = prepare(loaded, model_name, **options)
        self.domain.require_code()
        self._targeted: dict[Target, Domain] = {self.options.target: self.domain}
        self._parsers: OrderedDict[str, Parser] = OrderedDict()
        self._lock = threading.Lock()
        self.parser(ParseOptions())

    def reloaded(self) -> "ServedDomain":
        """Return the domain as its files are now; raise an error if they cannot be used."""
        return ServedDomain(self.load, *self._arguments)

    @property
    def name(self) -> str:
        """The name of the domain."""
        return self.domain.name

    @property
    def folder(self) -> Path:
        """The folder of the domain."""
        return self.domain.folder

    @property
    def calibration_note(self) -> str | None:
        """Why parses with the server's options have no confidence although the domain is calibrated."""
        return self.parser(ParseOptions()).assessor.note

    @cached_property
    def targets(self) -> list[Target]:
        """The targets that the domain supports."""
        has_canonical = self.domain.translator is not None or all(e.canonical for e in self.domain.examples)
        return list(TARGETS) if has_canonical else ["program"]

    def parser(self, requested: ParseOptions) -> Parser:
        """Return the parser with the options of a request; the newest ones are kept."""
        self._check(requested)
        key = requested.model_dump_json(exclude_none=True)
        with self._lock:
            parser = self._parsers.pop(key, None) or self._new_parser(requested)
            self._parsers[key] = parser
            if len(self._parsers) > MAX_PARSERS:
                self._parsers.popitem(last=False)
            return parser

    def _new_parser(self, requested: ParseOptions) -> Parser:
        given: Any = self._given | requested.model_dump(exclude_none=True)
        target = given.get("target") or self.options.target
        if target not in self._targeted:
            self._targeted[target] = self.domain.for_target(target)
        domain, options = prepare(self._targeted[target], self._model_name, **given)
        return Parser(domain, self._model, options, retriever_model=self._ranking)

    def _check(self, requested: ParseOptions) -> None:
        """Raise an error for options beyond the limits of the server."""
        for name, limit in (("width", self._limits.width), ("max_tokens", self._limits.max_tokens)):
            value = getattr(requested, name)
            if value is not None and value > limit:
                raise UsageError(f"the {name} is {value}; this server allows at most {limit}")
        if requested.execute and self.domain.has_executor:
            self.check_execution()

    @property
    def may_execute(self) -> bool:
        """Whether programs may be executed on request."""
        return self.domain.has_executor and (self.domain.executes or self._allow_execute)

    def check_execution(self) -> None:
        """Raise `Problem` if programs of this domain may not be executed on request."""
        if not self.domain.has_executor:
            raise UsageError(f"the domain {self.name} has no executor")
        if not self.may_execute:
            raise Problem(
                403,
                "execution_not_allowed",
                f"programs of the domain {self.name} have effects, and this server does not execute them",
                "Whoever runs the server can allow it: fewparse serve --allow-execute",
            )

    def target_of(self, target: Target | None) -> Target:
        """Return a target, by default that of the domain; raise `UsageError` if the domain does not support it."""
        target = target or self.options.target
        if target not in self.targets:
            raise UsageError(f"the domain {self.name} has no canonical utterances", "Use the target `program`.")
        return target

    def verdict(self, text: str, target: Target) -> Verdict:
        """Return whether a text is an output of the domain for a target."""
        return self._acceptors[target].verdict(text)

    @cached_property
    def _acceptors(self) -> dict[Target, DomainAcceptor]:
        return {target: DomainAcceptor(self.domain, target) for target in self.targets}

    @cached_property
    def samples(self) -> list[str]:
        """Utterances to try: training examples at equal distances."""
        examples = self.domain.examples
        step = max(1, len(examples) // SAMPLES)
        return [example.utterance for example in examples[::step]][:SAMPLES]

    @cached_property
    def grammar_statistics(self) -> dict[str, Any] | None:
        """The size of the grammar; None if there is none."""
        language = self.domain.language
        if language is None:
            return None
        found = statistics(language)
        return {
            "synchronous": isinstance(language, SynchronousGrammar),
            "rules": found.rules,
            "utterance_patterns": found.pairings,
            "sides": {
                name: {"productions": side.productions, "nonterminals": side.names, "literals": side.literals}
                for name, side in found.sides.items()
            },
        }

    def public_options(self) -> dict[str, Any]:
        """Return the options of a parse by default, without paths."""
        options = self.options
        search = options.search
        return {
            "target": options.target,
            "decoder": search.decoder,
            "width": search.width,
            "temperature": search.temperature,
            "max_tokens": search.max_tokens,
            "seed": search.seed,
            "constrained": options.constrained,
            "rerank": options.rerank,
            "vote": options.vote,
            "retriever": options.retriever,
            "examples": options.examples,
            "order": options.order,
            "adapter": None if options.adapter is None else options.adapter.path.name,
            "execute": options.execute,
            "n_best": options.n_best,
            "prompt": options.prompt,
        }
