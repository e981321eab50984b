"""Read the examples of a domain; mistakes are shown with line and column."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from fewparse.errors import DomainError, UnknownName, shortened
from fewparse.example import Example
from fewparse.files import at_line, exists, parse_json_line, read_text
from fewparse.text import is_unicode

EXAMPLES = "examples.jsonl"
OUT_OF_SCOPE, OUT_OF_SCOPE_TEST = "out_of_scope.jsonl", "out_of_scope_test.jsonl"
"""Utterances that no program expresses: to calibrate, and held out."""
PAIR = ("utterance", "program")
UTTERANCE = ("utterance",)
MAX_LINE_CHARS = 1_000_000
SAMPLE = {"utterance": "what is said", "program": "what it means", "canonical": "how the grammar says it"}
MEANT = {
    "utterance": ("text", "input", "query", "question", "sentence", "instruction", "request", "nl"),
    "program": ("output", "code", "target", "label", "logical_form", "lf", "parse", "sql", "completion", "answer"),
    "canonical": ("canonical_utterance", "paraphrase"),
    "context": ("history", "previous", "dialogue"),
}
"""The keys of an example, and what other formats call them."""


def read_examples(path: Path, required: Sequence[str] = PAIR) -> tuple[Example, ...]:
    """Return the examples of a JSON-lines file; a mistake is a `DomainError` with line and column."""
    return tuple(example for _, example in numbered_examples(path, required))


def numbered_examples(path: Path, required: Sequence[str] = PAIR) -> Iterator[tuple[int, Example]]:
    """Yield the examples with their line numbers."""
    if not exists(path):
        raise DomainError("there is no such file", path, hint=form(required))
    for number, text in enumerate(read_text(path, DomainError).split("\n"), 1):
        if text.strip():
            yield number, read_example(text, number, path, required)


def read_example(text: str, number: int, path: Path, required: Sequence[str]) -> Example:
    """Read one line: an object with `utterance`, `program` and optionally `canonical`, `context`, all strings."""

    def mistake(message: str, column: int | None, hint: str | None = None) -> DomainError:
        return DomainError(message, path, number, column, at_line(text, number), hint)

    if len(text) > MAX_LINE_CHARS:
        raise DomainError(f"the line has more than {MAX_LINE_CHARS:,} characters", path, number)
    value = parse_json_line(text, number, path, DomainError, unique_keys=True)
    known = Example.__dataclass_fields__
    for key, field in value.items():
        if key in known and isinstance(field, str) and is_unicode(field):
            continue
        column = text.find(json.dumps(key)) + 1 or None
        if key not in known:
            raise mistake(f"unknown key {shortened(key)}", column, suggested_key(key))
        if not isinstance(field, str):
            raise mistake(f"`{key}` must be a string", column)
        raise DomainError(f"`{key}` contains a lone surrogate", path, number, column)
    for key in required:
        if not value.get(key, "").strip():
            raise mistake(f"`{key}` is missing or empty", 1, form(required))
    return Example(**{"utterance": "", "program": "", **value})


def form(required: Sequence[str]) -> str:
    """Return a hint how an example with these keys is written."""
    return f"A line is an example: {json.dumps({key: SAMPLE[key] for key in required})}"


def suggested_key(key: str) -> str:
    """Return a hint for an unknown key: the one that other formats call so, or the most similar ones."""
    for known, others in MEANT.items():
        if key.lower() in others:
            return f"Did you mean {known}?"
    return str(UnknownName("key", key, MEANT).hint)


def locations(path: Path) -> dict[tuple[str, str, str], str]:
    """Return the path and line of every example of a file, by its key; nothing if there is no such file."""
    return {e.key: f"{path}:{line}" for line, e in numbered_examples(path, ())} if exists(path) else {}


def not_used(count: int, total: int) -> str:
    """Say how many training examples of a benchmark the grammar does not derive."""
    return f"not used, because the grammar does not derive them: {count} of {total} examples"


def not_returned(count: int, total: int) -> str:
    """Say how many held-out examples of a benchmark the grammar does not derive."""
    return (
        f"no parse can return them, because the grammar does not derive them: {count} of {total} held-out examples"
    )
