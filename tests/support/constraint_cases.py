"""Constraints of all kinds, each with an independent oracle."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.copying import CopyGrammar
from fewparse.constrain.dispatch import Dispatch, HeadTrie
from fewparse.constrain.state import Constraint, LeadConstraint
from fewparse.constrain.trie import Trie
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import Grammar, Ref, Text
from fewparse.testing.constraints import end_of_walk
from fewparse.vocabulary import BYTES, Mask, Vocabulary
from support.earley import Recogniser, Row
from support.sample_grammars import CALENDAR, SAMPLES, lark_language

STRINGS = [
    "a",
    "ab",
    "abc",
    "abd",
    " list the meetings",
    " list the meeting rooms",
    " list",
    "über",
    "ü",
    "日本",
    "日",
    "😀",
    "😎!",
]
UTTERANCE = 'Rename "Q3 review" to Größe & café, now'
COPYING = 'start: "(say " text ")" | "(hush)"\ntext: "\\"" TITLE "\\""\nTITLE: /[A-Za-zß-ÿ0-9 &]+/'


ITEMS = {
    "go(": r'("a"* ")" | "x=\"" /[a-z)\], ]/* "\")")',
    "got(": '")"',
    "g_o(": '"[" "go("? "])"',
    "日本(": '"é"? ")"',
}
"""The heads of the items of a dispatch, and what follows them."""


class ByteNode:
    """A node of the byte tree of a vocabulary."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.children: dict[int, ByteNode] = {}


@cache
def byte_tree(vocabulary: Vocabulary) -> ByteNode:
    """Return the tree of all tokens that have bytes."""
    root = ByteNode()
    for i, token in enumerate(vocabulary.tokens):
        node = root
        for byte in token:
            node = node.children.setdefault(byte, ByteNode())
        if token:
            node.ids.append(i)
    return root


class Oracle(Protocol):
    """Decides which prefixes are viable, which texts are sentences, and which tokens are allowed."""

    def viable(self, prefix: bytes) -> bool: ...

    def accepts(self, text: bytes) -> bool: ...

    def mask(self, prefix: bytes, vocabulary: Vocabulary) -> Mask: ...


class GrammarOracle:
    """Computes masks from Earley rows and the byte tree of the vocabulary; another parser recognises sentences."""

    def __init__(self, grammar: Grammar, sentence: Callable[[str], bool]) -> None:
        self._recogniser = Recogniser(grammar)
        self._sentence = sentence
        self._masks: dict[tuple[Vocabulary, Row], Mask] = {}

    def viable(self, prefix: bytes) -> bool:
        return self._recogniser.viable(prefix)

    def accepts(self, text: bytes) -> bool:
        try:
            return self._sentence(text.decode())
        except UnicodeDecodeError:
            return False

    def mask(self, prefix: bytes, vocabulary: Vocabulary) -> Mask:
        row = self._recogniser.row(prefix)
        assert row is not None, f"{prefix!r} is not the prefix of a sentence"
        if (vocabulary, row) not in self._masks:
            mask = np.zeros(len(vocabulary), dtype=np.bool_)
            frontier = [(byte_tree(vocabulary), row)]
            while frontier:
                node, here = frontier.pop()
                mask[node.ids] = True
                for byte, child in node.children.items():
                    following = self._recogniser.move(here, byte)
                    if following is not None:
                        frontier.append((child, following))
            self._masks[vocabulary, row] = mask
        return self._masks[vocabulary, row]


class LeadOracle:
    """Accepts any text after a lead, of at least one byte."""

    def __init__(self, lead: bytes) -> None:
        self._lead = lead

    def viable(self, prefix: bytes) -> bool:
        return prefix.startswith(self._lead) or self._lead.startswith(prefix)

    def accepts(self, text: bytes) -> bool:
        return re.fullmatch(re.escape(self._lead) + b".+", text, re.DOTALL) is not None

    def mask(self, prefix: bytes, vocabulary: Vocabulary) -> Mask:
        return np.array([bool(token) and self.viable(prefix + token) for token in vocabulary.tokens])


@dataclass(frozen=True)
class Case:
    """A constraint, built for any vocabulary, and its oracle."""

    name: str
    build: Callable[[Vocabulary], Constraint]
    oracle: Oracle


