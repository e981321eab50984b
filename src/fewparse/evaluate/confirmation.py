"""Simulated confirmation: what is executed if users answer every question rightly, and how much of it is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

from fewparse.confidence.question import question_about
from fewparse.confidence.readings import readings_of
from fewparse.domains.domain import Domain
from fewparse.evaluate.calibration import Judged
from fewparse.evaluate.metrics import Proportion, count
from fewparse.evaluate.record_lines import Record
from fewparse.example import Candidate, Target


@dataclass(frozen=True)
class Confirmation:
    """Executed programs, and the wrong ones among them, with questions and by the best threshold without.

    The threshold executes as many utterances; if several have the confidence at which it would cut, fewer.
    """

    questions: int
    utterances: int
    wrong: Proportion
    wrong_by_threshold: Proportion

    @property
    def coverage(self) -> float:
        """The share of utterances that are executed, after a question or without one."""
        return self.wrong.items / max(1, self.utterances)


def confirmation(items: Sequence[Judged], offered: Sequence[bool]) -> Confirmation:
    """Return what is executed if users confirm what is right, and nothing else.

    `offered` says of each item whether one of the choices of its question is right; the other items that are asked
    about, and those that are declined, are not executed.
    """
    asked = [right for item, right in zip(items, offered, strict=True) if item.decision == "confirm"]
    wrong = [not item.right for item in items if item.decision == "execute"] + [False] * sum(asked)
    ranked = sorted(items, key=lambda item: -item.confidence)
    size = len(wrong)
    while 0 < size < len(ranked) and ranked[size].confidence == ranked[size - 1].confidence:
        size -= 1
    by_threshold = count([not item.right for item in ranked[:size]])
    return Confirmation(len(asked), len(items), count(wrong), by_threshold)


def offers_right(domain: Domain, target: Target, record: Record) -> bool:
    """Return whether one of the choices of the question about a parse is right."""
    candidates = candidates_of(record)
    if not candidates:
        return False
    readings = readings_of(candidates, domain.execute if domain.executes else None)
    choices = question_about(domain, target, candidates, readings).choices
    return any(record.correct[choice.candidate] for choice in choices)


def candidates_of(record: Record) -> list[Candidate]:
    """Return the candidates of a record."""
    values = zip(record.outputs, record.scores, record.programs, record.model_scores, strict=True)
    return [Candidate(text, score, program, model_score) for text, score, program, model_score in values]
