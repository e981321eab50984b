"""Say what was tried, what was gained and what was left, as text and as JSON."""

from collections.abc import Iterator
from typing import Any

from fewparse.domains.domain import Domain
from fewparse.evaluate.metrics import Proportion
from fewparse.experiment.statistics import paired_interval
from fewparse.optimize.optimization import Optimized
from fewparse.optimize.search import Choice, Comparison, Found
from fewparse.optimize.settings_file import Change
from fewparse.optimize.space import Configuration, Space

SHOWN = 8
"""How many configurations the text lists: the present one, and those that were parsed on most items."""


def planned(domain: Domain, space: Space, minutes: float) -> Iterator[str]:
    """Yield what a search would try."""
    count = len(domain.examples) + len(domain.spare_examples)
    yield f"{domain.name}: {count} examples, {len(space.configurations)} configurations, {minutes:g} minutes"
    yield f"Present: {space.control.label}, rerank {space.rerank:g}"
    for name, feature in FEATURES.items():
        values = dict.fromkeys(dict(each.features)[feature] for each in space.configurations)
        if len(values) > 1:
            yield f"  {name}: {', '.join(map(value_text, values))}"
    yield f"  rerank: {', '.join(f'{weight:g}' for weight in space.weights)}"
    yield "Not tried:"
    for line in space.left:
        yield f"- {line}"


FEATURES = {"decoder": "search"} | {name: name for name in ("target", "merge", "retriever", "examples", "order")}


