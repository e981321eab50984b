"""The space of a domain and a model: which values of which settings are tried, and which are not and why."""

from collections.abc import Mapping
from typing import Any, get_args

from fewparse.domains.domain import Domain
from fewparse.errors import FewparseError
from fewparse.example import TARGETS
from fewparse.grammar.induction.induce import MergeLevel
from fewparse.lm.model import LanguageModel
from fewparse.optimize.settings_file import has_adapter
from fewparse.optimize.space import EXAMPLES, RETRIEVERS, SAMPLING, SEARCHES, WEIGHTS, Configuration, Space
from fewparse.options import Options
from fewparse.retrieve.retriever import ORDERS
from fewparse.retrieve.retriever import RETRIEVERS as KNOWN_RETRIEVERS
from fewparse.search.decoder import DECODERS

NEVER = "prompt template, temperature, max_tokens, fold, vote and constraint: not searched"
SETTINGS = ("target", "retriever", "examples", "order", "decoder", "width", "rerank")
"""The options that are searched, besides the merge level; those that the caller gives are fixed."""
Changes = list[Mapping[str, Any]]


def space_of(
    domain: Domain, options: Options, given: Mapping[str, Any], pool: int, model: LanguageModel | None = None
) -> Space:
    """Return the space around the present settings, `options`; the settings in `given` are fixed.

    `pool` is the number of examples that a prompt can have. Decoders that the model cannot serve are left out.
    """
    options = options if model is None else options.for_model(model, domain)
    constraint = domain.table.constraint
    control = Configuration(
        target=options.target,
        retriever=options.retriever,
        examples=options.examples,
        order=options.order,
        decoder=options.search.decoder,
        width=options.search.width,
        merge=constraint.merge if constraint.kind == "induced" else None,
    )
    left: list[str] = []
    axes: dict[str, Changes] = {"search": searches(given, model, left)}
    if options.adapter is None:
        axes["target"] = targets(domain, given, left)
        axes["merge"] = [{"merge": level} for level in get_args(MergeLevel) if control.merge]
        axes["retriever"] = [{"retriever": name} for name in RETRIEVERS]
        axes["examples"] = [{"examples": count} for count in EXAMPLES if count <= pool]
        axes["order"] = [{"order": order} for order in ORDERS]
        untried = [name for name in KNOWN_RETRIEVERS.choices if name not in (*RETRIEVERS, control.retriever)]
        left.append(f"retriever {', '.join(untried)}: not searched (`lm` is slow)")
    else:
        left.append("examples, retriever and order: a tuned model is prompted without examples")
    for name in (*axes, "rerank"):
        if name in given:
            axes.pop(name, None)
            left.append(f"{name}: given, {given[name]}")
    left.append(NEVER)
    weights = {options.rerank} if "rerank" in given else {*WEIGHTS, options.rerank}
    present: dict[str, Changes] = {name: [{}, *changes] for name, changes in axes.items()}
    return Space(control, options.rerank, present, tuple(sorted(weights)), tuple(left))


def searches(given: Mapping[str, Any], model: LanguageModel | None, left: list[str]) -> Changes:
    """Return decoders with their widths."""
    fixed = {name: given[name] for name in ("decoder", "width") if name in given}
    left += [f"{name}: given, {value}" for name, value in fixed.items()]
    found: Changes = []
    for decoder, width in SEARCHES if model is None or model.supports_logprobs else SAMPLING:
        if model is not None and not DECODERS[decoder].can_use(model):
            left.append(f"{decoder} {width}: {model.name} cannot serve it")
        elif fixed.get("decoder", decoder) == decoder:
            change: dict[str, Any] = (
                {"decoder": decoder} if decoder == "greedy" else {"decoder": decoder, "width": width}
            )
            found.append({**change, **fixed})
    return found


def targets(domain: Domain, given: Mapping[str, Any], left: list[str]) -> Changes:
    """Return the targets for which the domain has outputs; with an adapter, only its own is searched."""
    if "target" in given:
        return []
    if has_adapter(domain):
        left.append("target: the domain's adapter is for one target; name it with --target to change it")
        return []
    found: Changes = []
    for target in TARGETS:
        try:
            domain.check(target, domain.table.prompt[target])
        except FewparseError as error:
            left.append(f"target {target}: {error.message}")
        else:
            found.append({"target": target})
    return found
