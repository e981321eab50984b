"""The settings in effect for a domain and a model, and where each comes from."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from fewparse.domains.domain import Domain
from fewparse.options import NO_ADAPTER, Options
from fewparse.search.decoder import DECODERS

Origin = Literal["default", "domain.toml", "domain folder", "[tuned]", "adapter", "paper mode", "command line"]
OF_PROMPT, OF_SEARCH = ("examples", "retriever", "order"), ("decoder", "width", "temperature", "rerank", "vote")
OPTIONS = ("target", "prompt", *OF_PROMPT, *OF_SEARCH)
"""The options that are shown."""


class EffectiveSetting(NamedTuple):
    """The value of a setting, and where it comes from."""

    name: str
    value: str | int | float | bool
    origin: Origin


def effective_settings(domain: Domain, options: Options, given: Mapping[str, Any]) -> list[EffectiveSetting]:
    """Return the settings that options were resolved to; those in `given` were given by the caller."""
    found = []
    for name in OPTIONS:
        value = getattr(options, name) if hasattr(options, name) else getattr(options.search, name)
        if has_effect(name, options):
            found.append(EffectiveSetting(name, value, origin_of(name, domain, options, given)))
    adapter: Origin = "default" if options.adapter is None else "domain folder"
    adapter = "command line" if given.get("adapter") is not None else adapter
    used = options.adapter.path.name if options.adapter else NO_ADAPTER
    found.append(EffectiveSetting("adapter", used, adapter))
    table = domain.table.constraint
    for name in ("kind", "merge") if table.kind == "induced" else ("kind",):
        own: Origin = "domain.toml" if name in table.model_fields_set else "default"
        own = "command line" if name == "kind" and given.get("grammar") is not None else own
        found.append(EffectiveSetting(f"constraint {name}", getattr(table, name), own))
    return found


def has_effect(name: str, options: Options) -> bool:
    """Return whether a setting matters under the others."""
    if name == "temperature":
        return DECODERS[options.search.decoder].samples
    if name == "width":
        return options.search.decoder != "greedy"
    return name not in ("retriever", "order") or options.examples > 0


def origin_of(name: str, domain: Domain, options: Options, given: Mapping[str, Any]) -> Origin:
    """Return where the value of an option comes from."""
    table, adapter = domain.table, options.adapter
    adapted = adapter is not None and adapter.provenance is not None
    if given.get(name) is not None:
        return "command line"
    if adapted and name in ("prompt", "examples"):
        return "adapter"
    if options.search.paper and name != "target" and (domain.paper or name not in table.own_keys(adapted)):
        return "paper mode"
    if adapted and table.tuned is not None and name in OF_SEARCH and name in table.tuned.model_fields_set:
        return "[tuned]"
    owner = table.retrieve if name in OF_PROMPT else table.search if name in OF_SEARCH else table
    return "domain.toml" if name in owner.model_fields_set else "default"