def value_text(value: object) -> str:
    """Return the value of a feature in words."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def as_text(result: Optimized) -> list[str]:
    """Return the lines of a report, except for what was written where."""
    if result.found is None or result.parts is None:
        why = "The time was spent on adapters that are tuned on parts of the examples; nothing was compared yet."
        return [why, "The same command continues: the adapters are kept."]
    found = result.found
    return [
        *tried(result, found),
        "",
        *gained(found),
        "",
        *left(result, found),
    ]


def tried(result: Optimized, found: Found) -> Iterator[str]:
    """Yield what was parsed, and the most parsed configurations."""
    assert result.parts is not None
    parses = sum(map(len, found.outcomes.values()))
    items = {item for outcomes in found.outcomes.values() for item in outcomes}
    yield (
        f"Tried {len(found.outcomes)} of {len(result.space.configurations)} configurations on up to "
        f"{len(items)} of {len(result.parts.items)} examples"
    )
    yield f"({result.parts.method}): {parses} parses, {result.seconds / 60:.1f} minutes."
    if not found.outcomes:
        return
    yield ""
    yield f"{'right':>9}  {'s/item':>6}  configuration"
    for configuration in listed(found):
        correct, seconds = figures(found, result.space, configuration)
        mark = " (present)" if configuration == found.control.configuration else ""
        yield f"{f'{correct.correct} of {correct.items}':>9}  {seconds:6.2f}  {configuration.label}{mark}"
    yield "Each with the weight of reranking that suits it best; the present one with its own."


def listed(found: Found) -> list[Configuration]:
    """Return the configurations to list: the present one, then those with most items."""
    others = [each for each in found.outcomes if each != found.control.configuration]
    others.sort(key=lambda each: -len(found.outcomes[each]))
    return [found.control.configuration, *others[: SHOWN - 1]]


def figures(found: Found, space: Space, configuration: Configuration) -> tuple[Proportion, float]:
    """Return how many items a configuration has right, at its best weight, and its mean time for an item."""
    outcomes = list(found.outcomes[configuration].values())
    by_weight = [sum(flags) for flags in zip(*(outcome.correct for outcome in outcomes), strict=True)]
    at = space.weights.index(found.control.rerank)
    right = by_weight[at] if configuration == found.control.configuration else max(by_weight)
    return Proportion(right, len(outcomes)), sum(o.seconds for o in outcomes) / len(outcomes)


def gained(found: Found) -> Iterator[str]:
    """Yield the comparison of the best settings with the present ones, and the decision."""
    comparison, best = found.comparison, found.best
    if comparison is None or best is None:
        yield "The present settings are kept: nothing better was found."
        return
    yield f"Best: {best.configuration.label}, rerank {best.rerank:g}."
    yield f"Present: {found.control.configuration.label}, rerank {found.control.rerank:g}."
    yield from difference(comparison)
    if comparison.adopted:
        yield "The best settings are chosen."
    else:
        yield (
            "The present settings are kept: the evidence for others is too weak "
            f"(sign test over {comparison.items} examples: p = {comparison.all.p_value:.2f})."
        )


def difference(comparison: Comparison) -> Iterator[str]:
    """Yield the accuracies of both, and their difference with its interval."""
    pairs = comparison.fresh if comparison.fresh_items else comparison.all
    count = comparison.fresh_items or comparison.items
    gain = (comparison.correct - comparison.control_correct) / max(1, count)
    low, high = paired_interval(pairs.only_first, pairs.only_second, count)
    where = "examples that the search did not use" if comparison.fresh_items else "examples of the search"
    yield (
        f"{comparison.control_correct / max(1, count):.2f} to {comparison.correct / max(1, count):.2f} on {count} "
        f"{where}: {gain:+.2f} (95% interval {low:+.2f} to {high:+.2f})."
    )
    if not comparison.fresh_items:
        yield "There are too few examples to keep some for the comparison: the gain is optimistic."


def left(result: Optimized, found: Found) -> Iterator[str]:
    """Yield what was not tried, and why."""
    untried = len(result.space.configurations) - len(found.outcomes)
    yield "Not tried:"
    if untried:
        yield f"- {untried} other combinations, estimated from the effects of their settings"
    if result.stopped is not None:
        yield f"- more, because {result.stopped}"
    elif not found.completed:
        yield "- more, for lack of time: a larger --minutes continues the search"
    for line in result.space.left:
        yield f"- {line}"


def as_json(result: Optimized) -> dict[str, Any]:
    """Return the report as a JSON object."""
    found: dict[str, Any] = {"seconds": round(result.seconds, 1), "stopped": result.stopped}
    found |= {
        "changes": [change_as_json(change) for change in result.changes],
        "not_tried": list(result.space.left),
    }
    if result.found is None or result.parts is None:
        return found | {"completed": False}
    search = result.found
    found |= {
        "completed": search.completed,
        "method": result.parts.method,
        "items": len(result.parts.items),
        "space": len(result.space.configurations),
        "rungs": [rung._asdict() for rung in search.rungs],
        "present": choice_as_json(search.control),
        "chosen": choice_as_json(search.chosen),
        "best": None if search.best is None else choice_as_json(search.best),
        "comparison": None if search.comparison is None else comparison_as_json(search.comparison),
        "tried": [tried_as_json(search, result.space, each) for each in search.outcomes],
    }
    return found


def change_as_json(change: Change) -> dict[str, Any]:
    """Return a change as a JSON object."""
    return {"table": change.table, "key": change.key, "old": change.old, "new": change.new}


def choice_as_json(choice: Choice) -> dict[str, Any]:
    """Return a choice as a JSON object."""
    return {**vars(choice.configuration), "rerank": choice.rerank}


def comparison_as_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON object; the interval is Tango's, of the difference."""
    pairs = comparison.fresh if comparison.fresh_items else comparison.all
    count = comparison.fresh_items or comparison.items
    return {
        "items": count,
        "fresh": bool(comparison.fresh_items),
        "correct": comparison.correct,
        "present_correct": comparison.control_correct,
        "only_best_correct": pairs.only_first,
        "only_present_correct": pairs.only_second,
        "interval": list(paired_interval(pairs.only_first, pairs.only_second, count)),
        "all_items": comparison.items,
        "p_value": comparison.all.p_value,
        "adopted": comparison.adopted,
    }


def tried_as_json(found: Found, space: Space, configuration: Configuration) -> dict[str, Any]:
    """Return the figures of a configuration as a JSON object."""
    correct, seconds = figures(found, space, configuration)
    outcomes = found.outcomes[configuration].values()
    by_weight = {f"{w:g}": sum(o.correct[i] for o in outcomes) for i, w in enumerate(space.weights)}
    return {
        **vars(configuration),
        "items": correct.items,
        "correct_by_rerank": by_weight,
        "seconds": round(seconds, 3),
    }
