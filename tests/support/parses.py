"""Parses with given programs, for what follows a parse."""

from fewparse.example import Candidate, Decision, Parse
from fewparse.lm.usage import Usage
from support.prompts import plain_prompt


def parse_of(
    utterance: str, *programs: str, confidence: float | None = None, decision: Decision | None = None
) -> Parse:
    """Return a parse with these programs as candidates, best first."""
    candidates = tuple(Candidate(program, -float(i), program, -float(i)) for i, program in enumerate(programs))
    return Parse(
        utterance=utterance,
        target="program",
        output=programs[0] if programs else None,
        program=programs[0] if programs else None,
        answer=None,
        answer_error=None,
        failure=None if programs else "nothing was finished",
        candidates=candidates,
        examples=(),
        examples_dropped=0,
        prompt=plain_prompt(utterance),
        trace=(),
        usage=Usage(),
        model="toy",
        confidence=confidence,
        decision=decision,
    )
