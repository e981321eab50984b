"""The options of a parser: those that the caller sets, and defaults from the domain's settings or the paper."""

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from fewparse.arguments import accepted_types, check_values
from fewparse.domains.domain import Domain
from fewparse.domains.files import adapter_name
from fewparse.domains.functions import check_executor
from fewparse.domains.load import LOADING_TYPES, LoadingOptions, load_domain
from fewparse.errors import UnknownName, UsageError
from fewparse.example import TARGETS, Target
from fewparse.files import user_path
from fewparse.lm.adapter import Adapter, Provenance, read_adapter
from fewparse.lm.load import EMBEDDED, is_default_model, known_kind
from fewparse.lm.model import LanguageModel
from fewparse.retrieve.retriever import ORDERS, RETRIEVERS, Order
from fewparse.search.decoder import DECODERS
from fewparse.search.settings import RANGES, SearchSettings, check_range

NO_ADAPTER = "none"
PAPER_PROMPTS: dict[Target, str] = {"program": "lisp", "canonical": "canonical"}
PAPER_OPTIONS: dict[str, Any] = {
    "examples": 20,
    "retriever": "lm",
    "order": "shuffled",
    "fold": False,
    "rerank": 0.0,
    "vote": False,
    "decoder": "speculative",
    "width": 10,
    "temperature": 0.5,
    "rounds": 16,
    "free_back_off": False,
    "free_branching": False,
    "forced_spans": False,
    "margin": math.inf,
}
"""The options of Shin and Van Durme (2022), besides their prompts; no text is copied, and there is no adapter."""


class SearchOptions(TypedDict, total=False):
    """Options of the search; None or absent means the domain's setting."""

    decoder: str | None
    width: int | None
    temperature: float | None
    max_tokens: int | None
    rounds: int | None
    seed: int | None
    alternatives: int | None
    free_back_off: bool | None
    free_branching: bool | None
    forced_spans: bool | None
    margin: float | None


class CommonOptions(SearchOptions, total=False):
    """Options of the prompt, the constraint, reranking and the adapter."""

    target: Target | None
    prompt: str | None
    description_lines: int | None
    examples: int | None
    order: Order | None
    fold: bool | None
    constrained: bool | None
    server_grammar: bool | None
    rerank: float | None
    vote: bool | None
    execute: bool | None
    n_best: int | None
    max_risk: float | None
    adapter: str | Path | None


class ParserOptions(CommonOptions, total=False):
    """All options of a parser; None or absent means the domain's setting."""

    retriever: str | None
    retriever_model: str | None


class FromDomainOptions(CommonOptions, LoadingOptions, total=False):
    """Options of `Parser.from_domain` beyond those in its signature, including those of loading a domain."""


class AllOptions(ParserOptions, LoadingOptions, total=False):
    """The options of loading a domain and of a parser."""

    constraint: str | None


