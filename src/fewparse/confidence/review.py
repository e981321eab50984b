"""Review the feedback log: in which order, and how examples and out-of-scope utterances are added."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from fewparse.confidence.feedback import FeedbackEntry
from fewparse.domains.acceptance import DomainAcceptor, Verdict
from fewparse.domains.domain import TEST, Domain
from fewparse.domains.examples import EXAMPLES, OUT_OF_SCOPE, PAIR, UTTERANCE, numbered_examples
from fewparse.errors import DomainError, FeedbackError, InvalidProgram, UsageError, caret
from fewparse.example import Example, Target
from fewparse.files import exists, os_reason, read_text, write_atomically
from fewparse.locks import Locked, file_lock
from fewparse.text import to_json

WAIT_SECONDS = 10.0
Added = Literal["added", "present"]
LABELS = ("corrected", "chosen", "rejected", "out_of_scope")


class Conflict(FeedbackError):
    """An utterance that is already an example with another program, or out of scope; `found` says which."""

    def __init__(self, utterance: str, found: Sequence[str]) -> None:
        shown = "; ".join(program or "out of scope" for program in found)
        super().__init__(f"{utterance!r} is already in the domain, as: {shown}")
        self.found = tuple(found)


def to_review(entries: Sequence[FeedbackEntry], everything: bool = False) -> list[FeedbackEntry]:
    """Return the entries to review, most informative first; of several with one utterance, only the first.

    First come those that the user has corrected or rejected, then the unsure ones by rising confidence. Without
    `everything`, executed ones that the user has said nothing against are left out.
    """
    chosen = [entry for entry in entries if not entry.reviewed and (everything or is_unsure(entry))]
    first: dict[tuple[str, str], FeedbackEntry] = {}
    for entry in sorted(chosen, key=lambda entry: (*informativeness(entry), -entry.id)):
        first.setdefault((entry.utterance, entry.context), entry)
    return list(first.values())


def is_unsure(entry: FeedbackEntry) -> bool:
    """Return whether an entry may have something to learn from."""
    return entry.outcome in LABELS or (entry.outcome is None and entry.decision != "execute")


def informativeness(entry: FeedbackEntry) -> tuple[int, float]:
    """Return the place of an entry in the order of a review: what users said, then what is unsure."""
    place = LABELS.index(entry.outcome) if entry.outcome in LABELS else len(LABELS) + (entry.decision == "decline")
    if entry.confidence is not None:
        return place, entry.confidence
    scores = [candidate.score for candidate in entry.candidates[:2]]
    return place, scores[0] - scores[1] if len(scores) == 2 else 1.0


def checked_example(domain: Domain, utterance: str, text: str, context: str = "") -> Example:
    """Return the example of an utterance and a text, which is its program or its canonical utterance.

    Raises `UsageError`, with a caret, if the grammar derives the text as neither.
    """
    verdicts: list[Verdict] = []
    targets: tuple[Target, ...] = ("program", "canonical") if domain.translator is not None else ("program",)
    for target in targets:
        verdict = DomainAcceptor(domain, target).verdict(text)
        if verdict.accepted:
            return with_canonical(domain, Example(utterance, program_of(domain, text, target), context=context))
        verdicts.append(verdict)
    best = max(verdicts, key=lambda verdict: verdict.position or 0)
    at = "" if best.position is None else f"\n{caret(text, best.position)}"
    error = best.error or "the text is not well-formed"
    expected = f"Expected: {' '.join(best.expected)}" if best.expected and "expected" not in error else None
    raise UsageError(f"{error}{at}", expected)


def program_of(domain: Domain, text: str, target: Target) -> str:
    """Return the program of a well-formed text, as the constraint writes it."""
    program = domain.program_of(text, target)
    if program is None:
        raise UsageError(f"the text has no program: {text}")
    try:
        return domain.constraint_kind.canonical_program(program)
    except InvalidProgram as error:
        raise UsageError(f"the program {error.message}", error.hint) from None


def with_canonical(domain: Domain, example: Example) -> Example:
    """Return an example with its canonical utterance, if the domain's examples have theirs."""
    if domain.translator is None or not any(each.canonical for each in domain.examples):
        return example
    canonical = domain.translator.to_utterance(example.program).best
    return Example(example.utterance, example.program, canonical, example.context)


