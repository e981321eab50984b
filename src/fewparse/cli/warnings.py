"""What a grammar cannot say, told before a parse."""

from fewparse.cli.console import err
from fewparse.domains.domain import Domain
from fewparse.errors import listed
from fewparse.example import Target
from fewparse.grammar.rules import undefined


def prepared(domain: Domain, target: Target) -> Domain:
    """The domain for a target, with warnings of names without rules and of examples that are not taught."""
    if domain.table.constraint.kind == "grammar" and (names := sorted(undefined(domain.side(target)))):
        warn(f"the grammar uses names without productions: {listed(names)}")
    spoken = domain.for_target(target)
    if spoken.left_out:
        share = f"{spoken.left_out} of {len(domain.examples)} examples"
        warn(f"not taught, because the grammar cannot say them: {share}")
    return spoken


def warn(message: str) -> None:
    """Something to know, on standard error."""
    err.print("warning: ", style="yellow", end="")
    err.print(message, markup=False)
