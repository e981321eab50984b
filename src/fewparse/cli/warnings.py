"""Warnings of what a parser cannot use: a domain's adapter, names of its grammar, some of its examples."""

from fewparse.cli.console import warn
from fewparse.domains.acceptance import ill_formed_examples
from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES, locations, not_used
from fewparse.errors import listed
from fewparse.grammar.rules import undefined
from fewparse.options import Options


def warn_of_gaps(domain: Domain, options: Options) -> None:
    """Warn of an adapter that is not used, names without productions, and examples that are not derived."""
    if options.adapter_note is not None:
        warn(options.adapter_note)
    if domain.language is not None and (names := sorted(undefined(domain.side(options.target)))):
        warn(f"the grammar uses names without productions: {listed(names)}")
    if domain.underivable:
        warn(not_used(domain.underivable, len(domain.examples) + domain.underivable))
    if wrong := ill_formed_examples(domain):
        example, verdict = wrong[0]
        path = domain.data_file(EXAMPLES)
        reason = str(verdict.error).removeprefix("the text ")
        count = f"{len(wrong)} of {len(domain.examples)} examples"
        where = locations(path).get(example.key, path)
        message = f"{where}: the program {example.program} {reason}. No parse can return it ({count})."
        warn(f"{message} See: fewparse check {domain.argument}")
