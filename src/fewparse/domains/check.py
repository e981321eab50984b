"""Check a domain before it is used: grammar and executor on all examples, duplicates, leaks, vocabulary."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

from fewparse.constrain.copy_spans import can_be_copied
from fewparse.constrain.engine import spell
from fewparse.domains.domain import Domain
from fewparse.domains.examples import not_returned, not_used, numbered_examples
from fewparse.errors import ExecutionError, InvalidProgram, ModelError, caret
from fewparse.example import TARGETS, Example, Target
from fewparse.files import exists
from fewparse.grammar.analysis.lint import Finding, Level, lint_grammar
from fewparse.grammar.parsing.chart import ParseFailure
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.rules import Grammar, Text
from fewparse.lm.adapter import read_adapter
from fewparse.vocabulary import Vocabulary


class LocatedExample(NamedTuple):
    """An example, its file and line, whether it is held out, and why its program is invalid, if it is."""

    example: Example
    location: str
    held_out: bool
    invalid: InvalidProgram | None = None


@dataclass(frozen=True)
class Report:
    """All findings of the check of a domain; `checked` counts the examples checked."""

    domain: str
    checked: dict[str, int]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether there is no error."""
        return all(finding.level != "error" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "domain": self.domain,
            "passed": self.passed,
            "checked": self.checked,
            "findings": [asdict(finding) for finding in self.findings],
        }


def check_domain(domain: Domain, vocabulary: Vocabulary | None = None) -> Report:
    """Run all checks on a domain; with a vocabulary, also check that its tokens can spell all outputs."""
    return Check(domain, vocabulary).report()


