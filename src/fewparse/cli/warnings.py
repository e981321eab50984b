"""Warnings on standard error."""

from fewparse.cli.console import err
from fewparse.domains.domain import Domain
from fewparse.errors import listed
from fewparse.example import Target
from fewparse.grammar.rules import undefined


def warn_of_gaps(domain: Domain, target: Target) -> None:
    """Warn of grammar names without productions, and of examples that the grammar does not derive."""
    if domain.language is not None and (names := sorted(undefined(domain.side(target)))):
        warn(f"the grammar uses names without productions: {listed(names)}")
    if domain.left_out:
        share = f"{domain.left_out} of {len(domain.examples) + domain.left_out} examples"
        warn(f"not used, because the grammar does not derive them: {share}")


def warn(message: str) -> None:
    """Print a warning on standard error."""
    err.print("warning: ", style="yellow", end="")
    err.print(message, markup=False)
