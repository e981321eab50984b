"""Warnings of what a parser cannot use: a domain's adapter, names of its grammar, some of its examples."""

from collections.abc import Iterator

from fewparse.cli.console import warn
from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES, locations, not_used
from fewparse.errors import listed
from fewparse.example import Example
from fewparse.grammar.parsing.chart import ChartParser, ParseFailure
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
    if options.constrained and (wrong := list(ill_formed_examples(domain))):
        example, failure = wrong[0]
        path = domain.data_file(EXAMPLES)
        where = locations(path).get(example.key, path)
        count = f"{len(wrong)} of {len(domain.examples)} examples"
        message = f"{where}: the program {example.program} {failure.reason}. No parse can return it ({count})."
        warn(f"{message} See: fewparse check {domain.argument}")


def ill_formed_examples(domain: Domain) -> Iterator[tuple[Example, ParseFailure]]:
    """Yield the training examples of a folder whose programs its grammar does not derive.

    Examples of other kinds of constraint are validated when they are read, or the constraint is made from them.
    """
    if domain.table.constraint.kind != "grammar" or domain.data != domain.folder or domain.installed:
        return
    parser = ChartParser(domain.grammar)
    for example in domain.examples:
        result = parser.parse(example.program)
        if isinstance(result, ParseFailure):
            yield example, result
