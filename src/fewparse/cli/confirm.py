"""What follows a parse on the command line: its decision, the question in a terminal, the feedback log."""

import sys
from dataclasses import replace
from typing import Any

from fewparse.cli.answers import show_answer
from fewparse.cli.console import FAILED, err, out, warn
from fewparse.confidence.feedback import FeedbackLog, Outcome
from fewparse.confidence.readings import Evaluation, run
from fewparse.errors import FewparseError
from fewparse.example import Choice, Parse, Question
from fewparse.parser import Parser

UNCONFIRMED, DECLINED = 3, 4
EXIT_CODES = (FAILED, DECLINED, UNCONFIRMED)
"""Of several lines, the first of these that one of them has is the exit code."""
YES, NO = ("y", "yes"), ("n", "no", "")


class Ending:
    """Ends each parse of a command: executes, asks or declines, and logs.

    A question is only asked if standard input and output are a terminal.
    """

    def __init__(self, parser: Parser, yes: bool, as_json: bool, log: bool | None) -> None:
        self._parser = parser
        self._yes = yes
        self._as_json = as_json
        self._asks = not as_json and in_terminal()
        chosen = parser.domain.table.feedback.log if log is None else log
        self._log = FeedbackLog.of(parser.domain, warn) if chosen else None
        self._entry: int | None = None

    def parse(self, utterance: str, context: str) -> Parse:
        """Parse and log; with `yes`, a program that would need a confirmation is executed."""
        found = self._parser.parse(utterance, context)
        self._entry = self._record(found, context)
        if not (self._yes and found.decision == "confirm"):
            return found
        outcome = self._outcome(found, found.program)
        answer, error = (None, None) if outcome is None else (outcome.answer, outcome.error)
        return replace(found, decision="execute", question=None, answer=answer, answer_error=error)

    def end(self, found: Parse) -> int:
        """Act on the decision about the latest parse, which was shown; return the exit code."""
        if found.output is None:
            return FAILED
        if found.decision == "decline":
            self._say("  declined: the utterance seems to be out of scope")
            return DECLINED
        if found.decision != "confirm" or found.question is None:
            return 0
        if not self._asks:
            self._say(f"  {found.question.text}".replace("\n", "\n  "))
            return UNCONFIRMED
        choice = ask(found.question)
        self._resolve(choice)
        if choice is None:
            self._say("  not executed")
            return UNCONFIRMED
        if choice.candidate != 0:
            out.print(f"  {choice.program}", style="cyan", markup=False)
        if (outcome := self._outcome(found, choice.program)) is not None:
            show_outcome(outcome.answer, outcome.error)
        return 0

    def _say(self, text: str) -> None:
        if not self._as_json:
            out.print(text, style="yellow", markup=False)

    def _outcome(self, found: Parse, program: str | None) -> Evaluation | None:
        """Return the answer of a confirmed program, unless programs are not executed."""
        if not self._parser.options.execute or not self._parser.domain.has_executor:
            return None
        if program == found.program and (found.answer is not None or found.answer_error is not None):
            return Evaluation(found.answer, found.answer_error)
        return run(program, self._parser.domain.execute)

    def _record(self, found: Parse, context: str) -> int | None:
        """Add a parse to the log; a log that cannot be written is a warning, not the end of the command."""
        try:
            return None if self._log is None else self._log.record(found, context)
        except FewparseError as error:
            warn(error.message)
            self._log = None
            return None

    def _resolve(self, choice: Choice | None) -> None:
        """Add what the user said to the log."""
        if self._log is None or self._entry is None:
            return
        outcome: Outcome = "rejected" if choice is None else "accepted" if choice.candidate == 0 else "chosen"
        try:
            self._log.resolve(self._entry, outcome, choice.program if choice and outcome == "chosen" else None)
        except FewparseError as error:
            warn(error.message)


def in_terminal() -> bool:
    """Return whether somebody can answer: standard input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask(question: Question) -> Choice | None:
    """Ask in the terminal until there is an answer; return the confirmed choice, None if there is none."""
    several = len(question.choices) > 1
    hint = f"1-{len(question.choices)}, n" if several else "y, n"
    out.print(f"  {question.text}", style="yellow", markup=False)
    while True:
        try:
            answer = input(f"  [{hint}] ").strip().lower()
        except EOFError:
            return None
        if answer in NO:
            return None
        if answer in YES and not several:
            return question.choices[0]
        if answer.isdecimal() and 1 <= int(answer) <= len(question.choices):
            return question.choices[int(answer) - 1]
        err.print(f"  Answer {hint}.", style="dim")


def show_outcome(answer: Any, error: str | None) -> None:
    """Print the answer of a program, or why it has none; nothing if it was not executed."""
    if error is not None:
        out.print(f"  = error: {error}", style="red", markup=False)
    elif answer is not None:
        show_answer(answer, "  = ")
