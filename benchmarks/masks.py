"""Compare the masks of constraint engines in one run: the same grammars, token paths and vocabulary.

Every mask of the first positions is compared with an oracle that shares no code with any engine; an engine with a
wrong mask is marked. Engines that are not installed are left out: pip install xgrammar outlines-core.
Run: make bench.
"""

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import llguidance
import numpy as np

from fewparse import load_domain, open_model
from fewparse.constrain.cfg import CfgConstraint, engine_mask
from fewparse.constrain.engine import Limits, compile_grammar
from fewparse.constrain.state import Constraint, State
from fewparse.constrain.trie import Trie
from fewparse.grammar.export.notations import to_gbnf
from fewparse.grammar.rules import Grammar, Text, trim
from fewparse.vocabulary import Mask, Vocabulary
from measure import write
from support.constraint_cases import GrammarOracle

PATHS, CHECKED = 12, 60
TRIES = (200, 3_000, 30_000)
MAX_ALTERNATIVES = 3_000
"""Engines that compile alternatives as a grammar or a regular expression get no larger tries."""


@dataclass(frozen=True)
class Case:
    """A language: its grammar, its strings if it is finite, and token paths through it."""

    name: str
    grammar: Grammar
    strings: Sequence[str] | None
    paths: Sequence[Sequence[int]]
    oracle: Callable[[bytes], Mask]


class Engine(Protocol):
    """A compiled constraint that follows one output."""

    def start(self) -> None:
        """Begin a new output."""

    def mask(self) -> Mask:
        """Return the allowed tokens."""

    def accept(self, token: int) -> None:
        """Append a token."""


class Fewparse:
    """The constraint of fewparse: immutable states, so that appending a token also copies the state."""

    def __init__(self, case: Case, vocabulary: Vocabulary) -> None:
        self._constraint: Constraint = (
            CfgConstraint(case.grammar, vocabulary) if case.strings is None else Trie(case.strings, vocabulary)
        )
        self._tokens = vocabulary.tokens

    def start(self) -> None:
        """Begin a new output."""
        self._state: State | None = self._constraint.start()

    def mask(self) -> Mask:
        """Return the allowed tokens."""
        assert self._state is not None
        return self._state.mask()

    def accept(self, token: int) -> None:
        """Append a token."""
        assert self._state is not None
        self._state = self._state.advance(self._tokens[token])


class RawLlguidance:
    """The matcher of llguidance on the grammar text that fewparse gives it, changed in place."""

    def __init__(self, case: Case, vocabulary: Vocabulary) -> None:
        limit_alternatives(case)
        self._initial: llguidance.LLMatcher = compile_grammar(trim(case.grammar).grammar, vocabulary, Limits())
        self._count = len(vocabulary)

    def start(self) -> None:
        """Begin a new output."""
        self._matcher = self._initial.deep_copy()

    def mask(self) -> Mask:
        """Return the allowed tokens."""
        return engine_mask(self._matcher, self._count)

    def accept(self, token: int) -> None:
        """Append a token."""
        self._matcher.consume_token(token)


