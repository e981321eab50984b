"""The question to ask before a program is executed, in words that the grammar writes."""

import json
from collections.abc import Sequence
from contextlib import suppress

from fewparse.confidence.readings import Reading
from fewparse.domains.domain import Domain
from fewparse.errors import FewparseError
from fewparse.example import Candidate, Choice, Question, Target

MAX_CHOICES = 3
MIN_SHARE = 0.1
"""A reading is offered if it has at least this share of the probability of the best one."""
WIDTH = 80


def question_about(
    domain: Domain, target: Target, candidates: Sequence[Candidate], readings: Sequence[Reading]
) -> Question:
    """Return the question whether the best reading is meant, or which of the few that are likely."""
    best = readings[0]
    likely = [best, *(r for r in readings[1:] if r.weight >= MIN_SHARE * best.weight and r.program is not None)]
    choices: list[Choice] = []
    for reading in likely[:MAX_CHOICES]:
        index = reading.candidates[0]
        text = wording(domain, target, candidates[index])
        if text not in [choice.text for choice in choices]:
            choices.append(Choice(text, reading.program or "", index))
    if len(choices) == 1:
        return Question(f"Did you mean: {choices[0].text}?", tuple(choices))
    listed = "\n".join(f"  {number}. {choice.text}" for number, choice in enumerate(choices, 1))
    return Question(f"Did you mean:\n{listed}", tuple(choices))


def wording(domain: Domain, target: Target, candidate: Candidate) -> str:
    """Return a candidate in words: its canonical utterance, or else its program, indented if it is long."""
    if target == "canonical":
        return candidate.text
    program = candidate.program or candidate.text
    if domain.translator is not None:
        with suppress(FewparseError):
            if (found := domain.translator.to_utterance(program).best) is not None:
                return found
    return indented(program)


def indented(program: str) -> str:
    """Return a long program on several lines: JSON by its structure, forms in parentheses by their depth."""
    if len(program) <= WIDTH:
        return program
    try:
        return json.dumps(json.loads(program), indent=2, ensure_ascii=False)
    except ValueError:
        pass
    lines, depth, quoted, current = [], 0, False, ""
    for char in program:
        if char == '"':
            quoted = not quoted
        if char == "(" and not quoted and len(current.strip()) + 2 * depth > WIDTH // 2:
            lines.append(current.rstrip())
            current = "  " * depth
        depth += 0 if quoted else (char == "(") - (char == ")")
        current += char
    return "\n".join([*lines, current])
