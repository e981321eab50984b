"""The tree of errors. Each says what happened and, where there is one, what to do next.

FewparseError
 ├─ UsageError            an unknown name or an option that makes no sense
 │   └─ UnknownName       ... with the nearest known names
 ├─ SourceError           a mistake in a file that a user wrote: file, line, caret, what was expected
 │   ├─ DataError         ... in the files of a dataset
 │   ├─ DomainError       ... in a domain folder
 │   ├─ GrammarError      ... in a grammar
 │   └─ ResultsError      ... in the records of an evaluation
 ├─ DataUnavailable       a dataset that is not there, cannot be fetched or cannot be kept
 ├─ CorruptData           a server that sends another file than the published one
 ├─ ExecutionError        a program that the domain's executor refuses
 ├─ ConstraintError       a constraint that cannot be compiled or carried on
 │   ├─ LimitExceeded     too large, too slow to compile, or too many parser states
 │   └─ DeadEnd           nothing may follow and nothing may end: a defect, never a silent end
 ├─ ModelError            a language model that cannot be loaded or asked
 │   ├─ ModelUnavailable  no weights and no way to fetch them
 │   ├─ CorruptModel      a file that is not the model that it should be
 │   ├─ RuntimeMismatch   a native library whose interface is not the one we declare
 │   ├─ ContextOverflow   a prompt longer than the model's context
 │   ├─ ServerError       a server that cannot be asked, or not any more
 │   │   ├─ ServerRefused     it says no: a wrong key, an unknown model, a request it does not take
 │   │   ├─ ServerUnavailable it did not answer well, however often it was asked
 │   │   └─ ServerUnfit       it answers, but not what search needs, or not what was asked
 │   └─ BudgetExceeded    as many tokens or as much money as allowed have been spent
 ├─ TuningError           a tuning that cannot begin, go on or keep its result
 └─ IllFormedOutput       a constrained search returned what its own grammar refuses: a defect
"""

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = [
    "BudgetExceeded",
    "ConstraintError",
    "ContextOverflow",
    "CorruptModel",
    "DataUnavailable",
    "DeadEnd",
    "DomainError",
    "ExecutionError",
    "FewparseError",
    "GrammarError",
    "IllFormedOutput",
    "LimitExceeded",
    "ModelError",
    "ModelUnavailable",
    "ResultsError",
    "RuntimeMismatch",
    "ServerError",
    "ServerRefused",
    "ServerUnavailable",
    "ServerUnfit",
    "SourceError",
    "TuningError",
    "UnknownName",
    "UsageError",
]


MOST_LISTED = 12


class FewparseError(Exception):
    """Anything that fewparse refuses to do; `hint` is the next step for the user."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  {self.hint}"


class UsageError(FewparseError):
    """An option or argument that makes no sense."""


class UnknownName(UsageError):
    """A name that is not among the known ones; the nearest are suggested."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str | None = None) -> None:
        known = list(known)
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        suggestion = f"Did you mean {' or '.join(near)}?" if near else f"Known: {listed(known) or 'none'}."
        super().__init__(f"unknown {kind} {name!r}", f"{suggestion} {hint}" if hint else suggestion)


class SourceError(FewparseError):
    """A mistake in a file that a user wrote, shown with its place and, where known, a caret."""

    def __init__(
        self,
        message: str,
        path: Path | str,
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
        hint: str | None = None,
    ) -> None:
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        shown = f"{place}: {message}"
        if source is not None and line is not None:
            lines = source.split("\n")
            text = lines[line - 1] if 0 < line <= len(lines) else ""
            if column is not None:
                shown += f"\n{caret(text, column - 1)}"
            else:
                shown += f"\n    {text[:100]}"
        super().__init__(shown, hint)
        self.path, self.line, self.column = path, line, column


def listed(names: Sequence[str]) -> str:
    """Names for a message, as many as are worth reading."""
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def caret(text: str, at: int) -> str:
    """A line of text, as much as is worth showing, with a mark below one of its characters."""
    start = max(0, at - 59)
    shown = text[start : at + 41].replace("\n", " ")
    return f"    {shown}\n    {' ' * (at - start)}^"


class DataError(SourceError):
    """A file of a dataset that cannot be read."""


class DomainError(SourceError):
    """A domain folder that cannot be read."""


class DataUnavailable(FewparseError):
    """A dataset that is not there, cannot be fetched or cannot be kept."""


class CorruptData(FewparseError):
    """A server that sends another file than the published one."""


class ExecutionError(FewparseError):
    """A program that the domain's executor refuses."""


class GrammarError(SourceError):
    """A grammar that cannot be read."""


class ResultsError(SourceError):
    """A file of results that an evaluation cannot carry on."""


class ConstraintError(FewparseError):
    """A constraint that cannot be compiled or carried on."""


class LimitExceeded(ConstraintError):
    """A grammar or parser state beyond the limits set for it."""


class DeadEnd(ConstraintError):
    """Nothing may follow and nothing may end."""


class ModelError(FewparseError):
    """A language model that cannot be loaded or asked."""


class ModelUnavailable(ModelError):
    """No weights, and no way to fetch them."""


class CorruptModel(ModelError):
    """A file that is not the model it should be."""


class RuntimeMismatch(ModelError):
    """A native library whose interface is not the one declared here."""


class ContextOverflow(ModelError):
    """A prompt longer than the model's context; names both lengths."""

    def __init__(self, needed: int, available: int) -> None:
        super().__init__(
            f"the prompt needs {needed} tokens and the model's context holds {available}",
            "Use fewer examples (--examples), a shorter utterance, or a model with a longer context.",
        )
        self.needed, self.available = needed, available


class ServerError(ModelError):
    """A server that cannot be asked, or not any more."""


class ServerRefused(ServerError):
    """A server that says no: asking again would not help."""


class ServerUnavailable(ServerError):
    """A server that did not answer well, however often it was asked."""


class ServerUnfit(ServerError):
    """A server that answers, but not what search needs, or not what was asked."""


class BudgetExceeded(ModelError):
    """As many tokens or as much money as allowed have been spent; nothing more is asked."""


class TuningError(FewparseError):
    """A tuning that cannot begin, go on or keep its result."""


class IllFormedOutput(FewparseError):
    """A constrained search returned what its own grammar refuses."""
