"""Value classes: examples, candidates and parses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fewparse.errors import UsageError
from fewparse.events import Event
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.text import is_unicode, to_json

Target = Literal["program", "canonical"]
TARGETS: tuple[Target, ...] = get_args(Target)
Decision = Literal["execute", "confirm", "decline"]
"""What to do with a parse: execute its program, ask the user first, or say that the utterance is out of scope."""
DECISIONS: tuple[Decision, ...] = get_args(Decision)


@dataclass(frozen=True)
class Example:
    """An utterance with its program and, optionally, its canonical utterance and the dialogue context."""

    utterance: str
    program: str
    canonical: str | None = None
    context: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Identifies an example, whether or not its canonical utterance is known."""
        return self.utterance, self.program, self.context

    def output(self, target: Target) -> str:
        """Return the output that a model should produce for a target."""
        return self.program if target == "program" else self.canonical or ""


@dataclass(frozen=True)
class Candidate:
    """An output, its score and its program.

    `model_score` is the length-normalised log-probability; `score` adds the weighted reranking score. `logprob` is
    the log-probability of all tokens, `least_logprob` that of the least likely one; None if they are unknown.
    """

    text: str
    score: float
    program: str | None
    model_score: float
    logprob: float | None = None
    least_logprob: float | None = None


@dataclass(frozen=True)
class Choice:
    """A reading that a question offers: in words, its program, and the index of its best candidate."""

    text: str
    program: str
    candidate: int


@dataclass(frozen=True)
class Question:
    """The question to ask before a program is executed: is the only choice meant, or which of several."""

    text: str
    choices: tuple[Choice, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the question as a JSON object."""
        choices = [{"text": c.text, "program": c.program, "candidate": c.candidate} for c in self.choices]
        return {"text": self.text, "choices": choices}


@dataclass(frozen=True)
class Parse:
    """The result of one parse.

    `output` is None if nothing was finished within the length limit; `failure` then gives the reason.
    `answer` is the program's denotation if the domain can execute it, `answer_error` why execution failed.

    `confidence` is the calibrated probability that the program is right, and `decision` what to do with it; both
    are None without a calibration that fits (see `fewparse calibrate`). `question` is what to ask if the decision
    is `confirm`. `features` are the values from which the confidence is computed, if they were computed.
    `notes` say what is doubtful, such as a number of the utterance that the grammar does not allow.
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
    confidence: float | None = None
    decision: Decision | None = None
    question: Question | None = None
    features: Mapping[str, float] | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the parse as a JSON object."""
        return {
            "utterance": self.utterance,
            "target": self.target,
            "output": self.output,
            "program": self.program,
            "answer": self.answer,
            "answer_error": self.answer_error,
            "failure": self.failure,
            "confidence": self.confidence,
            "decision": self.decision,
            "question": None if self.question is None else self.question.as_dict(),
            "candidates": [
                {"text": c.text, "score": c.score, "program": c.program, "model_score": c.model_score}
                for c in self.candidates
            ],
            "examples_used": len(self.examples),
            "examples_dropped": self.examples_dropped,
            "description_lines_dropped": self.prompt.lines_dropped,
            "notes": list(self.notes),
            "usage": self.usage.as_dict(),
            "model": self.model,
        }


def answer_text(answer: Any) -> str:
    """Return a denotation on one line: a string unchanged, everything else as JSON."""
    return answer if isinstance(answer, str) else to_json(answer, sort_keys=True)


def check_utterance(utterance: str) -> None:
    """Raise a `UsageError` for an utterance that cannot be parsed."""
    if not utterance.strip():
        raise UsageError("the utterance is empty")
    if not is_unicode(utterance):
        raise UsageError("the utterance is not UTF-8 text")