class XGrammar:
    """The matcher of xgrammar on the grammar in GBNF."""

    def __init__(self, case: Case, vocabulary: Vocabulary) -> None:
        import xgrammar

        limit_alternatives(case)
        info = xgrammar.TokenizerInfo(list(vocabulary.tokens), stop_token_ids=list(vocabulary.end_ids))
        compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._compiled = compiler.compile_grammar(xgrammar.Grammar.from_ebnf(to_gbnf(case.grammar)))
        self._matcher_type: Any = xgrammar.GrammarMatcher
        self._bits: Any = np.zeros((1, (len(vocabulary) + 31) // 32), dtype=np.int32)
        self._ends = list(vocabulary.end_ids)
        self._count = len(vocabulary)

    def start(self) -> None:
        """Begin a new output."""
        self._matcher = self._matcher_type(self._compiled)

    def mask(self) -> Mask:
        """Return the allowed tokens, without the end."""
        self._matcher.fill_next_token_bitmask(self._bits)
        found = np.unpackbits(self._bits.view(np.uint8)[0], count=self._count, bitorder="little").view(np.bool_)
        found[self._ends] = False
        return found

    def accept(self, token: int) -> None:
        """Append a token."""
        self._matcher.accept_token(token)


class OutlinesCore:
    """The index of outlines-core, for finite languages: a regular expression of all strings."""

    def __init__(self, case: Case, vocabulary: Vocabulary) -> None:
        from outlines_core import Guide, Index
        from outlines_core import Vocabulary as Tokens

        if case.strings is None:
            raise NotApplicable
        limit_alternatives(case)
        tokens = Tokens(vocabulary.end_ids[0], {token: [i] for token, i in vocabulary.ids.items()})
        self._index = Index("|".join(map(re.escape, case.strings)), tokens)
        self._guide_type: Any = Guide
        self._bits = np.zeros((len(vocabulary) + 31) // 32, dtype=np.int32)
        self._ends = list(vocabulary.end_ids)
        self._count = len(vocabulary)

    def start(self) -> None:
        """Begin a new output."""
        self._guide = self._guide_type(self._index)

    def mask(self) -> Mask:
        """Return the allowed tokens, without the end."""
        self._guide.write_mask_into(self._bits.ctypes.data, len(self._bits), 4)
        found = np.unpackbits(self._bits.view(np.uint8), count=self._count, bitorder="little").view(np.bool_)
        found[self._ends] = False
        return found

    def accept(self, token: int) -> None:
        """Append a token."""
        self._guide.advance(token, return_tokens=False)


class NotApplicable(Exception):
    """The engine cannot express the language, or would take too long to compile it."""


ENGINES: dict[str, Callable[[Case, Vocabulary], Engine]] = {
    "fewparse": Fewparse,
    "llguidance": RawLlguidance,
    "xgrammar": XGrammar,
    "outlines-core": OutlinesCore,
}


def limit_alternatives(case: Case) -> None:
    """Raise `NotApplicable` for a trie that is too large to be compiled as alternatives."""
    if case.strings is not None and len(case.strings) > MAX_ALTERNATIVES:
        raise NotApplicable


def main() -> None:
    """Write one row per language and engine."""
    model = open_model()
    vocabulary = model.vocabulary
    assert vocabulary is not None
    CfgConstraint(Grammar({"start": ((Text("a"),),)}, "start"), vocabulary)  # converts the vocabulary once
    rows: list[dict[str, object]] = []
    for case in cases(vocabulary, lambda text: [token.id for token in model.tokenize(text)]):
        for name, build in ENGINES.items():
            try:
                rows.append({"language": case.name, "engine": released(name), **measure(case, build, vocabulary)})
            except (NotApplicable, ImportError):
                continue
            print(rows[-1], flush=True)
    model.close()
    write("masks", rows)


def measure(case: Case, build: Callable[[Case, Vocabulary], Engine], vocabulary: Vocabulary) -> dict[str, object]:
    """Return the times of an engine, and how many of the checked masks are wrong."""
    start = time.perf_counter()
    engine = build(case, vocabulary)
    compiled = time.perf_counter() - start
    masks: list[float] = []
    accepts: list[float] = []
    checked = wrong = 0
    for path in case.paths:
        engine.start()
        text = b""
        for token in path:
            start = time.perf_counter()
            mask = engine.mask()
            masks.append(time.perf_counter() - start)
            if checked < CHECKED:
                checked += 1
                wrong += not np.array_equal(mask, case.oracle(text))
            start = time.perf_counter()
            engine.accept(token)
            accepts.append(time.perf_counter() - start)
            text += vocabulary.tokens[token]
    in_microseconds = np.array(masks) * 1e6
    return {
        "compile ms": round(compiled * 1e3, 1),
        "first mask µs": round(float(in_microseconds[0])),
        "mask p50 µs": round(float(np.median(in_microseconds)), 1),
        "mask mean µs": round(float(np.mean(in_microseconds)), 1),
        "mask p99 µs": round(float(np.percentile(in_microseconds, 99))),
        "accept p50 µs": round(float(np.median(accepts)) * 1e6, 1),
        "wrong masks": f"{wrong} of {checked}",
    }


def cases(vocabulary: Vocabulary, tokenize: Callable[[str], list[int]]) -> Iterator[Case]:
    """Yield both sides of the calendar grammar, and tries of word sequences."""
    domain = load_domain("calendar")
    items = domain.test_examples[:PATHS]
    for name, grammar, texts in (
        ("calendar programs", domain.grammar, [item.program for item in items]),
        ("calendar utterances", domain.side("canonical"), [item.canonical or "" for item in items]),
    ):
        oracle = GrammarOracle(grammar, lambda text: True)
        paths = [tokenize(text) for text in texts]
        yield Case(name, grammar, None, paths, lambda text, o=oracle: o.mask(text, vocabulary))  # type: ignore[misc]
    words = sorted({word for example in domain.examples for word in example.utterance.split()})
    generator = random.Random(0)
    for size in TRIES:
        strings = sorted({" ".join(generator.sample(words, 3)) for _ in range(size)})
        alternatives = Grammar({"start": tuple((Text(string),) for string in strings)}, "start")
        paths = [tokenize(string) for string in generator.sample(strings, PATHS)]
        yield Case(f"{size:,} strings", alternatives, strings, paths, prefix_oracle(strings, vocabulary))


def prefix_oracle(strings: Sequence[str], vocabulary: Vocabulary) -> Callable[[bytes], Mask]:
    """Return the masks of a finite language from the set of all prefixes of its strings."""
    prefixes = {data[:end] for data in map(str.encode, strings) for end in range(len(data) + 1)}

    def mask(text: bytes) -> Mask:
        return np.array([bool(token) and text + token in prefixes for token in vocabulary.tokens])

    return mask


def released(name: str) -> str:
    """Return the name of a package with its version, if it is installed."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name


if __name__ == "__main__":
    main()