def add_example(domain: Domain, example: Example, replace: bool = False, beside: bool = False) -> Added:
    """Append an example to the domain's file, or return that it is there already.

    If the utterance has another program there, or is out of scope, `Conflict` is raised; with `replace`, the other
    is removed, with `beside`, it stays. Raises `UsageError` if the utterance is in the test set.
    """
    with edited(domain):
        return add(domain, EXAMPLES, example, replace, beside)


def add_out_of_scope(domain: Domain, utterance: str, context: str = "", replace: bool = False) -> Added:
    """Append an utterance to the out-of-scope utterances; see `add_example`."""
    with edited(domain):
        return add(domain, OUT_OF_SCOPE, Example(utterance, "", context=context), replace, False)


@contextmanager
def edited(domain: Domain) -> Iterator[None]:
    """Exclude other processes from changing the examples of a domain; raise `FeedbackError` if that fails."""
    check_editable(domain)
    path = domain.data_file(EXAMPLES)
    try:
        with file_lock(path.with_name(f"{EXAMPLES}.lock"), WAIT_SECONDS):
            yield
    except Locked as error:
        raise FeedbackError(f"the examples are being changed: {error.message}", "Try again later.") from None
    except OSError as error:
        raise FeedbackError(f"{path} cannot be written: {os_reason(error)}") from None


def check_editable(domain: Domain) -> None:
    """Raise a `UsageError` if the examples of a domain are not the user's own."""
    if domain.installed or domain.data != domain.folder:
        raise UsageError(
            f"the examples of {domain.name} belong to an installed package or a dataset and are not changed",
            f"Copy {domain.folder} to a folder of your own, and use that.",
        )


def add(domain: Domain, name: str, example: Example, replace: bool, beside: bool) -> Added:
    """Append an example to one of the two files, within `edited`."""
    place = (example.utterance, example.context)
    for other in lines_of(domain, TEST, PAIR):
        if (other[1].utterance, other[1].context) == place:
            raise UsageError(
                f"{example.utterance!r} is in the test set", "It stays there: what is learned must not be tested."
            )
    same = {
        file: [
            (line, each) for line, each in lines_of(domain, file, keys) if (each.utterance, each.context) == place
        ]
        for file, keys in ((EXAMPLES, PAIR), (OUT_OF_SCOPE, UTTERANCE))
    }
    if any(each.program == example.program for _, each in same[name]):
        return "present"
    if (others := [each.program for found in same.values() for _, each in found]) and not (replace or beside):
        raise Conflict(example.utterance, others)
    fields = {key: value for key, value in asdict(example).items() if value}
    for file, found in same.items():
        removed = {line for line, _ in found} if replace else set()
        added = [json.dumps(fields, ensure_ascii=False)] if file == name else []
        if removed or added:
            rewrite(domain.data_file(file), removed, added)
    return "added"


def lines_of(domain: Domain, name: str, required: Sequence[str]) -> list[tuple[int, Example]]:
    """Return the examples of a file with their line numbers; none if there is no file."""
    path = domain.data_file(name)
    return list(numbered_examples(path, required)) if exists(path) else []


def rewrite(path: Path, removed: set[int], added: Sequence[str]) -> None:
    """Replace a file by itself without some lines and with others at its end, all or nothing."""
    text = read_text(path, DomainError) if exists(path) else ""
    kept = [line for number, line in enumerate(text.rstrip("\n").split("\n"), 1) if number not in removed]
    lines = [*(kept if text.strip() else []), *added]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def as_lines(entries: Sequence[FeedbackEntry]) -> Iterator[str]:
    """Yield entries as lines of JSON."""
    for entry in entries:
        yield to_json(entry.as_dict())
