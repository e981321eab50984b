"""The plain values that pass through fewparse."""

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fewparse.errors import UsageError
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.events import Event

Target = Literal["program", "canonical"]
TARGETS: tuple[Target, ...] = get_args(Target)


@dataclass(frozen=True)
class Example:
    """An utterance with its program and, where the domain has them, its canonical utterance and context."""

    utterance: str
    program: str
    canonical: str | None = None
    context: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two examples the same, whether or not their canonical utterance has been made."""
        return self.utterance, self.program, self.context

    def output(self, target: Target) -> str:
        """What a model should say for this utterance."""
        return self.program if target == "program" else self.canonical or ""


@dataclass(frozen=True)
class Candidate:
    """An output with the score that ranks it, and the program it stands for.

    The score is the model's own, normalised by length, plus the weighted alignment where the domain reranks.
    """

    text: str
    score: float
    program: str | None
    model_score: float


@dataclass(frozen=True)
class Parse:
    """All that is known of one parse.

    `output` is None where the search reached its length limit before anything was finished; `failure` says so.
    `answer` is the program's denotation where the domain can execute, `answer_error` why it could not be had.
    """

    utterance: str
    target: Target
    output: str | None
    program: str | None
    answer: Any
    answer_error: str | None
    failure: str | None
    candidates: tuple[Candidate, ...]
    examples: tuple[Example, ...]
    examples_dropped: int
    prompt: Prompt
    trace: tuple[Event, ...]
    usage: Usage
    model: str

    def as_dict(self) -> dict[str, Any]:
        """The parse as one JSON object."""
        return {
            "utterance": self.utterance,
            "target": self.target,
            "output": self.output,
            "program": self.program,
            "answer": self.answer,
            "answer_error": self.answer_error,
            "failure": self.failure,
            "candidates": [
                {"text": c.text, "score": c.score, "program": c.program, "model_score": c.model_score}
                for c in self.candidates
            ],
            "examples_used": len(self.examples),
            "examples_dropped": self.examples_dropped,
            "usage": self.usage.as_dict(),
            "model": self.model,
        }


def answer_text(answer: Any) -> str:
    """A denotation on one line: a string as it is, everything else as JSON."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, sort_keys=True)


def is_unicode(text: str) -> bool:
    """Whether a string can be written as UTF-8; half of a surrogate pair cannot."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def check_utterance(utterance: str) -> None:
    """Refuse what cannot be parsed, before anything is spent on it."""
    if not utterance.strip():
        raise UsageError("the utterance is empty")
    if not is_unicode(utterance):
        raise UsageError("the utterance is not UTF-8 text")
