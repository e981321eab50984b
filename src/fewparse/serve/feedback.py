"""Feedback on parses: what a user said about one is written to the feedback log of its domain."""

import secrets
from collections import OrderedDict
from dataclasses import dataclass, replace

from fewparse.confidence.feedback import FeedbackLog
from fewparse.errors import UsageError
from fewparse.example import Parse
from fewparse.prompt import Prompt
from fewparse.serve.domain import ServedDomain
from fewparse.serve.problems import LOGGER, Problem
from fewparse.serve.requests import FeedbackRequest

MAX_PARSES = 2_000
ID_BYTES = 12


@dataclass(frozen=True)
class RecentParse:
    """A parse on which feedback can be given, without its prompt and trace."""

    domain: str
    parse: Parse
    context: str


class RecentParses:
    """The newest parses by id. What nobody gives feedback on is never written to a file."""

    def __init__(self) -> None:
        self._parses: OrderedDict[str, RecentParse] = OrderedDict()

    def add(self, domain: str, parse: Parse, context: str) -> str:
        """Add a parse; return its id, which cannot be guessed."""
        key = secrets.token_urlsafe(ID_BYTES)
        self._parses[key] = RecentParse(domain, replace(parse, prompt=Prompt(()), examples=(), trace=()), context)
        if len(self._parses) > MAX_PARSES:
            self._parses.popitem(last=False)
        return key

    def get(self, key: str) -> RecentParse:
        """Return a parse by its id; raise `Problem` if it is unknown."""
        if key not in self._parses:
            raise Problem(404, "unknown_parse", "there is no such parse, or it is too old", "Parse it again.")
        return self._parses[key]


def give_feedback(domain: ServedDomain, recent: RecentParse, request: FeedbackRequest) -> str | None:
    """Write feedback to the log of a domain; return the program that the user chose or corrected to."""
    program = feedback_program(domain, recent.parse, request)
    log = FeedbackLog.of(domain.domain, on_warning=LOGGER.warning)
    log.resolve(log.record(recent.parse, recent.context), request.outcome, program)
    return program


def feedback_program(domain: ServedDomain, parse: Parse, request: FeedbackRequest) -> str | None:
    """Return the program of feedback; raise an error if it is not one, or the outcome needs another field."""
    given = {name for name in ("candidate", "program", "canonical") if getattr(request, name) is not None}
    wanted = {"chosen": {"candidate"}, "corrected": {"program", "canonical"}}.get(request.outcome, set())
    if len(given) > 1 or not given <= wanted or bool(given) != bool(wanted):
        needs = f"needs {' or '.join(f'`{name}`' for name in sorted(wanted))}" if wanted else "has no program"
        raise UsageError(f"the outcome `{request.outcome}` {needs}")
    if request.candidate is not None:
        if request.candidate >= len(parse.candidates):
            raise UsageError(f"there is no candidate {request.candidate}; they are counted from 0")
        chosen = parse.candidates[request.candidate].program
        if chosen is None:
            raise UsageError("this candidate has no program")
        return chosen
    if request.program is not None:
        check_well_formed(domain, request.program, "program")
        return request.program
    if request.canonical is not None:
        check_well_formed(domain, request.canonical, "canonical")
        return domain.domain.program_of(request.canonical, "canonical")
    return None


def check_well_formed(domain: ServedDomain, text: str, target: str) -> None:
    """Raise `UsageError` for a correction that is not well-formed."""
    found = domain.verdict(text, domain.target_of("program" if target == "program" else "canonical"))
    if not found.accepted:
        expected = f"Expected there: {', '.join(found.expected)}." if found.expected else None
        raise UsageError(f"the correction is not well-formed: {found.error}", expected)
