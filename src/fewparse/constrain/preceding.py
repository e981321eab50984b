"""Which bytes may directly precede a nonterminal of a grammar."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text, nullable_names

CONTINUATION_BYTES = frozenset(range(0x80, 0xC0))
Bytes = frozenset[int]
NO_BYTES: Bytes = frozenset()


def preceding_bytes(grammar: Grammar, names: Iterable[str]) -> dict[str, Bytes]:
    """Return the bytes that may be the last one before the text of nonterminals; a superset for classes."""
    analysis = Analysis(grammar)
    return {name: analysis.preceding(name) for name in names}


class Analysis:
    """Finds the bytes before nonterminals, by a search through the productions in which they occur."""

    def __init__(self, grammar: Grammar) -> None:
        self._rules = grammar.rules
        self._nullable = nullable_names(grammar)
        self._heads: list[str] = []
        self._productions: list[Production] = []
        self._occurrences: defaultdict[str, list[int]] = defaultdict(list)
        """The numbers of the productions in which a nonterminal occurs, for each occurrence."""
        for name, productions in grammar.rules.items():
            for production in productions:
                for symbol in production:
                    if isinstance(symbol, Ref):
                        self._occurrences[symbol.name].append(len(self._heads))
                self._heads.append(name)
                self._productions.append(production)

    def preceding(self, name: str) -> Bytes:
        """Return the bytes that may directly precede a nonterminal."""
        before: list[Symbol] = []
        agenda, seen = [name], {name}
        while agenda:
            wanted = Ref(agenda.pop())
            for number in dict.fromkeys(self._occurrences[wanted.name]):
                head, production = self._heads[number], self._productions[number]
                for at in (at for at, symbol in enumerate(production) if symbol == wanted):
                    earlier = production[:at]
                    before += self._last_symbols(earlier)
                    if head not in seen and all(map(self._is_nullable, earlier)):
                        seen.add(head)
                        agenda.append(head)
        return self._last_bytes(before)

    def _last_bytes(self, agenda: list[Symbol]) -> Bytes:
        """Return the last bytes of the texts of some symbols."""
        found, seen = set[int](), set[str]()
        while agenda:
            symbol = agenda.pop()
            if isinstance(symbol, Chars):
                found |= class_last_bytes(symbol)
            elif isinstance(symbol, Text):
                found.update(symbol.text.encode()[-1:])
            elif symbol.name not in seen:
                seen.add(symbol.name)
                for production in self._rules.get(symbol.name, ()):
                    agenda += self._last_symbols(production)
        return frozenset(found)

    def _last_symbols(self, production: Production) -> Iterator[Symbol]:
        """Yield the symbols whose text may be the last one that is not empty."""
        for symbol in reversed(production):
            yield symbol
            if not self._is_nullable(symbol):
                return

    def _is_nullable(self, symbol: Symbol) -> bool:
        if isinstance(symbol, Ref):
            return symbol.name in self._nullable
        return isinstance(symbol, Text) and not symbol.text


def class_last_bytes(chars: Chars) -> Bytes:
    """Return the last bytes of the characters of a class; of others than ASCII, all continuation bytes."""
    ascii_bytes = frozenset(code for low, high in chars.ranges for code in range(low, min(high, 0x7F) + 1))
    beyond_ascii = any(high > 0x7F for _, high in chars.ranges)
    return ascii_bytes | (CONTINUATION_BYTES if beyond_ascii else NO_BYTES)