def spans(utterance: str, permitted: Callable[[str], bool]) -> set[str]:
    """Return all spans by brute force: from the start of a word to the end of a word, of permitted characters."""
    words = list(re.finditer(r"[^\W_]+|[^\s]", utterance))
    cut = {utterance[a.start() : b.end()] for i, a in enumerate(words) for b in words[i:]}
    return {span for span in cut if all(map(permitted, span))}


def context_free(name: str, source: str, lead: str = "") -> Case:
    grammar, lark = read_grammar(source), lark_language(source)
    led = Grammar({"led": ((Text(lead), Ref("start")),), **grammar.rules}, "led")

    def sentence(text: str) -> bool:
        return text.startswith(lead) and lark(text.removeprefix(lead))

    oracle = GrammarOracle(led, sentence)
    return Case(name, lambda vocabulary: CfgConstraint(grammar.with_prefix(lead), vocabulary), oracle)


def copying() -> Case:
    allowed = spans(UTTERANCE, lambda char: re.fullmatch("[A-Za-zß-ÿ0-9 &]", char) is not None)
    explicit = COPYING.split("TITLE:")[0] + "TITLE: " + " | ".join(f'"{span}"' for span in sorted(allowed))
    grammar = read_grammar(COPYING)
    return Case(
        "copied spans",
        lambda vocabulary: CopyGrammar(grammar, ("TITLE",), vocabulary).constraint(UTTERANCE),
        GrammarOracle(read_grammar(explicit), lark_language(explicit)),
    )


def one_of(name: str, strings: list[str], lead: str = "") -> Case:
    led = [lead + string for string in strings]
    rules = Grammar({"start": tuple((Text(string),) if string else () for string in led)})
    return Case(name, lambda vocabulary: Trie(led, vocabulary), GrammarOracle(rules, led.__contains__))


def one_of_after_lead(name: str, strings: list[str], lead: str) -> Case:
    oracle = one_of(name, strings, lead).oracle
    return Case(name, lambda vocabulary: LeadConstraint(Trie(strings, vocabulary), lead), oracle)


def dispatch(name: str, several: bool) -> Case:
    items = [f'start: "{head}" {rest}' for head, rest in ITEMS.items()]
    union = " | ".join(f'"{head}" {rest}' for head, rest in ITEMS.items())
    source = f'start: "[" item (", " item)* "]"\nitem: {union}' if several else f"start: {union}"

    def build(vocabulary: Vocabulary) -> Constraint:
        heads = HeadTrie(ITEMS, ", " if several else None, ")", vocabulary)
        return Dispatch(heads, lambda key: CfgConstraint(read_grammar(items[key]), vocabulary))

    return Case(name, build, GrammarOracle(read_grammar(source), lark_language(source)))


def unconstrained(name: str, lead: bytes) -> Case:
    return Case(
        name, lambda vocabulary: LeadConstraint(Unconstrained(vocabulary), lead.decode()), LeadOracle(lead)
    )


CONTEXT_FREE = [
    *(context_free(name, source) for name, source in SAMPLES.items()),
    context_free("a lead", SAMPLES["unicode"], lead=" é"),
    context_free("calendar", CALENDAR, lead=" "),
    copying(),
]
DISPATCHES = [dispatch("dispatch", several=False), dispatch("dispatch of a list", several=True)]
TRIES = [
    one_of("trie", STRINGS),
    one_of("trie with the empty string and a lead", ["", *STRINGS], lead=" é"),
    one_of("trie of one string", ["only this"]),
    one_of_after_lead("trie after a separate lead", STRINGS, lead=" é"),
]
CASES = [
    *CONTEXT_FREE,
    *TRIES,
    *DISPATCHES,
    unconstrained("unconstrained", b""),
    unconstrained("unconstrained after a lead", " é".encode()),
]


@cache
def compiled(case: Case, vocabulary: Vocabulary) -> Constraint:
    """Return the constraint of a case, compiled once per vocabulary."""
    return case.build(vocabulary)


@cache
def prefixes(case: Case, vocabulary: Vocabulary, count: int = 20) -> list[bytes]:
    """Return distinct prefixes of sentences that the vocabulary can spell, cut anywhere, within characters too."""
    rng, found = random.Random(case.name), {b""}
    for _ in range(60):
        last = end_of_walk(compiled(case, BYTES), rng)
        found |= {last.text, *(last.text[: rng.randrange(len(last.text) + 1)] for _ in range(4))}
    spelled = sorted(prefix for prefix in found if not vocabulary.missing_bytes & set(prefix))
    return sorted(rng.sample(spelled, min(count, len(spelled))))