class Check:
    """One run of all checks on a domain."""

    def __init__(self, domain: Domain, vocabulary: Vocabulary | None) -> None:
        self._domain = domain
        self._vocabulary = vocabulary
        self._has_grammar = domain.language is not None
        self._checked: Counter[str] = Counter({"examples": 0})

    def report(self) -> Report:
        """Return the findings of all checks, most severe first."""
        findings: list[Finding] = []
        if self._domain.language is not None:
            findings += lint_grammar(self._domain.language)
        for located in self._examples:
            self._checked["held-out examples" if located.held_out else "examples"] += 1
            findings += self._check_example(located)
        findings += self._not_derived(findings)
        findings += self._ambiguity()
        findings += self._repetitions()
        findings += self._missing_tokens()
        findings += self._adapters()
        findings += [Finding("note", "data", note) for note in self._domain.data_notes]
        order: list[Level] = ["error", "warning", "note"]
        findings.sort(key=lambda finding: order.index(finding.level))
        return Report(self._domain.name, dict(self._checked), tuple(findings))

    @cached_property
    def _targets(self) -> tuple[Target, ...]:
        return ("program", "canonical") if self._domain.translator is not None else ("program",)

    @staticmethod
    def _side_name(target: Target) -> str:
        return "program side" if target == "program" else "utterance side"

    @cached_property
    def _examples(self) -> list[LocatedExample]:
        examples = []
        for name in ("examples.jsonl", "test.jsonl"):
            path = self._domain.data_file(name)
            if exists(path):
                for line, example in numbered_examples(path):
                    own = self._domain.without_foreign_canonical(example)
                    examples.append(self._located(own, f"{name}:{line}", name == "test.jsonl"))
        return examples

    def _located(self, example: Example, location: str, held_out: bool) -> LocatedExample:
        try:
            program = self._domain.constraint_kind.canonical_program(example.program)
        except InvalidProgram as error:
            return LocatedExample(example, location, held_out, error)
        return LocatedExample(replace(example, program=program), location, held_out)

    @cached_property
    def _parsers(self) -> dict[Target, ForestParser]:
        translator = self._domain.translator
        if translator is None:
            return {"program": ForestParser(self._domain.grammar)}
        return {
            "program": translator.from_side("program").parser,
            "canonical": translator.from_side("utterance").parser,
        }

    def _check_example(self, located: LocatedExample) -> Iterator[Finding]:
        example = located.example
        if located.invalid is not None:
            shown = caret(example.program, located.invalid.at or 0)
            message = f"the program {located.invalid.message}\n{shown}"
            yield self._ill_formed(message, located)
            return
        if self._has_grammar:
            yield from self._check_text(example.program, "program", located)
            if "canonical" in self._targets:
                if example.canonical is not None:
                    yield from self._check_text(example.canonical, "canonical", located)
                yield from self._check_round_trip(located)
        if self._domain.executes and self._domain.allow_code:
            try:
                self._domain.execute(example.program)
            except ExecutionError as error:
                level: Level = "warning" if self._is_benchmark else "error"
                yield Finding(level, "execution", f"{example.program} fails: {error.message}", located.location)

    def _ill_formed(self, message: str, located: LocatedExample) -> Finding:
        """Return the finding for an example that the grammar does not derive: one of a benchmark is not used."""
        return Finding("note" if self._is_benchmark else "error", "ill-formed", message, located.location)

    @property
    def _is_benchmark(self) -> bool:
        """Whether the examples are published ones, which the user cannot change."""
        return self._domain.data != self._domain.folder

    def _not_derived(self, findings: list[Finding]) -> Iterator[Finding]:
        """Yield how many examples of a benchmark the grammar does not derive, and a setting by which it would."""
        locations = {finding.location for finding in findings if finding.kind == "ill-formed"}
        missed = [located.example.program for located in self._examples if located.location in locations]
        if missed and (wider := self._domain.constraint_kind.wider(missed)):
            yield Finding("note", "constraint", wider)
        for held_out in (False, True):
            among = [located for located in self._examples if located.held_out == held_out]
            count = sum(located.location in locations for located in among)
            if count and self._is_benchmark:
                message = not_returned(count, len(among)) if held_out else not_used(count, len(among))
                yield Finding("warning", "ill-formed", message)

    def _check_text(self, text: str, target: Target, located: LocatedExample) -> Iterator[Finding]:
        forest = self._parsers[target].parse(text)
        if isinstance(forest, ParseFailure):
            shown = f"the {target} {forest.reason}\n{caret(text, forest.at)}"
            yield self._ill_formed(shown, located)
            return
        self._counts[target].append((forest.count(), text))
        names = self._domain.constraint_kind.copied_rules
        utterance = located.example.utterance
        if names and not can_be_copied(forest, self._domain.side(target), names, utterance):
            message = f"the {target} {text} has text that is not copied from its utterance: no parse can return it"
            yield Finding("warning", "copy", message, located.location)

    @cached_property
    def _counts(self) -> dict[Target, list[tuple[int | None, str]]]:
        return defaultdict(list)

    def _check_round_trip(self, located: LocatedExample) -> Iterator[Finding]:
        example, translator = located.example, self._domain.translator
        assert translator is not None
        translation = translator.to_utterance(example.program)
        if translation.failure is None and translation.best is None:
            yield Finding("error", "round trip", f"{example.program} {translation.error}", located.location)
        for canonical in filter(None, dict.fromkeys([translation.best, example.canonical])):
            back = self._domain.program_of(canonical, "canonical")
            if back is not None and back != example.program:
                message = f'"{canonical}" is translated back to {back}, not to {example.program}'
                yield Finding("error", "round trip", message, located.location)
            elif back is not None and canonical != translation.best:
                shortest = f'"{translation.best}", the shortest utterance of its program'
                message = f'"{canonical}" is translated back to {shortest}'
                yield Finding("warning", "round trip", message, located.location)
            if canonical == translation.best and canonical != example.canonical:
                forest = self._parsers["canonical"].parse(canonical)
                self._counts["canonical"] += (
                    [] if isinstance(forest, ParseFailure) else [(forest.count(), canonical)]
                )

    def _ambiguity(self) -> Iterator[Finding]:
        for target, counts in self._counts.items():
            several = [(count, text) for count, text in counts if count != 1]
            if several:
                several.sort(key=lambda item: (item[0] is not None, -(item[0] or 0)))
                count, text = several[0]
                largest = "infinitely many" if count is None else str(count)
                message = f"{len(several)} of {len(counts)} have several derivations; most, {largest}: {text}"
                yield Finding("note", "ambiguity", f"{self._side_name(target)}: {message}")

    def _repetitions(self) -> Iterator[Finding]:
        """Yield utterances that occur several times in the same context: leaks, contradictions, duplicates."""
        groups: dict[tuple[str, str], list[LocatedExample]] = defaultdict(list)
        for located in self._examples:
            groups[words(located.example.context), words(located.example.utterance)].append(located)
        for same in groups.values():
            locations = ", ".join(located.location for located in same)
            utterance = f'"{same[0].example.utterance}"'
            if len({located.held_out for located in same}) > 1:
                message = f"{utterance} is both a training example and held out"
                yield Finding("error", "leak", message, locations)
            elif len({located.example.program for located in same}) > 1:
                yield Finding("warning", "contradiction", f"{utterance} has several programs", locations)
            elif len(same) > 1:
                yield Finding("warning", "duplicate", f"{utterance} occurs {len(same)} times", locations)

    def _missing_tokens(self) -> Iterator[Finding]:
        """Yield texts that the model's tokens cannot spell."""
        if self._vocabulary is None:
            return
        for target in self._targets if self._has_grammar else ():
            for literal in literals(self._domain.side(target)):
                if spell(literal.encode(), self._vocabulary) is None:
                    message = f"{self._side_name(target)}: the model has no tokens for all bytes of {literal!r}"
                    yield Finding("warning", "vocabulary", message)
        for located in self._examples:
            for text in filter(None, (located.example.program, located.example.canonical)):
                if spell(text.encode(), self._vocabulary) is None:
                    message = f"the model has no tokens for all bytes of {text!r}"
                    yield Finding("error", "vocabulary", message, located.location)

    def _adapters(self) -> Iterator[Finding]:
        """Yield adapters that cannot be read, or were tuned on other examples than the present ones."""
        for target in TARGETS:
            path = self._domain.adapter_path(target)
            if not exists(path) or not self._domain.own_grammar:
                continue
            try:
                provenance = read_adapter(path).provenance
            except ModelError as error:
                yield Finding("error", "adapter", error.message, path.name)
                continue
            if provenance is None:
                continue
            command = f"fewparse tune {self._domain.argument} --target {target}"
            sha256 = partial(self._domain.constraint_kind.outputs_sha256, target)
            if other := provenance.other_use(self._domain.name, target, sha256):
                message = f"it is not used, because it was tuned for {other}: {command}"
                yield Finding("warning", "adapter", message, path.name)
            elif provenance.data_sha256 != self._domain.data_sha256(target):
                yield Finding("warning", "adapter", f"it was tuned on other examples: {command}", path.name)


def literals(grammar: Grammar) -> list[str]:
    """Return the distinct literals of a grammar."""
    symbols = (s for productions in grammar.rules.values() for production in productions for s in production)
    return list(dict.fromkeys(s.text for s in symbols if isinstance(s, Text)))


def words(text: str) -> str:
    """Return the words of a text without case and punctuation."""
    return " ".join(re.findall(r"\w+", text.casefold()))
