"""The tree of errors. Each has a message and, where possible, a hint on what to do next.

FewparseError
 ├─ UsageError            an unknown name or an invalid option
 │   └─ UnknownName       ... with the most similar known names
 ├─ SourceError           a mistake in a user's file: path, line, caret, what was expected
 │   ├─ DataError         ... in the files of a dataset
 │   ├─ DomainError       ... in a domain folder
 │   ├─ GrammarError      ... in a grammar
 │   ├─ SchemaError       ... in a JSON Schema, or what cannot be enforced of it
 │   ├─ ResultsError      ... in the records of an evaluation
 │   └─ SqlError          ... in a SQL query
 ├─ DataUnavailable       a dataset that is missing, or cannot be downloaded or stored
 ├─ CorruptData           a downloaded file that is not the published one
 ├─ DatabaseError         a database that cannot be opened, reflected or reached
 ├─ ExecutionError        a program that the domain's executor cannot execute
 ├─ InvalidProgram        a program that cannot be written as the domain's constraint writes it
 ├─ ConstraintError       a constraint that cannot be compiled or advanced
 │   ├─ LimitExceeded     a grammar that is too large, too slow to compile, or has too many parser states
 │   └─ DeadEnd           a state that nothing may follow and that may not end: a defect
 ├─ ModelError            a language model that cannot be loaded or queried
 │   ├─ ModelUnavailable  no weights, and they cannot be downloaded
 │   ├─ CorruptModel      a file that is not the expected model
 │   ├─ RuntimeMismatch   a native library with another interface than the declared one
 │   ├─ ContextOverflow   a prompt longer than the model's context
 │   ├─ ServerError       a server that cannot be used
 │   │   ├─ ServerRejected    it rejects requests: wrong key, unknown model, unsupported request
 │   │   ├─ ServerUnavailable no valid response after all retries
 │   │   └─ ServerUnsupported its responses lack what search needs, or do not match the request
 │   └─ BudgetExceeded    the limit of tokens or cost is reached
 ├─ TuningError           a tuning run that cannot start, continue or write its result
 ├─ CalibrationError      a calibration that cannot be fitted, read or written
 ├─ FeedbackError         a feedback log that cannot be read or written
 ├─ ClusterError          a cluster that cannot be reached, or whose workers end unexpectedly
 ├─ ParseCancelled        a parse that was cancelled from another thread
 └─ IllFormedOutput       a constrained search returned an ill-formed output: a defect
"""

import copyreg
import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = [
    "BudgetExceeded",
    "CalibrationError",
    "ClusterError",
    "ConstraintError",
    "ContextOverflow",
    "CorruptData",
    "CorruptModel",
    "DataError",
    "DataUnavailable",
    "DatabaseError",
    "DeadEnd",
    "DomainError",
    "ExecutionError",
    "FeedbackError",
    "FewparseError",
    "GrammarError",
    "IllFormedOutput",
    "InvalidProgram",
    "LimitExceeded",
    "ModelError",
    "ModelUnavailable",
    "ParseCancelled",
    "ResultsError",
    "RuntimeMismatch",
    "SchemaError",
    "ServerError",
    "ServerRejected",
    "ServerUnavailable",
    "ServerUnsupported",
    "SourceError",
    "SqlError",
    "TuningError",
    "UnknownName",
    "UsageError",
]


MAX_LISTED = 12
MAX_NAME = 100


class FewparseError(Exception):
    """Base class of all errors; `hint` is the next step for the user."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without calling `__init__`, whose arguments differ between the classes."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class UsageError(FewparseError):
    """An invalid option or argument."""


class UnknownName(UsageError):
    """An unknown name; the most similar known names are suggested."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str | None = None) -> None:
        known = list(known)
        near = difflib.get_close_matches(name[:MAX_NAME], known, n=3, cutoff=0.5)
        suggestion = f"Did you mean {' or '.join(near)}?" if near else f"Known: {listed(known) or 'none'}."
        super().__init__(f"unknown {kind} {shortened(name)}", f"{suggestion} {hint}" if hint else suggestion)


