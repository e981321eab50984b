"""Show the settings in effect for a domain, and where each comes from: part of `fewparse check`."""

from collections.abc import Mapping, Sequence
from typing import Any

from fewparse.cli.console import echo
from fewparse.domains.domain import Domain
from fewparse.errors import ModelError
from fewparse.option_origins import EffectiveSetting, effective_settings
from fewparse.options import NO_ADAPTER, Options, ParserOptions


def settings_in_effect(domain: Domain, model: str, given: Mapping[str, Any]) -> list[EffectiveSetting]:
    """Return the settings of a domain with a model; without an adapter that cannot be read, which is a finding."""
    chosen: ParserOptions = {"target": given.get("target"), "adapter": given.get("adapter")}
    without: ParserOptions = {"target": given.get("target"), "adapter": NO_ADAPTER}
    try:
        options = Options.resolve(domain, model, **chosen)
    except ModelError:
        options = Options.resolve(domain, model, **without)
    return effective_settings(domain, options, given)


def show_settings(settings: Sequence[EffectiveSetting]) -> None:
    """Print a line for each setting."""
    width = max(len(str(setting.value)) for setting in settings)
    for name, value, origin in settings:
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        echo(f"  {name:<16}{shown:<{width}}  {origin}")
