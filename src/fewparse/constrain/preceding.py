"""Which bytes may directly precede a nonterminal of a grammar."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text, nullable_names

CONTINUATION_BYTES = frozenset(range(0x80, 0xC0))
Bytes = frozenset[int]
NO_BYTES: Bytes = frozenset()


def preceding_bytes(grammar: Grammar, name: str) -> Bytes:
    """Return the bytes that may be the last one before the text of a nonterminal; a superset for classes."""
    return Analysis(grammar).preceding[name]


class Analysis:
    """The last bytes of each nonterminal's texts, and the bytes that may precede them, as least fixed points."""

    def __init__(self, grammar: Grammar) -> None:
        self._nullable = nullable_names(grammar)
        self._productions = [(name, p) for name, productions in grammar.rules.items() for p in productions]
        self.last: defaultdict[str, Bytes] = defaultdict(frozenset)
        self.preceding: defaultdict[str, Bytes] = defaultdict(frozenset)
        self._iterate(self._add_last, lambda _, production: {s.name for s in production if isinstance(s, Ref)})
        self._iterate(self._add_preceding, lambda name, _: {name})

    def _iterate(
        self, add: Callable[[str, Production], set[str]], reads: Callable[[str, Production], Iterable[str]]
    ) -> None:
        """Apply `add` to all productions, and again to those that read a nonterminal that it changed."""
        readers: defaultdict[str, list[int]] = defaultdict(list)
        for number, (name, production) in enumerate(self._productions):
            for read in reads(name, production):
                readers[read].append(number)
        agenda = deque(range(len(self._productions)))
        waiting = set(agenda)
        while agenda:
            number = agenda.popleft()
            waiting.discard(number)
            for changed in add(*self._productions[number]):
                new = [reader for reader in readers[changed] if reader not in waiting]
                agenda.extend(new)
                waiting.update(new)

    def _add_last(self, name: str, production: Production) -> set[str]:
        found = self.last[name]
        for symbol in reversed(production):
            found |= self._last_of(symbol)
            if not self._is_nullable(symbol):
                break
        if found == self.last[name]:
            return set()
        self.last[name] = found
        return {name}

    def _add_preceding(self, name: str, production: Production) -> set[str]:
        changed = set()
        before = self.preceding[name]
        for symbol in production:
            if isinstance(symbol, Ref) and not before <= self.preceding[symbol.name]:
                self.preceding[symbol.name] |= before
                changed.add(symbol.name)
            last = self._last_of(symbol)
            before = before | last if self._is_nullable(symbol) else last
        return changed

    def _is_nullable(self, symbol: Symbol) -> bool:
        if isinstance(symbol, Ref):
            return symbol.name in self._nullable
        return isinstance(symbol, Text) and not symbol.text

    def _last_of(self, symbol: Symbol) -> Bytes:
        if isinstance(symbol, Ref):
            return self.last[symbol.name]
        if isinstance(symbol, Chars):
            return class_last_bytes(symbol)
        return frozenset(symbol.text.encode()[-1:])


def class_last_bytes(chars: Chars) -> Bytes:
    """Return the last bytes of the characters of a class; of others than ASCII, all continuation bytes."""
    ascii_bytes = frozenset(code for low, high in chars.ranges for code in range(low, min(high, 0x7F) + 1))
    beyond_ascii = any(high > 0x7F for _, high in chars.ranges)
    return ascii_bytes | (CONTINUATION_BYTES if beyond_ascii else NO_BYTES)
