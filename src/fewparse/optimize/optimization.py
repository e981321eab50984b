"""The whole procedure: hold out examples, search, and say which settings to change."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewparse.domains.domain import Domain
from fewparse.errors import UsageError
from fewparse.evaluate.records import Records
from fewparse.evaluate.run import Listener
from fewparse.lm.load import NamedModel
from fewparse.lm.model import LanguageModel
from fewparse.optimize.axes import space_of
from fewparse.optimize.budget import Budget, OutOfTime
from fewparse.optimize.objective import HeldOutScorer
from fewparse.optimize.parts import Parts, check_enough, parts_of
from fewparse.optimize.search import Found, Search
from fewparse.optimize.settings_file import Change, changes_for
from fewparse.optimize.space import Space
from fewparse.options import Options

MIN_FRESH, MAX_FRESH = 20, 200
"""How many items are kept for the comparison, a third of all: none if that is too few."""


@dataclass(frozen=True)
class Plan:
    """What to optimize: a domain with a model. `options` are the present settings, those in `given` are fixed.

    Work that can be resumed is in `records`; adapters of parts of the examples are stored in `folder`. `report` is
    called with what is being done, `listener` after each parse.
    """

    domain: Domain
    model: LanguageModel
    options: Options
    given: Mapping[str, Any]
    budget: Budget
    folder: Path
    records: Records = field(default_factory=Records)
    folds: int | None = None
    seed: int = 0
    retriever_model: LanguageModel | NamedModel | None = None
    report: Callable[[str], None] = lambda text: None
    listener: Listener = lambda progress: None


@dataclass(frozen=True)
class Optimized:
    """The result: what was searched and found, and the changes of domain.toml, none if the settings are kept.

    `parts` and `found` are None if there was no time to tune the adapters of parts of the examples. `stopped` says
    what ended the search early, if it was not the budget of time.
    """

    space: Space
    parts: Parts | None
    found: Found | None
    changes: tuple[Change, ...]
    seconds: float
    stopped: str | None = None


def optimize(plan: Plan) -> Optimized:
    """Search the settings of a plan; raise `UsageError` if there are too few examples."""
    domain, options = plan.domain, plan.options
    space = planned_space(domain, options, plan.given, plan.model)
    try:
        parts = parts_of(domain, options, plan.model, plan.budget, plan.folder, plan.folds, plan.report)
    except OutOfTime:
        return Optimized(space, None, None, (), plan.budget.spent)
    scorer = HeldOutScorer(
        domain,
        plan.model,
        parts,
        options,
        space.weights,
        plan.records,
        plan.budget,
        plan.retriever_model,
        plan.listener,
    )
    count = len(parts.items)
    order = list(range(count))
    random.Random(plan.seed).shuffle(order)
    fresh = min(count // 3, MAX_FRESH) if count // 3 >= MIN_FRESH else 0
    search = Search(space, scorer, order[fresh:], order[:fresh], plan.budget, plan.seed, plan.report)
    with plan.records.locked():
        found = search.run()
    adopted = found.chosen != found.control
    changes = changes_for(domain, found.chosen, options.adapter is not None) if adopted else ()
    return Optimized(space, parts, found, changes, plan.budget.spent, scorer.stopped)


def planned_space(
    domain: Domain, options: Options, given: Mapping[str, Any], model: LanguageModel | None = None
) -> Space:
    """Return the space of a domain; raise `UsageError` if nothing can be chosen for it."""
    if options.search.paper:
        raise UsageError(
            "the settings of the domain are the paper's", "Set paper = false in domain.toml, then choose others."
        )
    check_enough(domain)
    return space_of(domain, options, given, len(domain.examples) - 1, model)