@dataclass(frozen=True)
class Options:
    """The resolved options of a parser; without `retriever_model`, a retriever uses the model of the parser.

    If `server_grammar` is None, the grammar is sent to a server whose model reports no log-probabilities.
    `adapter_note` is the reason why the domain's own adapter is not used although it is there.
    """

    target: Target
    prompt: str
    description_lines: int
    examples: int
    order: Order
    retriever: str
    retriever_model: str | None
    fold: bool
    constrained: bool
    server_grammar: bool | None
    rerank: float
    vote: bool
    execute: bool
    n_best: int
    max_risk: float
    search: SearchSettings
    adapter: Adapter | None
    adapter_note: str | None = None

    @staticmethod
    def resolve(domain: Domain, model: str = "", **given: Unpack[ParserOptions]) -> "Options":
        """Return the domain's settings or, in paper mode, the paper's, overridden by the options given.

        `model` is the name of the model: the domain's adapter is used with the default model only.
        """
        check_values(given, OPTION_TYPES)
        table = domain.table
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        target = options.get("target", table.target)
        if target not in TARGETS:
            raise UnknownName("target", target, TARGETS)
        in_paper_mode = table.paper if domain.paper is None else domain.paper
        requested = options.pop("adapter", NO_ADAPTER if in_paper_mode else None)
        adapter, note = find_adapter(domain, target, model, requested)
        provenance = adapter.provenance if adapter else None
        defaults = default_options(domain, target, provenance, in_paper_mode)
        known = {*defaults, *SEARCH_OPTIONS, "n_best"}
        for name in options:
            if name not in known:
                raise UnknownName("option", name, sorted(known))
        merged = defaults | options
        # A sample that cannot be cut is complete: branches of it would only be more samples, at a high cost.
        merged.setdefault("free_branching", merged["constrained"] and not merged["server_grammar"])
        merged.setdefault("n_best", merged["width"])
        search = {name: merged.pop(name) for name in SEARCH_OPTIONS if name in merged}
        settings = SearchSettings(**search, paper=in_paper_mode)
        resolved = Options(**merged, search=settings, adapter=adapter, adapter_note=note)
        resolved.check()
        if resolved.vote and not domain.has_executor:
            raise UsageError("a vote needs an executor, and the domain has none", "Omit --vote.")
        if options.get("execute") and not domain.has_executor:
            raise UsageError(f"the domain {domain.name} has no executor", "Omit --execute.")
        if resolved.vote and not resolved.execute:
            raise UsageError(
                "a vote executes all candidates, and the programs of the domain are executed on request only",
                "Add --execute, or omit --vote.",
            )
        if resolved.vote:
            domain.require_code()
        return resolved

    def describe(self) -> str:
        """Return the decoder, its width and whether it is constrained, in a few words."""
        label = DECODERS[self.search.decoder].label.format(width=self.search.width)
        return f"{self.search.decoder}{label}{'' if self.constrained else ', unconstrained'}"

    def for_model(self, model: LanguageModel, domain: Domain) -> "Options":
        """Return the options as a model can serve them.

        If it reports no log-probabilities, whole outputs are sampled, under the grammar if its server accepts it;
        if it cannot continue an output, the decoder is one that does not need that.
        """
        if self.server_grammar and not model.supports_grammar:
            raise UsageError(f"{model.name} does not support grammars", "Omit --server-grammar.")
        name, send = self.search.decoder, self.server_grammar
        if not DECODERS[name].can_use(model):
            name = "speculative" if model.supports_logprobs else "sampling"
        if send is None and self.constrained and model.supports_grammar and not model.supports_logprobs:
            send = domain.constraint_kind.has_server_grammar
        return replace(self, server_grammar=bool(send), search=replace(self.search, decoder=name))

    def note_on(self, model: LanguageModel, requested: str) -> str | None:
        """Return why the decoder is not the requested one; None if it is."""
        if self.search.decoder == requested:
            return None
        lacks = "cannot continue an output" if model.supports_logprobs else "reports no log-probabilities"
        return (
            f"{model.name} {lacks}: the decoder is `{self.search.decoder}` instead of `{requested}`; "
            "`fewparse models probe` says what else is lost"
        )

    def check(self) -> None:
        """Raise a `UsageError` for invalid options, before anything is loaded."""
        if self.order not in ORDERS:
            raise UnknownName("order", self.order, ORDERS)
        RETRIEVERS.check(self.retriever)
        if self.retriever_model is not None:
            known_kind(self.retriever_model)
        if self.server_grammar and not (self.constrained and DECODERS[self.search.decoder].samples):
            raise UsageError(
                "a server can constrain samples only: the decoder must be speculative, and constrained",
                "Add --decoder speculative, or omit --server-grammar.",
            )
        for name in ("description_lines", "examples", "n_best", "rerank", "max_risk"):
            check_range(name, getattr(self, name))


