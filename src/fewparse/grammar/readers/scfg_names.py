"""Find names of an `.scfg` file that no rule defines: in hand-written rules, a misspelling."""

from collections.abc import Iterable, Iterator
from typing import NoReturn, Protocol

from fewparse.errors import UnknownName
from fewparse.grammar.readers.scfg_lines import TOKEN, Call, Item, Macro, OptionalItem, Rule, shown
from fewparse.grammar.rules import Ref

MAX_KNOWN = 1_000


class SourceLine(Protocol):
    """A line of a source, with a report of a mistake in it."""

    @property
    def content(self) -> str:
        """The text of the line."""

    def fail(self, message: str, at: int, hint: str) -> NoReturn:
        """Raise GrammarError for a mistake at an offset into the line."""


def check_names(definitions: Iterable[tuple[Rule | Macro, SourceLine]]) -> None:
    """Raise GrammarError for the first name that is used and has no rule, with the most similar names."""
    found = list(definitions)
    defined = {definition.name for definition, _ in found if isinstance(definition, Rule)}
    for definition, line in found:
        own = definition.parameters if isinstance(definition, Macro) else ()
        for name in names_used(definition):
            if name not in defined and name not in own:
                known = sorted({*defined, *own})[:MAX_KNOWN]
                message = f"no rule is called `{shown(name)}`"
                line.fail(message, offset_of(name, line.content), str(UnknownName("rule", name, known).hint))


def names_used(definition: Rule | Macro) -> Iterator[str]:
    """Yield the names of nonterminals on the right-hand sides, in order."""
    sides = (
        [definition.body]
        if isinstance(definition, Macro)
        else [*definition.utterances, *([] if definition.program is None else [definition.program])]
    )
    agenda: list[Item] = [item for side in reversed(sides) for item in reversed(side)]
    while agenda:
        item = agenda.pop()
        if isinstance(item, Call):
            agenda += reversed(item.arguments)
        elif isinstance(item, OptionalItem):
            agenda.append(item.item)
        elif isinstance(item, Ref):
            yield item.name


def offset_of(name: str, line: str) -> int:
    """Return the offset of a name in a line, after the name that the line defines."""
    tokens = [match for match in TOKEN.finditer(line) if match["name"] is not None]
    return next(match.start("name") for match in tokens[1:] if match["name"] == name)
