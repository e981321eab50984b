"""Errors of the API: each has a status, a code, a message and a next step, and no path or secret."""

import logging
import re
from http import HTTPStatus
from typing import Any

from fewparse.errors import (
    BudgetExceeded,
    ConstraintError,
    ContextOverflow,
    DatabaseError,
    ExecutionError,
    FewparseError,
    InvalidProgram,
    ModelError,
    ParseCancelled,
    ServerUnavailable,
    SourceError,
    UnknownName,
    UsageError,
)

LOGGER = logging.getLogger("fewparse.serve")
PATH = re.compile(r"(?<![\w/.<])(?:[A-Za-z]:)?(?:[\\/][\w.+@ -]*[\w.+@-]){2,}|(?<![\w/.])~/[\w./+@-]+")
"""Absolute paths of at least two parts, of Unix and Windows."""
MAX_MESSAGE = 2_000

STATUS_OF: tuple[tuple[type[FewparseError], int, str], ...] = (
    (UnknownName, 422, "unknown_name"),
    (ContextOverflow, 422, "too_long"),
    (UsageError, 422, "invalid_request"),
    (InvalidProgram, 422, "invalid_program"),
    (ExecutionError, 422, "execution_failed"),
    (ConstraintError, 422, "constraint_failed"),
    (SourceError, 422, "invalid_file"),
    (ParseCancelled, 503, "cancelled"),
    (BudgetExceeded, 503, "budget_exceeded"),
)
"""The status and code of errors whose message is shown; the first that matches counts."""
HIDDEN: tuple[tuple[type[FewparseError], int, str, str], ...] = (
    (ServerUnavailable, 503, "model_unavailable", "the server of the language model does not respond"),
    (ModelError, 502, "model_failed", "the language model could not be queried"),
    (DatabaseError, 503, "database_unavailable", "the database of this domain cannot be used"),
)
"""The same of errors whose message may have addresses or paths: it is logged, and this text is shown."""


class Problem(Exception):
    """An error response. `details` are the mistakes of a request, `retry_after` seconds until a retry may help."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        hint: str | None = None,
        details: list[dict[str, str]] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint = status, code, message, hint
        self.details, self.retry_after = details, retry_after

    def as_dict(self) -> dict[str, Any]:
        """Return the error as the field `error` of a response."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "details": self.details or []}

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return headers | ({"WWW-Authenticate": "Bearer"} if self.status == HTTPStatus.UNAUTHORIZED else {})


def problem_of(error: Exception) -> Problem:
    """Return the response to an error; one whose text may not be shown is logged."""
    if isinstance(error, Problem):
        return error
    for kind, status, code in STATUS_OF:
        if isinstance(error, kind):
            return Problem(status, code, without_paths(error.message), error.hint and without_paths(error.hint))
    for hidden, status, code, message in HIDDEN:
        if isinstance(error, hidden):
            LOGGER.warning("%s: %s", message, without_paths(str(error)))
            return Problem(status, code, message, "Try again later; the log of the server has the reason.")
    return internal_problem(error)


def internal_problem(error: Exception) -> Problem:
    """Return the response to an unexpected error. Its text, which may quote a request, is not logged."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}")
        trace = trace.tb_next
    LOGGER.error("internal error: %s at %s", type(error).__name__, " > ".join(frames[-8:]))
    hint = "Please report it, with the log of the server."
    return Problem(500, "internal", "an unexpected error in the server", hint)


def without_paths(text: str) -> str:
    """Return a message with only the last part of absolute paths, shortened if it is very long."""
    shortened = text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}..."
    return PATH.sub(lambda found: re.split(r"[\\/]", found[0])[-1], shortened)