class SourceError(FewparseError):
    """A mistake in a user's file, shown with path and line and, where the column is known, a caret."""

    def __init__(
        self,
        message: str,
        path: Path | str,
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
        hint: str | None = None,
    ) -> None:
        location = ":".join(str(part) for part in (path, line, column) if part is not None)
        shown = f"{location}: {message}"
        if source is not None and line is not None:
            lines = source.split("\n")
            text = lines[line - 1] if 0 < line <= len(lines) else ""
            if column is not None:
                shown += f"\n{caret(text, column - 1)}"
            else:
                shown += f"\n    {text[:100]}"
        super().__init__(shown, hint)
        self.path, self.line, self.column = path, line, column


def listed(names: Sequence[str], limit: int = MAX_LISTED) -> str:
    """Join names for a message; of a longer list, only the first `limit` names and the number of the others."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def shortened(name: str) -> str:
    """Return a name in quotes; of a long one, only its start."""
    return repr(name) if len(name) <= MAX_NAME else f"{name[:MAX_NAME]!r}..."


def line_and_column(source: str, at: int) -> tuple[int, int]:
    """Return the line and column, counted from 1, of an offset into a source text."""
    return source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at)


def caret(text: str, at: int) -> str:
    """Return a line of text, shortened if long, with a caret below one of its characters."""
    start = max(0, at - 59)
    shown = text[start : at + 41].replace("\n", " ")
    return f"    {shown}\n    {' ' * (at - start)}^"


class DataError(SourceError):
    """A file of a dataset that cannot be read."""


class DomainError(SourceError):
    """A domain folder that cannot be read."""


class DataUnavailable(FewparseError):
    """A dataset that is missing, or cannot be downloaded or stored."""


class CorruptData(FewparseError):
    """A downloaded file that is not the published one."""


class DatabaseError(FewparseError):
    """A database that cannot be opened, reflected or reached."""


class ExecutionError(FewparseError):
    """A program that the domain's executor cannot execute."""


class GrammarError(SourceError):
    """A grammar that cannot be read."""


class SchemaError(SourceError):
    """A JSON Schema that cannot be read, or that the engine cannot enforce."""


class ResultsError(SourceError):
    """A results file that an evaluation cannot continue."""


class InvalidProgram(FewparseError):
    """A program that cannot be written as the domain's constraint writes it.

    `message` continues "the program"; `at` is the offset of the mistake, `expected` what could be there instead.
    """

    def __init__(
        self, message: str, at: int | None = None, hint: str | None = None, expected: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint)
        self.at, self.expected = at, expected


class SqlError(SourceError):
    """A SQL query that cannot be read, or is outside the language of SQL domains."""


class ConstraintError(FewparseError):
    """A constraint that cannot be compiled or advanced."""


class LimitExceeded(ConstraintError):
    """A grammar or parser state beyond its limits."""


class DeadEnd(ConstraintError):
    """A state that nothing may follow and that may not end."""


class ModelError(FewparseError):
    """A language model that cannot be loaded or queried."""


class ModelUnavailable(ModelError):
    """No weights, and they cannot be downloaded."""


class CorruptModel(ModelError):
    """A file that is not the expected model."""


class RuntimeMismatch(ModelError):
    """A native library with another interface than the declared one."""


class ContextOverflow(ModelError):
    """A prompt longer than the model's context; the message has both lengths."""

    def __init__(self, needed: int, available: int) -> None:
        super().__init__(
            f"the prompt needs {needed} tokens and the model's context holds {available}",
            "Use fewer examples (--examples), a shorter utterance, or a model with a longer context.",
        )
        self.needed, self.available = needed, available


class ServerError(ModelError):
    """A server that cannot be used."""


class ServerRejected(ServerError):
    """A server that rejects a request: a retry would not help."""


class ServerUnavailable(ServerError):
    """A server without a valid response after all retries."""


class ServerUnsupported(ServerError):
    """A server whose responses lack what search needs, or do not match the request."""


class BudgetExceeded(ModelError):
    """The limit of tokens or cost is reached; no further request is sent."""


class TuningError(FewparseError):
    """A tuning run that cannot start, continue or write its result."""


class CalibrationError(FewparseError):
    """A calibration that cannot be fitted, read or written."""


class FeedbackError(FewparseError):
    """A feedback log that cannot be read or written."""


class ClusterError(FewparseError):
    """A cluster that cannot be reached, or whose workers end unexpectedly."""


class ParseCancelled(FewparseError):
    """A parse that was cancelled from another thread."""

    def __init__(self) -> None:
        super().__init__("the parse was cancelled")


class IllFormedOutput(FewparseError):
    """A constrained search returned an ill-formed output."""
