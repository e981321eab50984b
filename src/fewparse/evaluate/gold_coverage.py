"""Gold coverage: how many gold outputs the constraint accepts, an upper bound of exact-match accuracy."""

from collections.abc import Sequence

from fewparse.domains.domain import Domain
from fewparse.errors import LimitExceeded
from fewparse.evaluate.metrics import Proportion, count
from fewparse.example import Example, Target
from fewparse.options import Options
from fewparse.vocabulary import BYTES


def gold_coverage(domain: Domain, options: Options, items: Sequence[Example]) -> Proportion | None:
    """Return how many items have a gold output that the constraint accepts; None for unconstrained decoding."""
    accepted = accepted_gold(domain, options, items)
    return None if accepted is None else count(accepted)


def accepted_gold(domain: Domain, options: Options, items: Sequence[Example]) -> list[bool] | None:
    """Return for each item whether the constraint accepts its gold output; None for unconstrained decoding.

    If free text is copied from the utterance, each item has its own constraint.
    """
    if not options.constrained or not domain.constraint_kind.constrains:
        return None
    template = domain.template(options.prompt)
    shared = (
        None
        if domain.constraint_kind.depends_on_utterance
        else domain.constraint(BYTES, options.target, "", template)
    )
    flags = []
    for item in items:
        constraint = shared or domain.constraint(BYTES, options.target, item.utterance, template)
        try:
            gold = gold_output(domain, item, options.target)
            flags.append(gold is not None and constraint.accepts(template.with_lead(gold).encode()))
        except LimitExceeded:  # a search would exceed the limit too
            flags.append(False)
    return flags


def gold_output(domain: Domain, item: Example, target: Target) -> str | None:
    """Return the gold output of an item; None if its program has no canonical utterance."""
    if target == "program":
        return item.program
    canonical = domain.without_foreign_canonical(item).canonical
    if canonical or domain.translator is None:
        return canonical
    return domain.translator.to_utterance(item.program).best