def default_options(
    domain: Domain, target: Target, provenance: Provenance | None, in_paper_mode: bool
) -> dict[str, Any]:
    """Return the options that the domain, the paper or the provenance of an adapter sets.

    An adapter is used with the prompt for which it was tuned, without examples. Paper mode that domain.toml
    switches on changes the options that the file does not set; otherwise it changes all.
    """
    table, adapted = domain.table, provenance is not None
    search = table.search_for(adapted)
    defaults: dict[str, Any] = {
        "target": target,
        "prompt": table.prompt[target],
        "description_lines": table.retrieve.description_lines,
        "examples": table.retrieve.examples,
        "order": table.retrieve.order,
        "retriever": table.retrieve.retriever,
        "retriever_model": None,
        "fold": True,
        "constrained": True,
        "server_grammar": None,
        "rerank": search.rerank,
        "vote": search.vote and domain.allow_code,
        "execute": domain.executes,
        "decoder": search.decoder,
        "width": search.width,
        "temperature": search.temperature,
        "max_tokens": search.max_tokens[target],
        "max_risk": table.decision.max_risk,
    }
    if in_paper_mode:
        kept = set() if domain.paper else table.own_keys(adapted)
        paper = {"prompt": PAPER_PROMPTS[target]} | PAPER_OPTIONS
        defaults |= {name: value for name, value in paper.items() if name not in kept}
    if provenance is not None:
        defaults |= {"prompt": provenance.prompt, "examples": 0}
    return defaults


SEARCH_OPTIONS = tuple(SearchOptions.__annotations__)


def prepare(
    domain: str | Path | Domain,
    model: str = EMBEDDED,
    own_constraint: bool = True,
    **given: Unpack[AllOptions],
) -> tuple[Domain, Options]:
    """Load a domain, resolve the options, make the examples for the target, and check everything.

    This is done once, before a model is loaded. `model` is the name of the model; `own_constraint` is false if the
    caller has another constraint than the domain's.
    """
    domain, options = load_with_options(domain, **given)
    resolved = Options.resolve(domain, model, **options)
    domain.check(resolved.target, resolved.prompt, own_constraint)
    if resolved.execute and domain.allow_code:
        check_executor(domain.executor)
    return domain.for_target(resolved.target), resolved


def load_with_options(domain: str | Path | Domain, **given: Unpack[AllOptions]) -> tuple[Domain, CommonOptions]:
    """Load a domain, unless it is loaded, and return it with the options that are not for loading."""
    check_values(given, OPTION_TYPES)
    options: Any = dict(given)
    overrides = {name: value for name in LOADING_TYPES if (value := options.pop(name, None)) is not None}
    if not isinstance(domain, Domain):
        return load_domain(domain, **overrides), options
    if overrides:
        raise UsageError(
            f"`{next(iter(overrides))}` cannot be set for a domain that is already loaded",
            "Pass it to `load_domain`, or pass the name of the domain instead of the object.",
        )
    return domain, options


OPTION_TYPES = {name: types for name, types in accepted_types(AllOptions).items() if name not in RANGES}
"""The types of the options that are not numbers: those are checked with their ranges."""


def find_adapter(
    domain: Domain, target: Target, model: str, requested: str | Path | None
) -> tuple[Adapter | None, str | None]:
    """Return the adapter to use, and why the domain's own is not used although it is there.

    The domain's own is used with the default model and the domain's own grammar, if it was tuned for this domain,
    target and grammar. One that is requested is used for any domain and grammar.
    """
    if requested == NO_ADAPTER:
        return None, None
    if requested is not None:
        adapter = read_adapter(user_path(requested))
        if adapter.provenance is not None and adapter.provenance.target != target:
            raise UsageError(
                f"{requested} was tuned for the target {adapter.provenance.target}, not for {target}",
                f"Use that target, --target {adapter.provenance.target}, or another adapter.",
            )
        return adapter, None
    path = domain.find_data_file(adapter_name(target))
    if path is None or not is_default_model(model) or not domain.own_grammar:
        return None, None
    adapter = read_adapter(path)
    provenance, sha256 = adapter.provenance, partial(domain.constraint_kind.outputs_sha256, target)
    other = None if provenance is None else provenance.other_use(domain.name, target, sha256)
    if other is None:
        return adapter, None
    where = domain.name if domain.installed else domain.folder
    return None, (
        f"{path} is not used, because it was tuned for {other}: the model is prompted with examples instead. To "
        f"tune a new one: fewparse tune {where}. To use this one all the same: --adapter {path}"
    )
